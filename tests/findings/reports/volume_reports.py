"""Reports about volumes; their label files are NIfTI."""

from __future__ import annotations

from typing import Dict

import numpy as np
from report import reported
from situation import Situation
from volume_sets import BRATS, HEART, HEART_IDS, LIVER, ct, flat_mask, flat_photo, noisy_binary, organs, volumes

ONE = {'background': 0, 'thing': 1}
SEGMENTS = {'background': 0, **{f'Segment_{i + 1}': i for i in range(1, 5)}}


def white(rng: np.random.Generator, case: int) -> np.ndarray:
    return flat_mask(rng, case) * 255


REPORTS: Dict[str, Situation] = {
    'nnUNet#2500': reported(
        ('MG185',), volumes(SEGMENTS, organs(2, 3, 4, 5)), ('{2: 1, 3: 2, 4: 3, 5: 4}',), ('"ignore": 5`. Or: Is 2',)
    ),
    'nnUNet#1777': reported(
        ('MG185',), volumes(ONE, white, ending='.png', images=flat_photo), ('{255: 1}',), ('"ignore": 255',)
    ),
    'nnUNet#2404': reported(
        ('MG185',),
        volumes(ONE, noisy_binary, ending='.png', images=flat_photo),
        ('(seg > 127)', 'without loss'),
        ('"ignore"',),
    ),
    'nnUNet#1007': reported(
        ('MG196',),
        volumes(LIVER, ct, layout='v1'),
        ('labelsTr/case_000.nii.gz', 'Put the segmentations into labelsTr'),
        ('"ignore"', 'seg[seg'),
    ),
    'nnUNet#946': reported(('MG181',), volumes({}, organs(1, 2), layout='v1'), ('"1": "NAME OF 1"',)),
    'nnUNet#1183': reported(('MG185',), volumes(BRATS, organs(2, 4, 1), layout='v1'), ('{4: 3}',)),
    'nnUNet#982': reported(
        ('MG185',), volumes(HEART, organs(*HEART_IDS, dtype=np.uint16), layout='v1'), ('205: 5', '500: 1'), ('{205: 1',)
    ),
    'nnUNet#37': reported(
        ('MG185',), volumes({'background': 0, 'kidney': 1, 'tumour': 2}, organs(1, 3), layout='v1'), ('{3: 2}',)
    ),
    'nnUNet#898': reported(
        ('MG185',),
        volumes(ONE, organs(1), drawn={4: organs(1, 655, dtype=np.uint16)}),
        ('655', 'labelsTr/case_004.nii.gz'),
    ),
    'nnUNet#1419': reported(('MG195',), volumes(ONE, organs(1)), ('preprocess them anew',)),
    'nnUNet#1098': reported(('MG195',), volumes(LIVER, organs(1, 2), layout='v1'), ('memory, hardware',)),
}
