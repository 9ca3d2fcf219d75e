"""Raw data sets of nnU-Net, by kinds of causes, written down before any scan was run on them.

Images that lie in the folder of labels; numbers that must become those of the names that are declared; the layout of
nnU-Net v1. Those that begin with "not" must not be taken for the kind.
"""

from __future__ import annotations

from typing import Dict

import numpy as np
from situation import Situation
from volume_sets import ct, mri, organs, parcels, volumes

LIVER = {'background': 0, 'liver': 1, 'tumor': 2}
HEART = {'background': 0, 'LV': 1, 'RV': 2, 'LA': 3, 'RA': 4, 'Myo': 5, 'AO': 6, 'PA': 7}
HEART_IDS = (500, 600, 420, 550, 205, 820, 850)
HEART_RAW = {'background': 0, **dict(zip(list(HEART)[1:], HEART_IDS))}
BRATS = {'background': 0, 'non-enhancing tumor core': 1, 'edema': 2, 'enhancing tumor': 3}
BY_INTENSITY = ('seg[seg', '"ignore":')


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


SITUATIONS: Dict[str, Situation] = {
    # ---- images in the folder of labels
    'CT in labelsTr': Situation(
        'all label files hold Hounsfield units',
        ('MG196',),
        volumes(LIVER, ct),
        ('labelsTr/case_000.nii.gz',),
        BY_INTENSITY,
    ),
    'CT in labelsTr, v1': Situation(
        'the same in the layout of v1', ('MG196',), volumes(LIVER, ct, layout='v1'), (), BY_INTENSITY
    ),
    'normalised MRI in labelsTr': Situation(
        'float intensities: no labels that were interpolated', ('MG196',), volumes(LIVER, mri), (), ('Resample', 'rint')
    ),
    'not images: a parcellation': Situation(
        'ids of FreeSurfer, where 0..82 are declared',
        ('MG185',),
        volumes({'background': 0, **{f'region {i}': i for i in range(1, 83)}}, parcels),
        ('2035',),
        ('intensities',),
    ),
    'not images: numbered cells': Situation(
        'instances, where classes are wanted',
        ('MG185',),
        volumes({'background': 0, 'cell': 1}, flat_cells, 5, ending='.png', images=flat_photo),
        (),
        ('intensities',),
    ),
    'not images: a mask from a JPEG': Situation(
        '0 and 255 with noise between',
        ('MG185',),
        volumes({'background': 0, 'cell': 1}, noisy_binary, 5, ending='.png', images=flat_photo),
        (),
        ('intensities',),
    ),
    # ---- numbers and names
    'heart ids as declared labels': Situation(
        'dataset.json declares the raw ids, which leaves gaps',
        ('MG181',),
        volumes(HEART_RAW, organs(*HEART_IDS, dtype=np.uint16)),
    ),
    'raw ids declared, a stray 421': Situation(
        'dataset.json declares the raw ids; in one scan a few voxels of 420 are 421',
        ('MG181',),
        volumes(HEART_RAW, organs(*HEART_IDS, dtype=np.uint16, rare={4: (420, 421)})),
        ('"LV": 3', '421: 2, 500: 3'),
    ),
    'no labels are declared': Situation(
        '"labels" is empty; the files hold 0, 1, 2', ('MG181',), volumes({}, organs(1, 2)), ('0, 1, 2',)
    ),
    'not to be renumbered: BraTS as declared': Situation(
        'renumbered already', ('MG195',), volumes(BRATS, organs(1, 2, 3))
    ),
    # ---- the layout of v1
    'v1, nothing wrong': Situation(
        'the labels are fine; the data set is of nnU-Net v1', ('MG195',), volumes(LIVER, organs(1, 2), layout='v1')
    ),
    'v1, a label is missing': Situation(
        'a case without label file',
        ('MG184',),
        volumes(LIVER, organs(1, 2), layout='v1', without=['labelsTr/case_002.nii.gz']),
        ('labelsTr/case_002.nii.gz',),
    ),
    'v1, numTraining': Situation(
        'numTraining is that of another set', ('MG183',), volumes(LIVER, organs(1, 2), layout='v1', numTraining=40)
    ),
    'Decathlon, nothing wrong': Situation(
        'as it is downloaded: no _0000', ('MG195',), volumes(LIVER, organs(1, 2), layout='msd')
    ),
    'not v1: a key is missing': Situation(
        'v2 without file_ending', ('MG180',), volumes(LIVER, organs(1, 2), file_ending=None), ('file_ending',), ('v1',)
    ),
    'not v1: half converted': Situation(
        'labels and file_ending as in v2, modality as in v1',
        ('MG180',),
        volumes(LIVER, organs(1, 2), channel_names=None, modality={'0': 'CT'}),
        ('channel_names',),
    ),
}  # fmt: skip
