"""Reports about volumes; their label files are NIfTI."""

from __future__ import annotations

from typing import Dict

import numpy as np
from kinds_nnunet import BRATS, HEART, HEART_IDS, LIVER, flat_mask, flat_photo, noisy_binary
from report import Report
from volume_sets import ct, organs, volumes

ONE = {'background': 0, 'thing': 1}


def white(rng: np.random.Generator, case: int) -> np.ndarray:
    return flat_mask(rng, case) * 255


SEGMENTS = {'background': 0, **{f'Segment_{i + 1}': i for i in range(1, 5)}}

REPORTS: Dict[str, Report] = {
    'nnUNet#2500': Report(('MG185',), volumes(SEGMENTS, organs(2, 3, 4, 5)), never=('"ignore": 5`. Or: Is 2',)),
    'nnUNet#1777': Report(('MG185',), volumes(ONE, white, ending='.png', images=flat_photo), never=('"ignore": 255',)),
    'nnUNet#2404': Report(
        ('MG185',), volumes(ONE, noisy_binary, ending='.png', images=flat_photo), never=('"ignore"',)
    ),
    'nnUNet#1007': Report(('MG196',), volumes(LIVER, ct, layout='v1'), never=('"ignore"', 'seg[seg')),
    'nnUNet#946': Report(('MG181',), volumes({}, organs(1, 2), layout='v1')),
    'nnUNet#1183': Report(('MG185',), volumes(BRATS, organs(2, 4, 1), layout='v1')),
    'nnUNet#274': Report(
        ('MG185',), volumes({'background': 0, **{f's{i}': i for i in range(1, 5)}}, organs(1, 2, 3, 5))
    ),
    'nnUNet#982': Report(
        ('MG185',), volumes(HEART, organs(*HEART_IDS, dtype=np.uint16), layout='v1'), never=('{205: 1',)
    ),
    'nnUNet#37': Report(('MG185',), volumes({'background': 0, 'kidney': 1, 'tumour': 2}, organs(1, 3), layout='v1')),
    'nnUNet#898': Report(('MG185',), volumes(ONE, organs(1), drawn={4: organs(1, 655, dtype=np.uint16)})),
    'nnUNet#1419': Report(('MG195',), volumes(ONE, organs(1))),
    'nnUNet#1098': Report(('MG195',), volumes(LIVER, organs(1, 2), layout='v1')),
}
