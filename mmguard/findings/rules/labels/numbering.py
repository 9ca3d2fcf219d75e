"""Numberings with another start, with gaps, or from a database."""

from __future__ import annotations

from dataclasses import replace
from typing import Iterator, Sequence

from mmguard.config.classes import starts_with_background
from mmguard.facts.labels import LabelFacts
from mmguard.findings.edits import Edit
from mmguard.findings.file_edits import number_rows, rewrite, subtract_one
from mmguard.findings.finding import Finding
from mmguard.findings.map_edits import list_splits, list_stored_values, renumber, shift_down
from mmguard.findings.patterns import OutsideRule, are_far, list_ids
from mmguard.findings.rule import DataRule, Example, Facts
from mmguard.findings.views import (
    compute_share,
    count_trained,
    find_files_named,
    get_annotations,
    join_items,
    rate_share,
    rise_evenly,
    select_ids,
)
from mmguard.language import Message
from mmguard.text import shorten


class CountsFromOne(OutsideRule):
    """Labels 1..N where 0..N-1 are expected."""

    code = 'MG115'
    follows = ('MG102', 'MG107', 'MG116')
    needs = ('histogram',)
    summary = 'The labels count from 1, but classes count from 0.'
    title = 'The labels count from 1: {least}..{most}, 0 never occurs, but num_classes={num_classes} means 0..{last}.'
    why = 'Every class is trained as its neighbor, the first class is never trained, and the last one is out of range.'
    example = Example(wrong='labels 1..19, num_classes=19', right='reduce_zero_label=True  # 0..18, and 0 becomes 255')
    limits = 'Labels whose class 0 (often the background) was never drawn look the same: its edits ask.'
    advice = (
        'If 1 is the first class, write `reduce_zero_label=True` in the dataset (mmseg subtracts 1 and ignores 0), '
        'or renumber category ids to 0..{last}. If 0 is a class or the background that was never drawn, count it: '
        '`num_classes={enough}`.'
    )
    pytorch = (
        'If 1 is the first class, subtract 1 from every label that is not ignored. If 0 is a class that never occurs, '
        'or the background (as in torchvision detectors), the model needs {beyond} outputs.'
    )

    def offer(self, facts: Facts, labels: LabelFacts) -> Iterator[Edit]:
        if labels.kind != 'pixels':
            yield from self._drop_first(facts, labels)
            yield from subtract_one(self, facts)
            return
        most = max(select_ids(count_trained(labels)))
        clear = most == labels.num_classes and not starts_with_background(labels.class_names)
        question = (
            ''
            if clear
            else Message(
                'Are 1 to {num_classes} the classes, in the order of your list?', num_classes=labels.num_classes
            )
        )
        if facts.config is None:
            table = {value: value - 1 for value in select_ids(list_stored_values(facts)) if 0 < value <= most}
            for edit in renumber(facts, table, question):
                note = 'In an mmseg config reduce_zero_label=True does the same.'
                yield replace(edit, notes=(*edit.notes, note))
        else:
            yield from shift_down(facts, question)
            # If the config must be consistent for all splits.
            table = {value: value - 1 for value in select_ids(count_trained(labels)) if value}
            yield from renumber(facts, table, question)

    def _drop_first(self, facts: Facts, labels: LabelFacts) -> Iterator[Edit]:
        """Yield edits that leave out an empty category 0, or count it, if category ids are labels."""
        found = get_annotations(labels)
        if found.labelled_by != 'category id' or 0 not in found.categories:
            return
        others = [name for number, name in sorted(found.categories.items()) if number]
        question = Message(
            'Can category 0, {name}, be removed (no annotation has it)?', name=shorten(found.categories[0])
        )
        title = 'Leave category 0 out, and number the others from 0.'
        yield from rewrite(self, facts, title, question, classes=others, renumber=0)
        enough = max(found.categories) + 1 - labels.coco.spare
        yield Edit(
            'Give the model one more output than the highest id.',
            'Should the ids remain unchanged?',
            options=(('num_classes', enough),),
            lines=(f'num_classes={enough}',),
        )


#: One of the gray levels of colors is at least as bright.
BRIGHT = 64


class GapsInIds(OutsideRule):
    """Ids with gaps whose number equals the number of classes."""

    code = 'MG116'
    follows = ('MG107',)
    aliases = ('MG118',)
    needs = ('values', 'histogram')
    summary = 'The ids have gaps: there are as many as classes, but the highest is out of range.'
    title = 'The ids have gaps: {ids} are {number} ids, but the highest is {most} and num_classes={num_classes}.'
    why = 'A loss indexes by label: ids above num_classes - 1 are out of range, however few ids there are.'
    example = Example(wrong='labels 0, 1, 4 with num_classes=3', right='label_map={4: 2}')
    limits = 'An id after the gap may also be void or a slip; its edit asks.'
    advice = (
        'If all ids are classes, renumber them in the order of the class list, with one table for all splits: '
        '`label_map={pairs}` in GuardSegLabels, in annotations the category ids. Do not raise num_classes to the '
        'highest id.'
    )
    advice_gray = (
        'The gray levels of colors have no order: `metainfo.palette` with the colors, in the order of the class '
        'list, lets `mmguard scan CONFIG` find the table. Do not raise num_classes to the highest level.'
    )

    def offer(self, facts: Facts, labels: LabelFacts) -> Iterator[Edit]:
        if labels.kind != 'pixels':
            yield from number_rows(self, facts)
            return
        # One table for all splits: an id may be missing in one of them.
        ids = sorted({value for split in list_splits(facts) for value in list_ids(split)})
        if len(ids) == labels.num_classes and not _are_gray(labels, ids):
            table = {value: label for label, value in enumerate(ids) if value != label}
            question = Message('Are the classes, in the order of your list, {ids}?', ids=join_items(ids))
            yield from renumber(facts, table, question)

    def advise(self, facts: Facts) -> str:
        is_gray = facts.labels is not None and _are_gray(facts.labels, list_ids(facts.labels))
        return self.advice_gray if is_gray else super().advise(facts)


def _are_gray(labels: LabelFacts, ids: Sequence[int]) -> bool:
    """Return True if these may be the gray levels of colors, whose order is not that of the classes."""
    return labels.kind == 'pixels' and ids[-1] >= BRIGHT and are_far(ids) and not rise_evenly(ids)


#: Ids from here on exceed the number of classes of any model.
HUGE = 5000


class HugeIds(DataRule):
    """Ids of database rows, instances or panoptic segments."""

    code = 'MG137'
    follows = ('MG106', 'MG107', 'MG138', 'MG581')
    kinds = ('pixels', 'instances')
    summary = 'Ids of a database, of instances or of segments are used as class labels.'
    title = 'Ids such as {values} are not class labels.'
    why = (
        'They were not renumbered to 0..N-1, so a lookup by label fails. On a GPU the error appears later and '
        'elsewhere, for instance as an assertion about boxes that are right.'
    )
    example = Example(wrong='"category_id": 90000417', right='"category_id": 3')
    limits = 'Ids below 5,000 are left to other rules.'
    advice = (
        'Renumber the ids to 0..{last}, `label = sorted(cat_ids).index(cat_id)`, or use a data set class that does '
        'so (CocoDataset of mmdet). Label maps of instance or panoptic ids are the wrong files: use '
        '*_gtFine_labelTrainIds.png of Cityscapes, segments_info of COCO panoptic.'
    )
    pytorch = (
        'Renumber the ids to 0..{last} when the data set is read (torchvision detectors count from 1): label = '
        'sorted(cat_ids).index(cat_id). Masks of instance or panoptic ids need a table to classes.'
    )

    def look(self, facts: Facts, labels: LabelFacts) -> Iterator[Finding]:
        huge = [value for value in labels.values if value >= HUGE]
        certainty = rate_share(compute_share(len(huge), len(labels.values)))
        if certainty is not None:
            yield self.report_in(facts, certainty, files=find_files_named(labels, '_instanceids') or None)

    def offer(self, facts: Facts, labels: LabelFacts) -> Iterator[Edit]:
        if labels.annotations is not None:
            first = labels.coco.min_label
            title = f'Renumber the categories from {first}, and leave the boxes as they are.'
            yield from rewrite(self, facts, title, renumber=first)
