from __future__ import annotations

from typing import ClassVar, Dict, List, Tuple

from mmguard.findings.facts import LabelFacts
from mmguard.findings.rule import Example
from mmguard.findings.rules.labels.volumes.base import VolumeCause, volumes_of
from mmguard.findings.volumes import CHANNELS, NO_IMAGE, NO_LABEL, STRANGER
from mmguard.text import quantity


class IncompleteCases(VolumeCause):
    """Cases that lack a file, and files without a case."""

    code = 'MG184'
    shown_by = (NO_LABEL, CHANNELS, NO_IMAGE, STRANGER)
    summary = 'Images, channels and labels do not pair up.'
    why = 'nnU-Net stops at a missing label or channel; a label without image, or another ending, it does not see.'
    example = Example(
        wrong='imagesTr/liver_003.nii.gz, labelsTr/liver_003.nii.gz',
        right='imagesTr/liver_003_0000.nii.gz, labelsTr/liver_003.nii.gz',
    )
    limits = 'It compares names only: a pair may still be of two patients.'
    advice = (
        'A case is `imagesTr/CASE_0000{ending}` with one file per channel (_0000, _0001, ...) and '
        '`labelsTr/CASE{ending}`. Add the missing files, or take the others out; files of macOS, ._*, by `find . -name '
        "'._*' -delete`."
    )
    counted_as: ClassVar[Tuple[Tuple[str, str, str], ...]] = (
        (NO_LABEL, 'label file missing', 'label files missing'),
        (CHANNELS, 'channel missing or left over', 'channels missing or left over'),
        (NO_IMAGE, 'image missing', 'images missing'),
        (STRANGER, 'file that nnU-Net does not see', 'files that nnU-Net does not see'),
    )

    def severity_of(self, facts: LabelFacts) -> str:
        return 'error' if volumes_of(facts).of(NO_LABEL, CHANNELS) else 'warning'

    def describe(self, facts: LabelFacts) -> Dict[str, str]:
        return {'ending': volumes_of(facts).file_ending or '.nii.gz'}

    def evidence(self, facts: LabelFacts) -> str:
        texts: List[str] = []
        for kind, one, many in self.counted_as:
            faults = volumes_of(facts).of(kind)
            if faults:
                texts.append(f'{quantity(len(faults), one, many)}, e.g. {faults[0].file}: {faults[0].detail}')
        return '; '.join(texts)
