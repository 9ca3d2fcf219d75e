"""Public reports about raw data sets of nnU-Net; their words are in tests/findings/reports/truth.json."""

from __future__ import annotations

from typing import Dict

import numpy as np
from real_reports import FOREGROUND, report
from situation import Situation
from volume_sets import BRATS, HEART, HEART_IDS, LIVER, ct, flat_mask, flat_photo, noisy_binary, organs, volumes

ONE = {'background': 0, 'thing': 1}
#: Values that blurred files of 0 and 255 hold.
NOISY = (*range(57, 67), 68, 70, *range(117, 139), *range(243, 256))
SEGMENTS = {'background': 0, **{f'Segment_{i + 1}': i for i in range(1, 5)}}


def white(rng: np.random.Generator, case: int) -> np.ndarray:
    return flat_mask(rng, case) * 255


INTENSITIES = dict(label_map=..., ignore=...)

REPORTS: Dict[str, Situation] = {
    'nnUNet#2500': report(
        ('MG185',), volumes(SEGMENTS, organs(2, 3, 4, 5)), dict(label_map={2: 1, 3: 2, 4: 3, 5: 4}), dict(ignore=...)
    ),
    'nnUNet#1777': report(
        ('MG185',), volumes(ONE, white, ending='.png', images=flat_photo), FOREGROUND, dict(ignore=...)
    ),
    'nnUNet#2404': report(
        ('MG185',),
        volumes(ONE, noisy_binary, ending='.png', images=flat_photo),
        dict(label_map={value: value // 128 for value in NOISY}),
        dict(ignore=...),
    ),
    'nnUNet#1007': report(
        ('MG196',), volumes(LIVER, ct, layout='v1'), never=INTENSITIES, seen=('labelsTr/case_000.nii.gz',)
    ),
    'nnUNet#946': report(('MG181',), volumes({}, organs(1, 2), layout='v1'), {'1': ...}),
    'nnUNet#1183': report(('MG185',), volumes(BRATS, organs(2, 4, 1), layout='v1'), dict(label_map={4: 3})),
    'nnUNet#982': report(
        ('MG185',),
        volumes(HEART, organs(*HEART_IDS, dtype=np.uint16), layout='v1'),
        dict(label_map=dict(zip(HEART_IDS, range(1, 8)))),
        dict(label_map=[dict(zip(sorted(HEART_IDS), range(1, 8)))]),
    ),
    'nnUNet#898': report(
        ('MG185',),
        volumes(ONE, organs(1), drawn={4: organs(1, 655, dtype=np.uint16)}),
        dict(label_map={655: 2}, ignore=2),
        seen=('labelsTr/case_004.nii.gz',),
    ),
    'nnUNet#1419': report(('MG195',), volumes(ONE, organs(1))),
    'nnUNet#1098': report(('MG195',), volumes(LIVER, organs(1, 2), layout='v1')),
}
