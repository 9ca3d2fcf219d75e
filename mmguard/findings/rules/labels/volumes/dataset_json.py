from __future__ import annotations

from mmguard.findings.facts import LabelFacts
from mmguard.findings.rule import Example
from mmguard.findings.rules.labels.volumes.base import DeclaredCause


class DatasetJson(DeclaredCause):
    """A dataset.json that lacks what nnU-Net needs, or has it in another form."""

    code = 'MG180'
    kind = 'keys'
    summary = 'The dataset.json is not as nnU-Net v2 reads it.'
    why = 'nnU-Net stops before it looks at a single case, or takes other files than you think.'
    example = Example(
        wrong='"modality": {"0": "CT"}',
        right='"channel_names": {"0": "CT"}, "file_ending": ".nii.gz"',
    )
    limits = 'It checks the keys that planning and training read, not those of your own tools.'
    advice = (
        'Complete it: `"channel_names": {{"0": "CT"}}, "labels": {{"background": 0, "liver": 1}}, "numTraining": '
        '{cases}, "file_ending": "{ending}"`. If the data set is of nnU-Net v1, convert it: '
        '`nnUNetv2_convert_old_nnUNet_dataset OLD_FOLDER DatasetXXX_NAME`; one of the Decathlon: '
        '`nnUNetv2_convert_MSD_dataset -i FOLDER`.'
    )

    def describe(self, facts: LabelFacts) -> dict:
        volumes = facts.volumes
        ending = volumes.file_ending if volumes and volumes.file_ending.startswith('.') else '.nii.gz'
        return {'cases': volumes.cases if volumes else 0, 'ending': ending}
