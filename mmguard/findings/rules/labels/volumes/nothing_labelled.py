"""Cases and classes without a voxel."""

from __future__ import annotations

from typing import Dict, List, Optional

from mmguard.findings.facts import LabelFacts
from mmguard.findings.finding import LIKELY, POSSIBLE
from mmguard.findings.rule import DataRule, Example
from mmguard.findings.rules.labels.volumes.base import VolumeCause, volumes_of
from mmguard.findings.views import listing
from mmguard.findings.volumes import BACKGROUND_ONLY, IGNORED_ONLY
from mmguard.text import quantity


class NothingLabelled(VolumeCause):
    """Label files of background, or of ignored voxels, only."""

    code = 'MG193'
    shown_by = (BACKGROUND_ONLY, IGNORED_ONLY)
    usual_certainty = LIKELY
    severity = 'warning'
    summary = 'Label files without a single voxel of a class.'
    why = 'Right for cases without a finding; else an export without its labels, and a case that teaches "nothing".'
    example = Example(
        wrong='a case that was not annotated, its label file all 0',
        right='its label file all "ignore", or the case left out',
    )
    limits = 'It cannot tell a healthy case from one that was not annotated.'
    advice = (
        'Look at the cases named, `nnUNetv2_plot_overlay_pngs -d DATASET_ID -o FOLDER`. If they are healthy, keep '
        'them. What was not annotated is not background: leave such cases out, or declare `"ignore": {next}` and write '
        'it into them.'
    )

    def describe(self, facts: LabelFacts) -> Dict[str, int]:
        highest = max(volumes_of(facts).expected, default=0)
        return {'next': highest if facts.ignore_index is not None else highest + 1}


class ClassNeverSeen(DataRule):
    """Declared labels that no label file holds."""

    code = 'MG194'
    kinds = ('voxels',)
    needs = ('volumes',)
    severity = 'warning'
    summary = 'No label file holds a declared class.'
    title = 'No label file holds {never}.'
    why = 'The network gets an output that is never right: its Dice is 0 or nan in every epoch, and the mean with it.'
    example = Example(
        wrong='"tumor": 2 where no file holds 2',
        right='"tumor" taken out of "labels"',
    )
    limits = 'A class may be in cases that were not copied.'
    advice = (
        'Compare `"labels"` in dataset.json with how the files were made: a value that was not renumbered, a class of '
        'another data set, cases not copied. Take out what does not exist, and let the labels above it move down.'
    )

    def certainty(self, facts: LabelFacts) -> Optional[str]:
        return POSSIBLE if volumes_of(facts).never else None

    def describe(self, facts: LabelFacts) -> Dict[str, str]:
        return {'never': listing(self._name_classes(facts))}

    def evidence(self, facts: LabelFacts) -> str:
        read = quantity(volumes_of(facts).labels_read, 'label file')
        return f'0 voxels in {read}: {listing(self._name_classes(facts))}'

    def values(self, facts: LabelFacts) -> Dict[int, int]:
        return dict.fromkeys(volumes_of(facts).never, 0)

    def files(self, facts: LabelFacts) -> List[str]:
        return []

    def _name_classes(self, facts: LabelFacts) -> List[str]:
        names = facts.class_names
        return [
            f'{value} ({names[value]})' if 0 <= value < len(names) and names[value] else str(value)
            for value in volumes_of(facts).never
        ]
