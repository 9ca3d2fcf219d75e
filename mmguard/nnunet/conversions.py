"""Commands of nnU-Net that convert data sets of nnU-Net v1 and of the Decathlon to nnU-Net v2."""

from __future__ import annotations

from typing import Any, Mapping

#: Layout of a data set -> the command that converts it to nnU-Net v2.
CONVERSIONS = {
    'v1': 'nnUNetv2_convert_old_nnUNet_dataset OLD_FOLDER DatasetXXX_NAME',
    'msd': 'nnUNetv2_convert_MSD_dataset -i PATH/TaskXX_NAME',
}
#: Layout -> {key of dataset.json: value} that the command deletes; the command fails if a key is missing.
_DELETED = {
    'v1': {'tensorImageSize': '"4D"', 'numTest': '0', 'training': '[]', 'test': '[]'},
    'msd': {'training': '[]', 'test': '[]'},
}


def list_missing_entries(layout: str, content: Mapping[str, Any]) -> str:
    """Return the entries that dataset.json lacks for its conversion to nnU-Net v2, or '' if no entry is missing.

    Example:
        >>> list_missing_entries('msd', {'modality': {'0': 'CT'}, 'training': []})
        '"test": []'
    """
    return ', '.join(f'"{key}": {value}' for key, value in _DELETED[layout].items() if key not in content)
