from __future__ import annotations

from dataclasses import replace
from typing import Dict, Iterator, Optional

from mmguard.config.classes import starts_with_background
from mmguard.findings.edits import ASKS, SAFE, Edit
from mmguard.findings.facts import AnnotationFacts, LabelFacts
from mmguard.findings.file_edits import rewrite
from mmguard.findings.finding import PROVEN, Finding
from mmguard.findings.map_edits import renumbered, shifted, stored_in_all
from mmguard.findings.rule import DataRule, Facts
from mmguard.findings.rules.labels.yolo.base import counted_from_zero
from mmguard.findings.views import VOID, annotations_of, as_map, ids_of, is_whole, trained
from mmguard.text.short import short


class CountsFromOne(DataRule):
    """Labels 1..N where 0..N-1 are meant."""

    code = 'MG115'
    kinds = ('pixels', 'instances')
    needs = ('histogram',)
    summary = 'The labels count from 1: {least}..{most}, 0 never occurs, but num_classes={num_classes} means 0..{last}.'
    why = 'Every class is trained as its neighbour, the first class never, and the last one is out of range.'
    advice = (
        'Write `reduce_zero_label=True` in the dataset (mmseg subtracts 1 and ignores 0), or '
        '`label_map={pairs}` in GuardSegLabels. Do not raise num_classes: class 0 would stay empty.'
    )
    instances = (
        "Renumber the category ids to 0..{last} (subtract 1), or use a data set class that does, as mmdet's "
        'CocoDataset. DETR and its like take ids as they are: there write `num_classes={most_and_one}`, the highest '
        'id + 1.'
    )

    def certainty(self, facts: LabelFacts) -> Optional[str]:
        ids = ids_of(trained(facts))
        if not is_whole(facts) or 0 in ids or 1 not in ids or any(value < 0 for value in facts.values):
            return None
        most, last = max(ids), facts.num_classes - 1
        return PROVEN if last < most <= last + 2 and len(ids) >= 0.5 * most else None

    otherwise = (
        'Look at the class list, and at a file of each split: some count from 1 and others from 0, or the background, '
        '0, was never drawn.'
    )

    def edits(self, finding: Finding, facts: Facts) -> Iterator[Edit]:
        labels = facts.labels
        if labels is None or labels.kind != 'pixels':
            yield from self._without_first(facts)
            yield from counted_from_zero(self, facts)
            return
        most = max(ids_of(trained(labels)))
        clear = most == labels.num_classes and not starts_with_background(labels.class_names)
        asked = f'Is 0 no class, and are 1 to {labels.num_classes} the classes, in this order'
        question = '' if clear else f'{asked}?'
        if most > labels.num_classes:  # what lies behind the last class has none
            void = VOID if labels.ignore_index is None else labels.ignore_index
            ids = ids_of(trained(labels)) | ids_of(dict.fromkeys(stored_in_all(facts), 1))
            table = {value: value - 1 if value <= labels.num_classes else void for value in ids if value}
            yield from renumbered(facts, table, ASKS, f'{asked}, and is what lies above them void?')
        elif facts.config is None:
            ids = ids_of(dict.fromkeys(stored_in_all(facts), 1))
            table = {value: value - 1 for value in ids if 0 < value <= most}
            for edit in renumbered(facts, table, SAFE if clear else ASKS, question):
                note = 'In an mmseg config reduce_zero_label=True does the same.'
                yield replace(edit, notes=(*edit.notes, note))
        else:
            yield from shifted(facts, SAFE if clear else ASKS, question)
            # Where the config must say the same of all splits.
            table = {value: value - 1 for value in ids_of(trained(labels)) if value}
            yield from renumbered(facts, table, SAFE if clear else ASKS, question)

    def _without_first(self, facts: Facts) -> Iterator[Edit]:
        """Where category ids are labels: a category 0 without annotations is left out, or kept and counted."""
        found = AnnotationFacts() if facts.labels is None else annotations_of(facts.labels)
        if found.labelled_by != 'category id' or 0 not in found.categories:
            return
        others = [name for number, name in sorted(found.categories.items()) if number]
        question = f'Is category 0, {short(found.categories[0])}, which no annotation has, no class?'
        title = 'Leave it out, and number the others from 0.'
        yield from rewrite(self, facts, title, ASKS, question, classes=others, renumber=0)
        enough = max(found.categories) + 1
        yield Edit(
            'Give the model as many outputs as the highest id, and one more.',
            ASKS,
            'Shall the ids stay as they are?',
            options=(('num_classes', enough),),
            lines=(f'num_classes={enough}',),
        )

    def words(self, facts: LabelFacts) -> Dict[str, object]:
        ids = ids_of(trained(facts)) or {1}
        pairs = {value: value - 1 for value in sorted(ids)}
        return {'least': min(ids), 'most': max(ids), 'most_and_one': max(ids) + 1, 'pairs': as_map(pairs)}

    def advise(self, facts: LabelFacts) -> str:
        return self.instances if facts.kind == 'instances' else self.advice
