from __future__ import annotations

from mmguard.diagnosis.causes.volumes.base import volumes_of
from mmguard.diagnosis.facts import LabelFacts
from mmguard.diagnosis.finding import Verdict
from mmguard.diagnosis.views import listing
from mmguard.words import counted


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

    def likelihood(self, facts: LabelFacts) -> float:
        return 0.9 if volumes_of(facts).labels_read else 0.0

    def evidence(self, facts: LabelFacts) -> str:
        volumes = volumes_of(facts)
        cases = counted(volumes.cases, 'case')
        return f'{cases}, {facts.total:,} voxels, all of them {listing(volumes.expected, 16)}'
