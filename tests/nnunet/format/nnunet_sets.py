"""Raw data sets of nnU-Net, made for a test: clean ones of each kind, and one with a dozen faults."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Tuple, Union

import numpy as np

#: x, y, z, as in a NIfTI file.
SHAPE = (12, 10, 8)
SPACING = (0.5, 0.5, 2.0)
LABELS = {'background': 0, 'liver': 1, 'tumor': 2}


def affine_of(spacing: Sequence[float] = SPACING, origin: Sequence[float] = (-30, 20, 5)) -> np.ndarray:
    affine = np.diag([*spacing, 1.0])
    affine[:3, 3] = origin
    return affine


def organ(shape: Tuple[int, ...] = SHAPE, values: Sequence[int] = (1, 2), dtype: Any = np.uint8) -> np.ndarray:
    """Background, and a box of each value."""
    label = np.zeros(shape, dtype)
    for place, value in enumerate(values):
        label[2:5, 2:5, 1 + place : 3 + place] = value
    return label


def picture(seed: int, shape: Tuple[int, ...] = SHAPE, dtype: Any = np.float32) -> np.ndarray:
    return (np.random.default_rng(seed).normal(size=shape) * 100).astype(dtype)


def save(path: Path, array: np.ndarray, affine: Optional[np.ndarray] = None) -> None:
    import nibabel

    path.parent.mkdir(parents=True, exist_ok=True)
    nibabel.save(nibabel.Nifti1Image(array, affine_of() if affine is None else affine), str(path))


def write_json(root: Path, **changes: Any) -> None:
    """Writes dataset.json; ``None`` leaves a key out."""
    content: Dict[str, Any] = dict(
        channel_names={'0': 'CT', '1': 'PET'}, labels=LABELS, numTraining=3, file_ending='.nii.gz'
    )
    content.update(changes)
    root.mkdir(parents=True, exist_ok=True)
    text = json.dumps({key: value for key, value in content.items() if value is not None})
    (root / 'dataset.json').write_text(text)


def make_set(
    root: Path,
    cases: Union[int, Sequence[str]] = 3,
    channels: int = 2,
    values: Sequence[int] = (1, 2),
    ending: str = '.nii.gz',
    image_dtype: Any = np.float32,
    **changes: Any,
) -> Path:
    """A clean data set of NIfTI files; ``changes`` are those of dataset.json."""
    names = [f'case_{number:03d}' for number in range(cases)] if isinstance(cases, int) else list(cases)
    for seed, name in enumerate(names):
        for channel in range(channels):
            save(root / 'imagesTr' / f'{name}_{channel:04d}{ending}', picture(seed, dtype=image_dtype))
        save(root / 'labelsTr' / f'{name}{ending}', organ(values=values))
    named = {str(number): f'channel {number}' for number in range(channels)}
    write_json(root, **{'channel_names': named, 'numTraining': len(names), 'file_ending': ending, **changes})
    return root


def their_reader(name: str) -> Any:
    from nnunetv2.imageio.reader_writer_registry import recursive_find_reader_writer_by_name

    return recursive_find_reader_writer_by_name(name)()


class Planted(NamedTuple):
    """A fault.

    Attributes:
        case, file (str): Where it was planted.
        kind (str): The kind that a scan should name.
        code (str): The code of the finding.
        voxels (int): How many voxels it concerns.
        reported (str): What must be said of it.
    """

    case: str
    file: str
    kind: str
    code: str
    voxels: int
    reported: str


CLEAN = [f'clean_{number}' for number in range(4)]
_ALL = int(np.prod(SHAPE))
_PLANE = SHAPE[0] * SHAPE[1]

PLANTED: List[Planted] = [
    Planted(
        'value', 'labelsTr/value.nii.gz', 'unexpected', 'MG185', 5, 'value 7: 5 voxels, slices 4-6 (most in slice 5: 3)'
    ),
    Planted('negative', 'labelsTr/negative.nii.gz', 'unexpected', 'MG185', 2, 'value -1: 2 voxels, slice 0'),
    Planted('soft', 'labelsTr/soft.nii.gz', 'fractions', 'MG187', 9, '9 voxels are not integers: 0.9998 (9); slice 6'),
    Planted('nan', 'imagesTr/nan_0001.nii.gz', 'not finite', 'MG187', 3, 'NaN: 3 voxels, slice 7'),
    Planted('nanlabel', 'labelsTr/nanlabel.nii.gz', 'not finite', 'MG187', 4, 'NaN: 4 voxels, slice 2'),
    Planted('shape', 'labelsTr/shape.nii.gz', 'shape', 'MG188', _ALL - _PLANE, '7x10x12, its image 8x10x12'),
    Planted(
        'channel', 'imagesTr/channel_0001.nii.gz', 'shape', 'MG188', _ALL - 80, '8x10x11, its first channel 8x10x12'
    ),
    Planted('spacing', 'labelsTr/spacing.nii.gz', 'spacing', 'MG188', _ALL, '(2, 0.5, 0.5)'),
    Planted('origin', 'labelsTr/origin.nii.gz', 'orientation', 'MG188', _ALL, 'origin (30, -20, 6)'),
    Planted('flipped', 'labelsTr/flipped.nii.gz', 'orientation', 'MG188', _ALL, 'direction'),
    Planted('time', 'labelsTr/time.nii.gz', 'form', 'MG132', 2 * _ALL, '4-D'),
    Planted('torn', 'imagesTr/torn_0000.nii.gz', 'unreadable', 'MG132', -1, 'truncated'),
    Planted('crc', 'labelsTr/crc.nii.gz', 'unreadable', 'MG132', 0, 'damaged'),
    Planted('healthy', 'labelsTr/healthy.nii.gz', 'background only', 'MG193', _ALL, 'every voxel is background'),
    Planted('onechannel', 'imagesTr/onechannel_0001.nii.gz', 'channels', 'MG129', 0, 'missing'),
    Planted('nolabel', 'labelsTr/nolabel.nii.gz', 'no label', 'MG129', 0, 'no label file'),
    Planted('noimage', 'labelsTr/noimage.nii.gz', 'no image', 'MG129', 0, 'no image'),
]


def plant(root: Path) -> Path:
    """A data set with one fault in each case of ``PLANTED``, beside clean cases."""
    names = [*CLEAN, *(fault.case for fault in PLANTED)]
    make_set(root, names, numTraining=len(names) - 1)  # a label without an image is no case of nnU-Net's
    labels, images = root / 'labelsTr', root / 'imagesTr'
    label = organ()
    label[7, 7, 4], label[7, 5:8, 5], label[8, 8, 6] = 7, 7, 7
    save(labels / 'value.nii.gz', label)
    label = organ(dtype=np.int16)
    label[0, :2, 0] = -1
    save(labels / 'negative.nii.gz', label)
    label = organ(dtype=np.float32)
    label[6:9, 6:9, 6] = 0.9998
    save(labels / 'soft.nii.gz', label)
    image = picture(1)
    image[0, :3, 7] = np.nan
    save(images / 'nan_0001.nii.gz', image)
    label = organ(dtype=np.float32)
    label[9, :4, 2] = np.nan
    save(labels / 'nanlabel.nii.gz', label)
    save(labels / 'shape.nii.gz', organ()[:, :, :-1])
    save(images / 'channel_0001.nii.gz', picture(2)[:-1])
    save(labels / 'spacing.nii.gz', organ(), affine_of((0.5, 0.5, 2.5)))
    save(labels / 'origin.nii.gz', organ(), affine_of(origin=(-30, 20, 6)))
    save(labels / 'flipped.nii.gz', organ(), affine_of((-0.5, 0.5, 2.0)))
    save(labels / 'time.nii.gz', np.stack([organ(), organ()], axis=-1))
    cut(images / 'torn_0000.nii.gz', 0.5)
    whole = bytearray((labels / 'crc.nii.gz').read_bytes())
    whole[-6] ^= 1  # gzip's checksum
    (labels / 'crc.nii.gz').write_bytes(bytes(whole))
    save(labels / 'healthy.nii.gz', np.zeros(SHAPE, np.uint8))
    (images / 'onechannel_0001.nii.gz').unlink()
    (labels / 'nolabel.nii.gz').unlink()
    for channel in (0, 1):
        (images / f'noimage_000{channel}.nii.gz').unlink()
    return root


def cut(path: Path, share: float) -> None:
    content = path.read_bytes()
    path.write_bytes(content[: int(len(content) * share)])
