from __future__ import annotations

from dataclasses import replace
from typing import Dict, Iterator, List, Optional, Tuple

from mmguard.findings.edits import ASKS, Edit
from mmguard.findings.facts import LabelFacts
from mmguard.findings.finding import POSSIBLE, PROVEN, Finding
from mmguard.findings.known_sets import set_of_numbers
from mmguard.findings.map_edits import converted_files, more_classes, renumbered, splits_of, stored_in_all
from mmguard.findings.rule import DataRule, Facts
from mmguard.findings.rules.labels.yolo.base import without_labels
from mmguard.findings.views import (
    VOID,
    as_map,
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
    """The rest: values beyond the classes, without a known pattern."""

    code = 'MG107'
    kinds = ('pixels', 'instances')
    summary = 'Labels outside 0..{last}: {values}.'
    why = (
        'Stock losses index by label: a device-side assert, or, in focal losses without a range check, a training '
        'that runs and learns something wrong.'
    )
    advice = (
        'Look at the files: labels must be 0..{last} or the ignored value. A slip of the annotator is corrected, or '
        'left out with `label_map={ignored}`; a class is listed in metainfo.classes and counted in num_classes of '
        'every head. Another numbering is written as label_map, value: class.'
    )
    instances = (
        'Look at the annotations: labels must be 0..{last}. A slip is corrected, or left out with '
        "`dict(type='GuardInstanceLabels', num_classes={num_classes}, on_invalid='drop')`; a class is listed in "
        'metainfo.classes and counted in num_classes of every head. Another numbering is written as label_map, '
        'label: class.'
    )

    many = (
        'The files hold {number} labels without a gap, 0..{most}; the head knows {num_classes} of them. If all are '
        'classes, write `num_classes={number}` in every head (aux heads, too), and list {number} names in '
        '`metainfo=dict(classes=(...))`. Those that are none are mapped to the ignored label: `label_map={{{most}: '
        '{void}}}`, one entry each.'
    )

    numbered = (
        'These are as many numbers as {known} has, {known_number}: those below {num_classes} mean other classes '
        'than yours, so no label is right, not even a valid one. Write a whole table from its numbers to your classes: '
        "`label_map={{number: class, '*': {void}}}`. Who trains its own classes counts all {known_number} of them."
    )

    otherwise = (
        'Look at the files named above: is the value a slip, void, or a class? What fills much of the pixels is a '
        'class that the config does not count, or another numbering.'
    )

    def certainty(self, facts: LabelFacts) -> Optional[str]:
        return PROVEN if self._known(facts)[0] else POSSIBLE

    def edits(self, finding: Finding, facts: Facts) -> Iterator[Edit]:
        labels = facts.labels
        if labels is None or labels.kind != 'pixels':
            yield from without_labels(self, facts)
            return
        if self._known(labels)[0]:
            return  # which class a number is, only the table of both lists says
        seen = sorted(labels.values)
        void = VOID if labels.ignore_index is None else labels.ignore_index
        lacking = _not_in_map(labels)
        if lacking:
            question = f'label_map does not name {listing(lacking)}: do they stand for nothing?'
            for edit in renumbered(facts, dict.fromkeys(seen, void), ASKS, question):
                at_once = f"'*': {void} in a label_map says so of all others at once."
                yield replace(edit, notes=(*edit.notes, at_once))
        if self._continues(labels):
            number = max(stored_in_all(facts) - {VOID}, default=0) + 1
            counted = more_classes(facts, number, f'Are {seen[0]} to {number - 1} classes, too?')
            beyond = sorted({value for split in splits_of(facts) for value in split.values} - {VOID})
            named = len(labels.class_names) == labels.num_classes
            first = f'0 to {labels.num_classes - 1}'
            question = f'Do you want {first} alone, and none of the others?'
            if named:
                wanted = listing(labels.class_names)
                question = f'Are {first} in the files {wanted}, in this order, and is none of the others wanted?'
            others = renumbered(facts, dict.fromkeys(beyond, void), ASKS, question)
            # Who named as many classes as the head has wants no more of them.
            if named:
                yield from others
                yield counted
            else:
                yield counted
                yield from others
            if labels.num_classes == 2 and VOID not in stored_in_all(facts):
                question = 'Is every value above 0 the same class (numbers of objects, or of annotators)?'
                yield from converted_files(
                    facts, 'Rewrite the files, every value above 0 as 1.', ASKS, question, threshold=0
                )
        if not lacking and share(sum(labels.values.values()), sum(trained(labels).values())) <= MUCH:
            question = f'Does {listing(seen)} stand for nothing (void, or slips of an annotator)?'
            yield from renumbered(facts, dict.fromkeys(seen, void), ASKS, question)

    def evidence(self, facts: LabelFacts) -> str:
        lacking = _not_in_map(facts)
        return f'{facts.evidence}; label_map does not name {listing(lacking)}' if lacking else facts.evidence

    def advise(self, facts: LabelFacts) -> str:
        if facts.kind == 'instances':
            return self.instances
        if self._known(facts)[0]:
            return self.numbered
        return self.many if self._continues(facts) else self.advice

    def _continues(self, facts: LabelFacts) -> bool:
        """Whether the labels simply go on behind num_classes, in many files: classes, and no slips."""
        ids = ids_of(trained(facts))
        whole = is_whole(facts) and ids == set(range(len(ids)))
        return whole and len(facts.values) > 1 and not is_rare(facts) and set(facts.values) <= ids

    def _known(self, facts: LabelFacts) -> Tuple[str, int]:
        """A well-known data set whose numbers the files hold, and how many they are; the head has far fewer classes."""
        title, number = (
            set_of_numbers(ids_of(trained(facts))) if is_whole(facts) and facts.kind == 'pixels' else ('', 0)
        )
        return (title, number) if len(facts.values) > 2 else ('', 0)

    def words(self, facts: LabelFacts) -> Dict[str, object]:
        void = 255 if facts.ignore_index is None else facts.ignore_index
        most = max(ids_of(trained(facts)), default=0)
        known, known_number = self._known(facts)
        return {
            'known': known,
            'known_number': known_number,
            'void': void,
            'number': most + 1,
            'most': most,
            'ignored': as_map(dict.fromkeys(facts.values, void), 8),
        }


def _not_in_map(facts: LabelFacts) -> List[int]:
    """The values that a label map lacks, where there is one for more than a few of them."""
    label_map = config_of(facts).label_map
    return sorted(set(facts.values) - set(label_map)) if len(label_map) > 1 and facts.kind == 'pixels' else []
