from __future__ import annotations

from dataclasses import replace
from typing import Dict, Iterator, List, Optional, Tuple

from mmguard.findings.edits import ASKS, Edit
from mmguard.findings.facts import LabelFacts
from mmguard.findings.finding import POSSIBLE, PROVEN, Finding
from mmguard.findings.known_sets import set_of_numbers
from mmguard.findings.map_edits import convert_files, list_stored_values, more_classes, renumber, splits_of
from mmguard.findings.rule import DataRule, Example, Facts
from mmguard.findings.rules.labels.yolo.base import drop_rows
from mmguard.findings.views import (
    VOID,
    config_of,
    ids_of,
    is_rare,
    is_whole,
    listing,
    share,
    trained,
)

#: Values that fill more of the files than this are not void.
MUCH = 0.25


class OutOfRange(DataRule):
    """Labels outside the classes, without a known pattern."""

    code = 'MG107'
    kinds = ('pixels', 'instances')
    summary = 'Labels outside the class range.'
    title = 'Labels outside 0..{last}: {values}.'
    title_known = (
        'Labels outside 0..{last}: the files hold the {known_number} numbers of {known}, not those of your classes.'
    )
    why = (
        'Losses index by label: an invalid one ends the run with a device-side assert, or, in focal losses without a '
        'range check, trains something wrong.'
    )
    example = Example(
        wrong='head: num_classes=19; labels in the files: 0..18 and 33',
        right='33 corrected in the files, or mapped: label_map={33: 255}',
    )
    limits = 'It cannot tell a slip from a class that the config does not count: that is the question of its edits.'
    advice = (
        'Open one of these files. Correct a slip there. List a class in metainfo.classes and count it in num_classes '
        'of every head. If the files have another numbering, write a label_map from value to class for all of them: '
        'numbers that look valid mean other classes then.'
    )
    pytorch = (
        'Valid labels are 0..{last}. Find what the others mean: a slip, a class that the model does not count '
        '({beyond} outputs if all are classes), or another numbering, as that of COCO-Stuff with its gaps, which needs '
        'a table from id to class.'
    )

    def certainty(self, facts: LabelFacts) -> Optional[str]:
        return PROVEN if self._find_known_set(facts)[0] else POSSIBLE

    def choose_title(self, facts: LabelFacts) -> str:
        return self.title_known if self._find_known_set(facts)[0] else self.title

    def describe(self, facts: LabelFacts) -> Dict[str, object]:
        known, number = self._find_known_set(facts)
        return {'known': known, 'known_number': number}

    def edits(self, finding: Finding, facts: Facts) -> Iterator[Edit]:
        labels = facts.labels
        if labels is None or labels.kind != 'pixels':
            yield from drop_rows(self, facts)
            return
        if self._find_known_set(labels)[0]:
            return  # which class a number is, only the table of both lists says
        seen = sorted(labels.values)
        void = VOID if labels.ignore_index is None else labels.ignore_index
        lacking = _find_unmapped(labels)
        if lacking:
            question = f'label_map does not name {listing(lacking)}: do they mean no class?'
            for edit in renumber(facts, dict.fromkeys(seen, void), ASKS, question):
                at_once = f"'*': {void} in a label_map maps all others at once."
                yield replace(edit, notes=(*edit.notes, at_once))
        if self._continues(labels):
            number = max(list_stored_values(facts) - {VOID}, default=0) + 1
            counted = more_classes(facts, number, f'Are {seen[0]} to {number - 1} classes, too?')
            beyond = sorted({value for split in splits_of(facts) for value in split.values} - {VOID})
            named = len(labels.class_names) == labels.num_classes
            first = f'0 to {labels.num_classes - 1}'
            question = f'Do you want {first} only, and no others?'
            if named:
                wanted = listing(labels.class_names)
                question = f'Are {first} in the files {wanted}, in this order, and the others not wanted?'
            others = renumber(facts, dict.fromkeys(beyond, void), ASKS, question)
            # With as many names as the head has classes, more are not wanted.
            if named:
                yield from others
                yield counted
            else:
                yield counted
                yield from others
            if labels.num_classes == 2 and VOID not in list_stored_values(facts):
                question = 'Is every value above 0 the same class (numbers of objects, or of annotators)?'
                yield from convert_files(
                    facts, 'Rewrite the files, every value above 0 as 1.', ASKS, question, threshold=0
                )
        if not lacking and share(sum(labels.values.values()), sum(trained(labels).values())) <= MUCH:
            question = f'Does {listing(seen)} mean no class (void, or slips of an annotator)?'
            yield from renumber(facts, dict.fromkeys(seen, void), ASKS, question)

    def evidence(self, facts: LabelFacts) -> str:
        lacking = _find_unmapped(facts)
        return f'{facts.evidence}; label_map does not name {listing(lacking)}' if lacking else facts.evidence

    def _continues(self, facts: LabelFacts) -> bool:
        """True if the labels continue after num_classes, in many files: classes, not slips."""
        ids = ids_of(trained(facts))
        whole = is_whole(facts) and ids == set(range(len(ids)))
        return whole and len(facts.values) > 1 and not is_rare(facts) and set(facts.values) <= ids

    def _find_known_set(self, facts: LabelFacts) -> Tuple[str, int]:
        """Return a well-known data set whose numbers the files hold, and how many these are."""
        title, number = (
            set_of_numbers(ids_of(trained(facts))) if is_whole(facts) and facts.kind == 'pixels' else ('', 0)
        )
        return (title, number) if len(facts.values) > 2 else ('', 0)


def _find_unmapped(facts: LabelFacts) -> List[int]:
    """Return the values that a label map lacks, if there is one for several of them."""
    label_map = config_of(facts).label_map
    return sorted(set(facts.values) - set(label_map)) if len(label_map) > 1 and facts.kind == 'pixels' else []


class NegativeLabels(DataRule):
    """Labels below 0."""

    code = 'MG105'
    kinds = ('pixels', 'instances')
    summary = 'Labels below 0.'
    title = 'Labels below 0: {values}.'
    why = 'A negative label is out of range in a softmax loss, and counts from the end where it indexes a table.'
    example = Example(
        wrong='label - 1 in a transform of your own, reduce_zero_label=True in the data set',
        right='reduce_zero_label=True, without the transform',
    )
    limits = 'It cannot tell an ignored value from a label that was shifted twice.'
    advice = (
        'Find what makes them: an ignored value of another framework, a label_map that leads below 0, or 1 subtracted '
        'from labels that count from 0. Keep only one shift. If -1 marks ignored pixels, map it: `label_map={{-1: '
        '{void}}}`. A box with such a label is not an object: delete it.'
    )
    pytorch = (
        'Find what makes them. If 1 is subtracted from ids that count from 0, do not subtract it. If such pixels are '
        'ignored, pass one ignore_index to loss, metric and transforms, and map {values} to it if another value is '
        'ignored already. A detector has no ignored label: delete such boxes.'
    )

    def certainty(self, facts: LabelFacts) -> Optional[str]:
        return PROVEN if all(value < 0 for value in facts.values) else None
