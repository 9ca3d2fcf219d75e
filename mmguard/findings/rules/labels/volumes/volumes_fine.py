from __future__ import annotations

from typing import Dict, Optional

from mmguard.findings.facts import LabelFacts
from mmguard.findings.finding import PROVEN
from mmguard.findings.rule import Verdict
from mmguard.findings.rules.labels.volumes.base import volumes_of
from mmguard.findings.views import listing
from mmguard.findings.volumes import CONVERSIONS
from mmguard.text.words import counted


class VolumesFine(Verdict):
    """Every case was read, and nothing is wrong."""

    code = 'MG195'
    kinds = ('voxels',)
    needs = ('volumes',)
    summary = 'Your nnU-Net data set is fine.'
    why = 'Whatever is wrong in training, changing labels would only hide it.'
    advice = (
        'Go on with `nnUNetv2_plan_and_preprocess -d DATASET_ID`. If a training on data preprocessed earlier dies, '
        'preprocess them anew: they keep the labels of the day they were made.'
    )

    old = (
        'For nnU-Net v1 it is as it should be; for v2 convert it: `{conversion}`. If a training dies, look elsewhere '
        'than at the labels: memory, hardware, versions (`mmguard explain` reads its log).'
    )

    def advise(self, facts: LabelFacts) -> str:
        return self.old if volumes_of(facts).layout in CONVERSIONS else self.advice

    def words(self, facts: LabelFacts) -> Dict[str, str]:
        return {'conversion': CONVERSIONS.get(volumes_of(facts).layout, '')}

    def certainty(self, facts: LabelFacts) -> Optional[str]:
        return PROVEN if volumes_of(facts).labels_read else None

    def evidence(self, facts: LabelFacts) -> str:
        volumes = volumes_of(facts)
        cases = counted(volumes.cases, 'case')
        return f'{cases}, {facts.total:,} voxels, all of them {listing(volumes.expected, 16)}'
