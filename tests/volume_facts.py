"""One example of facts for each cause in data sets of volumes."""

from __future__ import annotations

import importlib.util
from dataclasses import replace
from typing import Any, Callable, Dict, Mapping

from mmguard.facts import volumes as kinds
from mmguard.facts.labels import LabelFacts
from mmguard.facts.volumes import CaseFault, VolumeFacts

#: True if nnU-Net's part of mmguard is there; without it no rule is about volumes alone, and no command is ``nnunet``.
HAS_NNUNET = importlib.util.find_spec('mmguard.nnunet') is not None
CASES = 20
_NAMES = ['background', 'liver', 'tumor']
_LABEL = 'labelsTr/case_003.nii.gz'


def voxels(counts: Mapping[int, int], *faults: Any, **more: Any) -> LabelFacts:
    """Facts of volumes with labels 0, 1, 2.

    Args:
        counts (dict[int, int]): Value -> voxels.
        faults: Pairs of kind and ``CaseFault``.
        more: More of ``VolumeFacts``.
    """
    by_kind: Dict[str, Any] = {}
    for kind, fault in faults:
        by_kind.setdefault(kind, []).append(fault)
    wrong = {value: count for value, count in counts.items() if value not in (0, 1, 2)}
    return LabelFacts(
        values=wrong,
        num_classes=3,
        total=sum(counts.values()),
        files=2 * CASES,
        offending_files=1 if wrong else 0,
        kind='voxels',
        class_names=_NAMES,
        histogram=dict(counts),
        volumes=VolumeFacts(
            cases=CASES,
            reader='SimpleITKIO',
            file_ending='.nii.gz',
            expected=[0, 1, 2],
            faults=by_kind,
            never=[value for value in (0, 1, 2) if value not in counts],
            files_with_class={**dict.fromkeys(counts, CASES), **dict.fromkeys(wrong, 1)},
            labels_read=CASES,
            **more,
        ),
    )


_GOOD = {0: 40_000_000, 1: 900_000, 2: 70_000}


def _one(kind: str, detail: str, file: str = _LABEL, **more: Any) -> LabelFacts:
    return voxels(_GOOD, (kind, CaseFault('case_003', file, detail, **more)))


def _declared(kind: str, text: str) -> LabelFacts:
    return voxels(_GOOD, declared={kind: [text]})


def _in_cases(cases: int) -> LabelFacts:
    """Facts of volumes of which few have a tumor."""
    facts = voxels(_GOOD)
    assert facts.volumes is not None
    return replace(facts, volumes=replace(facts.volumes, files_with_class={0: CASES, 1: CASES, 2: cases}))


#: Code -> facts on which its cause is the first one found.
VOLUME_EXAMPLES: Dict[str, Callable[[], LabelFacts]] = {
    'MG180': lambda: _declared('keys', 'channel_names is missing (it has "modality", as in nnU-Net v1)'),
    'MG582': lambda: _declared('count', 'numTraining is 21, but 20 cases were found'),
    'MG181': lambda: _declared('labels', 'labels must be 0, 1, 2, ... without a gap, got 0, 1, 4'),
    'MG182': lambda: _declared('regions', 'labels declare regions, but regions_class_order is missing'),
    'MG185': lambda: voxels(
        {0: 40_000_000, 1: 900_000, 4: 512},
        (
            kinds.UNEXPECTED,
            CaseFault(
                'case_003',
                _LABEL,
                'value 4: 512 voxels, slices 40-55 (most in slice 47: 61)',
                512,
                {'4': 512},
                {'4': 'slices 40-55'},
            ),
        ),
    ),
    'MG187': lambda: _one(
        kinds.NOT_FINITE, 'NaN: 57 voxels, slice 12', 'imagesTr/case_003_0000.nii.gz', voxels=57, values={'nan': 57}
    ),
    'MG188': lambda: _one(kinds.SHAPE, '112x160x128, its image 112x160x127 (z, y, x)', voxels=2_293_760),
    'MG193': lambda: _one(kinds.BACKGROUND_ONLY, 'every voxel is background', voxels=2_293_760),
    'MG195': lambda: voxels(_GOOD),
    'MG197': lambda: _in_cases(2),
    'MG196': lambda: _one(
        kinds.INTENSITIES,
        'more than 256 values, most often -1024, 37, 41, 40; 97% of neighboring voxels differ',
        voxels=2_293_760,
    ),
}

#: The code that speaks, and facts that show its cause in another way than its example.
OTHER_VOLUMES = [
    ('MG132', _one(kinds.UNREADABLE, 'truncated: the gzip stream ends too early')),
    ('MG129', _one(kinds.CHANNELS, 'this channel is missing', 'imagesTr/case_003_0001.nii.gz')),
    ('MG187', _one(kinds.FRACTIONS, '1,203 voxels are not integers', voxels=1203, values={'0.9998': 1203})),
    ('MG188', _one(kinds.SPACING, 'spacing (1, 1, 1), its image (3, 0.7, 0.7) (z, y, x)', voxels=2_293_760)),
    ('MG188', _one(kinds.ORIENTATION, 'origin (0, 0, 0), its image (-90, 126, -72)', voxels=2_293_760)),
    ('MG132', _one(kinds.FORM, 'the label is 4-D, 2x112x160x128: nnU-Net takes 3-D files only', voxels=4_587_520)),
    ('MG135', voxels({0: 40_000_000, 1: 900_000})),
]
