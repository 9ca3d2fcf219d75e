from __future__ import annotations

from typing import Optional

from mmguard.findings.facts import LabelFacts
from mmguard.findings.finding import PROVEN
from mmguard.findings.rule import Example, Verdict
from mmguard.findings.rules.labels.volumes.base import volumes_of
from mmguard.findings.views import listing
from mmguard.text import quantity


class VolumesFine(Verdict):
    """Cases that were all read, without a mistake."""

    code = 'MG195'
    kinds = ('voxels',)
    needs = ('volumes',)
    summary = 'Your nnU-Net data set is fine.'
    why = 'Whatever is wrong in training, changing labels would only hide it.'
    example = Example(
        wrong='a training that dies on data preprocessed before the labels were corrected',
        right='nnUNetv2_plan_and_preprocess -d DATASET_ID',
    )
    limits = 'It cannot tell whether a declared label is the right one for its voxels.'
    advice = (
        'Go on with `nnUNetv2_plan_and_preprocess -d DATASET_ID`; preprocess again what was preprocessed from older '
        'labels. If the data set is of nnU-Net v1, it is as v1 wants it; for v2 convert it first: '
        '`nnUNetv2_convert_old_nnUNet_dataset OLD_FOLDER DatasetXXX_NAME`, one of the Decathlon '
        '`nnUNetv2_convert_MSD_dataset -i FOLDER`.'
    )

    def certainty(self, facts: LabelFacts) -> Optional[str]:
        return PROVEN if volumes_of(facts).labels_read else None

    def evidence(self, facts: LabelFacts) -> str:
        volumes = volumes_of(facts)
        cases = quantity(volumes.cases, 'case')
        return (
            f'{cases}, {facts.total:,} voxels, all of them {listing(volumes.expected, 16)}; checked: '
            f'{quantity(volumes.labels_read, "label file")} read; not checked: what preprocessing makes of them'
        )
