from __future__ import annotations

from dataclasses import replace
from typing import Dict, Iterator, Optional

from mmguard.config.classes import starts_with_background
from mmguard.findings.edits import ASKS, SAFE, Edit
from mmguard.findings.facts import AnnotationFacts, LabelFacts
from mmguard.findings.file_edits import rewrite
from mmguard.findings.finding import PROVEN, Finding
from mmguard.findings.map_edits import list_stored_values, more_classes, renumber, shift_down
from mmguard.findings.rule import DataRule, Example, Facts
from mmguard.findings.rules.labels.yolo.base import subtract_one
from mmguard.findings.usual_edits import both
from mmguard.findings.views import VOID, annotations_of, ids_of, is_whole, trained
from mmguard.text import shorten


class CountsFromOne(DataRule):
    """Labels 1..N where 0..N-1 are meant."""

    code = 'MG115'
    kinds = ('pixels', 'instances')
    needs = ('histogram',)
    summary = 'The labels count from 1, but classes count from 0.'
    title = 'The labels count from 1: {least}..{most}, 0 never occurs, but num_classes={num_classes} means 0..{last}.'
    why = 'Every class is trained as its neighbour, the first class never, and the last one is out of range.'
    example = Example(wrong='labels 1..19, num_classes=19', right='reduce_zero_label=True  # 0..18, and 0 becomes 255')
    limits = 'Labels whose class 0 (often the background) was never drawn look the same: its edits ask.'
    advice = (
        'Look at the class list, and at a file of each split. If 1 is the first class, write `reduce_zero_label=True` '
        'in the dataset (mmseg subtracts 1 and ignores 0); category ids are renumbered to 0..{last}, or the model gets '
        '{enough} outputs where it takes ids as labels. If 0 is a class or the background that was never '
        'drawn, count it: `num_classes={enough}`.'
    )
    pytorch = (
        'If 1 is the first class, subtract 1 from every label that is not ignored. If 0 is a class that never occurs, '
        'or the background (as in torchvision detectors), the model needs {beyond} outputs.'
    )

    def certainty(self, facts: LabelFacts) -> Optional[str]:
        ids = ids_of(trained(facts))
        if not is_whole(facts) or 0 in ids or 1 not in ids or any(value < 0 for value in facts.values):
            return None
        most, last = max(ids), facts.num_classes - 1
        return PROVEN if last < most <= last + 2 and len(ids) >= 0.5 * most else None

    def edits(self, finding: Finding, facts: Facts) -> Iterator[Edit]:
        labels = facts.labels
        if labels is None or labels.kind != 'pixels':
            yield from self._drop_first(facts)
            yield from subtract_one(self, facts)
            return
        most = max(ids_of(trained(labels)))
        clear = most == labels.num_classes and not starts_with_background(labels.class_names)
        question = '' if clear else f'Are 1 to {labels.num_classes} the classes, in the order of your list?'
        if most > labels.num_classes:  # values above the last class have none
            void = VOID if labels.ignore_index is None else labels.ignore_index
            ids = ids_of(trained(labels)) | ids_of(dict.fromkeys(list_stored_values(facts), 1))
            table = {value: value - 1 if value <= labels.num_classes else void for value in ids if value}
            question = f'Are only 1 to {labels.num_classes} classes, and all values above them void?'
            every = {value: value - 1 for value in range(1, most + 1)}
            more = f'Subtract 1 and write num_classes={most} if all of 1 to {most} are classes.'
            more = more if every.keys() <= ids else ''
            yield from (replace(edit, if_not=more) for edit in renumber(facts, table, ASKS, question))
            counted = facts._replace(labels=replace(labels, num_classes=most))
            question = f'Are all of 1 to {most} classes, {most} in all?'
            for edit in renumber(counted, every, ASKS, question) if more else ():
                title = f'Subtract 1 from every label, and count {most} classes.'
                yield both(edit, more_classes(facts, most, question), title)
        elif facts.config is None:
            ids = ids_of(dict.fromkeys(list_stored_values(facts), 1))
            table = {value: value - 1 for value in ids if 0 < value <= most}
            for edit in renumber(facts, table, SAFE if clear else ASKS, question):
                note = 'In an mmseg config reduce_zero_label=True does the same.'
                yield replace(edit, notes=(*edit.notes, note))
        else:
            yield from shift_down(facts, SAFE if clear else ASKS, question)
            # Where the config must say the same of all splits.
            table = {value: value - 1 for value in ids_of(trained(labels)) if value}
            yield from renumber(facts, table, SAFE if clear else ASKS, question)

    def _drop_first(self, facts: Facts) -> Iterator[Edit]:
        """Leave out a category 0 without annotations, or count it, where category ids are labels."""
        found = AnnotationFacts() if facts.labels is None else annotations_of(facts.labels)
        if found.labelled_by != 'category id' or 0 not in found.categories:
            return
        others = [name for number, name in sorted(found.categories.items()) if number]
        question = f'May category 0, {shorten(found.categories[0])}, go (no annotation has it)?'
        title = 'Leave category 0 out, and number the others from 0.'
        yield from rewrite(self, facts, title, ASKS, question, classes=others, renumber=0)
        enough = max(found.categories) + 1
        yield Edit(
            'Give the model as many outputs as the highest id, and one more.',
            ASKS,
            'Shall the ids stay as they are?',
            options=(('num_classes', enough),),
            lines=(f'num_classes={enough}',),
        )

    def describe(self, facts: LabelFacts) -> Dict[str, object]:
        ids = ids_of(trained(facts)) or {1}
        return {'least': min(ids), 'most': max(ids), 'enough': max(ids) + 1}
