"""Raw data sets of nnU-Net in both of its layouts, and of the Decathlon, with what people put into them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Callable, Dict, Mapping, Optional, Sequence

import numpy as np
import pytest
from situation import Situation

SHAPE = (28, 28, 16)
Draw = Callable[[np.random.Generator, int], np.ndarray]
LIVER = {'background': 0, 'liver': 1, 'tumor': 2}
HEART = {'background': 0, 'LV': 1, 'RV': 2, 'LA': 3, 'RA': 4, 'Myo': 5, 'AO': 6, 'PA': 7}
HEART_IDS = (500, 600, 420, 550, 205, 820, 850)
HEART_RAW = {'background': 0, **dict(zip(list(HEART)[1:], HEART_IDS))}
BRATS = {'background': 0, 'non-enhancing tumor core': 1, 'edema': 2, 'enhancing tumor': 3}


def organs(*values: int, dtype: Any = np.uint8, rare: Optional[Mapping[int, Sequence[int]]] = None) -> Draw:
    """Ellipsoids of some values in a background of 0.

    Args:
        rare: Case -> (value, value that eight voxels of it become).
    """

    def draw(rng: np.random.Generator, case: int) -> np.ndarray:
        label = np.zeros(SHAPE, dtype)
        grid = np.stack(np.meshgrid(*map(np.arange, SHAPE), indexing='ij'), -1)
        for value in values:
            centre = [rng.integers(5, length - 5) for length in SHAPE]
            label[(((grid - centre) / rng.uniform(2.5, 5, 3)) ** 2).sum(-1) <= 1] = value
        for old, new in [rare[case]] if rare and case in rare else []:
            label.flat[np.flatnonzero(label == old)[:8]] = new
        return label

    return draw


def ct(rng: np.random.Generator, case: int) -> np.ndarray:
    """Hounsfield units, air outside of the scanner's circle."""
    body = organs(1, 2)(rng, case)
    values = np.select([body == 1, body == 2], [60, 110], -700) + rng.normal(0, 25, SHAPE)
    values[:4] = -1024
    return np.clip(values, -1024, 3071).astype(np.int16)


def flat_photo(rng: np.random.Generator, case: int) -> np.ndarray:
    grid = np.add.outer(np.arange(64), 2 * np.arange(64)).astype(float)
    return np.clip(grid + rng.normal(0, 6, (64, 64)), 0, 255).astype(np.uint8)


def flat_mask(rng: np.random.Generator, case: int) -> np.ndarray:
    label = np.zeros((64, 64), np.uint8)
    label[10:40, 20 : 30 + case] = 1
    return label


def flat_cells(rng: np.random.Generator, case: int) -> np.ndarray:
    """Each cell has a number of its own."""
    numbers = np.arange(256, dtype=np.uint8).reshape(16, 16).repeat(4, 0).repeat(4, 1)
    numbers[::4] = 0
    numbers[:, ::4] = 0
    return numbers


def noisy_binary(rng: np.random.Generator, case: int) -> np.ndarray:
    """0 and 255, blurred along the border as JPEG does it."""
    label = (flat_mask(rng, case) * 255).astype(float)
    blurred = (label + np.roll(label, 1, 0) + np.roll(label, 1, 1) + np.roll(label, (1, 1), (0, 1))) / 4
    blurred[blurred > 0] += rng.normal(0, 4, (blurred > 0).sum())
    return np.clip(np.where(label == blurred, label, blurred), 0, 255).astype(np.uint8)


def save(path: Path, array: np.ndarray) -> None:
    """Writes a NIfTI file, or for ``.png`` an image."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == '.png':
        from PIL import Image

        Image.fromarray(array).save(path)
    else:
        nibabel = pytest.importorskip('nibabel')
        nibabel.save(nibabel.Nifti1Image(array, np.diag([1.0, 1.0, 2.0, 1.0])), str(path))


def volumes(
    labels: Optional[Mapping[str, Any]],
    draw: Draw,
    cases: int = 6,
    layout: str = 'v2',
    drawn: Optional[Mapping[int, Draw]] = None,
    ending: str = '.nii.gz',
    below: str = '',
    without: Sequence[str] = (),
    images: Draw = ct,
    **changes: Any,
) -> Callable[[Path], Any]:
    """A data set.

    Args:
        labels (dict): Name -> value, as in v2; written the other way round where the layout wants it.
        draw (callable): Draws the label of a case.
        layout (str): ``'v2'``, ``'v1'``, or ``'msd'`` (the Decathlon: no channel in the names of images).
        drawn (dict): Case -> what is drawn instead.
        below (str): The folder that is scanned holds the data set in this one.
        without (list[str]): Files that are taken away again.
        changes: Of dataset.json; ``None`` leaves a key out.
    """
    named = 'Dataset501_Some' if layout == 'v2' else 'Task501_Some'

    def build(root: Path) -> Any:
        rng = np.random.default_rng(5)
        place = root / below / named
        names = [f'case_{number:03d}' for number in range(cases)]
        for number, name in enumerate(names):
            channel = '' if layout == 'msd' else '_0000'
            save(place / 'labelsTr' / f'{name}{ending}', (drawn or {}).get(number, draw)(rng, number))
            save(place / 'imagesTr' / f'{name}{channel}{ending}', images(rng, number))
        content: Dict[str, Any] = dict(numTraining=cases, labels=labels)
        if layout == 'v2':
            content.update(channel_names={'0': 'CT'}, file_ending=ending)
        else:
            content.update(name='Some', tensorImageSize='3D', modality={'0': 'CT'}, numTest=0, test=[])
            content['labels'] = {str(value): name for name, value in (labels or {}).items()}
            content['training'] = [
                {'image': f'./imagesTr/{name}{ending}', 'label': f'./labelsTr/{name}{ending}'} for name in names
            ]
        content.update(changes)
        text = json.dumps({key: value for key, value in content.items() if value is not None})
        (place / 'dataset.json').write_text(text)
        for file in without:
            (place / file).unlink()
        return root / below if below else place

    return build


SITUATIONS: Dict[str, Situation] = {
    'CT in labelsTr': Situation(
        'all label files hold Hounsfield units', ('MG196',), volumes(LIVER, ct), seen=('labelsTr/case_000.nii.gz',)
    ),
    'not images: numbered cells': Situation(
        'instances, where classes are wanted',
        ('MG185',),
        volumes({'background': 0, 'cell': 1}, flat_cells, 5, ending='.png', images=flat_photo),
    ),
    'heart ids as declared labels': Situation(
        'dataset.json declares the raw ids, which leaves gaps',
        ('MG181',),
        volumes(HEART_RAW, organs(*HEART_IDS, dtype=np.uint16)),
        first=dict(LV=3, label_map=dict(zip(sorted(HEART_IDS), range(1, 8)))),
    ),
    'not to be renumbered: BraTS as declared': Situation(
        'renumbered already', ('MG195',), volumes(BRATS, organs(1, 2, 3))
    ),
    'v1, a label is missing': Situation(
        'a case without label file',
        ('MG129',),
        volumes(LIVER, organs(1, 2), layout='v1', without=['labelsTr/case_002.nii.gz']),
        seen=('labelsTr/case_002.nii.gz',),
    ),
    'v1, numTraining': Situation(
        'numTraining is that of another set',
        ('MG582',),
        volumes(LIVER, organs(1, 2), layout='v1', numTraining=40),
        first=dict(numTraining=6),
    ),
    'Decathlon, nothing wrong': Situation(
        'as it is downloaded: no _0000', ('MG195',), volumes(LIVER, organs(1, 2), layout='msd')
    ),
    'not v1: a key is missing': Situation(
        'v2 without file_ending', ('MG180',), volumes(LIVER, organs(1, 2), file_ending=None)
    ),
}
