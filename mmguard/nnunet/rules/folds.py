"""Classes that occur in fewer cases than there are folds."""

from __future__ import annotations

from typing import Dict, Iterator

from mmguard.findings.facts import LabelFacts
from mmguard.findings.finding import INFO, PROVEN, Finding
from mmguard.findings.rule import DataRule, Example, Facts
from mmguard.findings.views import join_items
from mmguard.language import Message
from mmguard.text import quantity

#: Number of folds that nnU-Net splits the cases into.
FOLDS = 5


class RarerThanFolds(DataRule):
    """Classes of volumes that a fold of nnU-Net's cross-validation does without."""

    code = 'MG197'
    before = 'MG146'
    shows_values = False
    kinds = ('voxels',)
    severity = INFO
    needs = ('volumes',)
    summary = 'Classes occur in fewer cases than nnU-Net has folds.'
    title = 'Classes occur in fewer cases than nnU-Net has folds ({folds}): {rare}.'
    why = 'A fold whose validation cases lack a class cannot judge it: its Dice is nan there, or 0 if it is predicted.'
    example = Example(
        wrong='labels: lesion 1, lesion 2, lesion 3, one label for each object of a case',
        right='labels: lesion',
    )
    limits = 'It counts cases, and does not read splits_final.json.'
    advice = (
        'Judge such a class by the folds whose cases have it: see splits_final.json. If the names number the objects '
        'of one class (`lesion 1`, `lesion 2`), write them as one label: nnU-Net learns classes, not objects.'
    )

    def look(self, facts: Facts, labels: LabelFacts) -> Iterator[Finding]:
        rare = _find_rarer_than_folds(labels)
        if rare:
            named = [f'{labels.name_of(label)} ({label}) in {quantity(cases, "case")}' for label, cases in rare.items()]
            words = {'folds': FOLDS, 'rare': join_items(named)}
            label, cases = min(rare.items(), key=lambda pair: pair[1])
            text = 'at least {number} of {folds} folds validate without {name} ({label}): its Dice is nan there'
            seen_in = Message(text, number=FOLDS - cases, folds=FOLDS, name=labels.name_of(label), label=label)
            yield self.report_in(facts, PROVEN, seen_in, words, values=rare)


def _find_rarer_than_folds(labels: LabelFacts) -> Dict[int, int]:
    """Map each class that fewer cases have than there are folds to their number; regions share voxels: not judged."""
    volumes = labels.volumes
    if volumes is None or volumes.labels_read < max(FOLDS, volumes.cases) or 'regions_class_order' in volumes.content:
        return {}
    classes = set(volumes.expected) - {0, labels.ignore_index}
    return {label: cases for label, cases in volumes.files_with_class.items() if label in classes and cases < FOLDS}
