"""What the geometric transforms of albumentations, in mmseg's ``Albu``, write into label maps where nothing was."""

from __future__ import annotations

import math
from importlib import metadata
from typing import Any, Iterator, List, NamedTuple, Sequence

from mmguard.config.parts import Part

#: Transforms that move what is there and fill what is left: argument of the fill before albumentations 2, and whether
#: they fill with a constant unless another border is asked for. (Of the others the default differs between versions.)
MOVING = {
    'Affine': ('cval_mask', True),
    'Perspective': ('mask_pad_val', True),
    'Rotate': ('mask_value', False),
    'SafeRotate': ('mask_value', False),
    'ShiftScaleRotate': ('mask_value', False),
    'PadIfNeeded': ('mask_value', False),
    'ElasticTransform': ('mask_value', False),
    'GridDistortion': ('mask_value', False),
    'OpticalDistortion': ('mask_value', False),
}
#: Transforms that cut holes, also into the label map if they have an argument for what to write there.
CUTTING = {
    'CoarseDropout': 'mask_fill_value',
    'GridDropout': 'mask_fill_value',
    'PixelDropout': 'mask_drop_value',
    'XYMasking': 'mask_fill_value',
}
#: The argument of all of them since albumentations 2.
SINCE_2 = 'fill_mask'
BORDERS = ('border_mode', 'mode', 'pad_mode')
#: cv2.BORDER_CONSTANT is 0.
CONSTANT = (0, 'constant', 'BORDER_CONSTANT', 'cv2.BORDER_CONSTANT')


class MaskFill(NamedTuple):
    """A fill.

    Attributes:
        part (Part): The transform.
        key (str): The argument that says it, or would.
        value (int): What is written.
        written (bool): Whether the config says it.
    """

    part: Part
    key: str
    value: int
    written: bool


def mask_fills(pipeline: Sequence[Part]) -> Iterator[MaskFill]:
    """The fills of a pipeline's ``Albu`` transforms, as far as they are the same in every version of albumentations.

    Args:
        pipeline (sequence of Part): The transforms, nested ones included.
    """
    within = tuple(f'{part.path}.transforms' for part in pipeline if part.name == 'Albu')
    inner: List[Part] = [part for part in pipeline if within and part.path.startswith(within)]
    for part in inner:
        if part.name in MOVING:
            usual, by_default = MOVING[part.name]
            border = next((part.config[key] for key in BORDERS if key in part.config), None)
            if border in CONSTANT if border is not None else by_default:
                yield _fill(part, usual, otherwise=0)
        elif part.name in CUTTING:
            usual = CUTTING[part.name]
            if any(part.config.get(key) is not None for key in (usual, SINCE_2)):
                yield _fill(part, usual, otherwise=0)


def _fill(part: Part, usual: str, otherwise: int) -> MaskFill:
    written = next((key for key in (usual, SINCE_2) if part.config.get(key) is not None), None)
    value: Any = part.config[written] if written else otherwise
    value = value[0] if isinstance(value, (list, tuple)) and value else value
    key = written or (SINCE_2 if _version() >= 2 else usual)
    known = isinstance(value, (int, float)) and math.isfinite(value)
    return MaskFill(part, key, int(value) if known else otherwise, written is not None)


def _version() -> int:
    """The major version that is installed; 1 where none is."""
    try:
        return int(metadata.version('albumentations').partition('.')[0])
    except (metadata.PackageNotFoundError, ValueError):
        return 1
