"""Rules about labels that count from 1, have gaps or another order, or are ids of a database."""

from __future__ import annotations

from dataclasses import replace
from typing import Dict, Iterator, List, Optional, Sequence, Tuple

from mmguard.facts.labels import LabelFacts
from mmguard.findings.config_edits import set_classes, state_num_classes
from mmguard.findings.edits import Edit
from mmguard.findings.file_edits import (
    list_splits,
    list_stored_values,
    number_rows,
    renumber,
    rewrite,
    shift_down,
    subtract_one,
)
from mmguard.findings.finding import ERROR, LIKELY, POSSIBLE, PROVEN, WARNING, Finding
from mmguard.findings.rule import AnnotationRule, DataRule, Example, Facts
from mmguard.findings.rules.labels.out_of_range import OutsideRule, are_far, list_ids
from mmguard.findings.views import (
    compute_share,
    count_trained,
    find_class_lists,
    find_files_named,
    get_annotations,
    is_trained_on,
    join_items,
    rate_share,
    rise_evenly,
    select_ids,
    starts_with_background,
)
from mmguard.language import Message
from mmguard.text import shorten


class CountsFromOne(OutsideRule):
    code = 'MG115'
    follows = ('MG102', 'MG107', 'MG116')
    needs = ('above_last',)
    summary = 'The labels count from 1, but classes count from 0.'
    title = 'The labels count from 1 ({least}..{most}, without 0), but num_classes={num_classes} means 0..{last}.'
    why = 'Every class is trained as the next class, output 0 is never trained, and the last class is out of range.'
    example = Example(wrong='labels 1..19, num_classes=19', right='reduce_zero_label=True  # 0..18, and 0 becomes 255')
    limits = 'If class 0 (often the background) was never drawn, labels begin with 1, too: each edit asks what 1 means.'
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
        text = 'Are 1 to {num_classes} the classes, in the order of your class list?'
        question = '' if clear else Message(text, num_classes=labels.num_classes)
        if facts.config is None:
            table = {value: value - 1 for value in select_ids(list_stored_values(facts)) if 0 < value <= most}
            for edit in renumber(facts, table, question):
                note = 'In an mmseg config reduce_zero_label=True does the same.'
                yield replace(edit, notes=(*edit.notes, note))
        else:
            yield from shift_down(facts, question)
            # Unlike reduce_zero_label, a label_map may differ between splits.
            table = {value: value - 1 for value in select_ids(count_trained(labels)) if value}
            yield from renumber(facts, table, question)

    def _drop_first(self, facts: Facts, labels: LabelFacts) -> Iterator[Edit]:
        """Yield edits that remove an unused category 0, or count it in ``num_classes``, if category ids are labels."""
        found = get_annotations(labels)
        if found.labelled_by != 'category id' or 0 not in found.categories:
            return
        others = [name for number, name in sorted(found.categories.items()) if number]
        question = Message(
            'Can category 0, {name}, be removed (no annotation has it)?', name=shorten(found.categories[0])
        )
        title = 'Leave category 0 out, and number the others from 0.'
        yield from rewrite(self, facts, title, question, classes=tuple(others), renumber=0)
        enough = max(found.categories) + 1 - labels.coco.spare
        title = 'Give the model an output for each id from 0 to the highest.'
        yield state_num_classes(Edit(title, 'Should the ids remain unchanged?'), enough)


#: Minimum value of the highest gray level of colors.
BRIGHT = 64


class GapsInIds(OutsideRule):
    code = 'MG116'
    follows = ('MG107',)
    aliases = ('MG118',)
    needs = ('values', 'histogram')
    summary = 'The ids have gaps: their number equals num_classes, but the highest is out of range.'
    title = 'The ids have gaps: {ids} are {number} ids, but the highest is {most} and num_classes={num_classes}.'
    why = 'A loss indexes by label: ids above num_classes - 1 are out of range, however few ids there are.'
    example = Example(wrong='labels 0, 1, 4 with num_classes=3', right='label_map={4: 2}')
    limits = 'An id after the gap may also be void (unlabeled) or a mistake: the edit asks if all ids are classes.'
    advice = (
        'If all ids are classes, renumber them in the order of the class list, with one table for all splits: '
        '`label_map={pairs}` in GuardSegLabels, or new category ids in annotation files. Do not raise num_classes to '
        'the highest id.'
    )
    advice_gray = (
        'Write the colors as `metainfo.palette`, in the order of the class list: `mmguard scan CONFIG` then finds the '
        'label of each gray level. Do not raise num_classes to the highest level.'
    )

    def offer(self, facts: Facts, labels: LabelFacts) -> Iterator[Edit]:
        if labels.kind != 'pixels':
            yield from number_rows(self, facts)
            return
        # One table for all splits: an id may be missing in one of them.
        ids = sorted({value for split in list_splits(facts) for value in list_ids(split)})
        if len(ids) == labels.num_classes and not _are_gray(labels, ids):
            table = {value: label for label, value in enumerate(ids) if value != label}
            question = Message('Are {ids} the classes, in the order of your class list?', ids=join_items(ids))
            yield from renumber(facts, table, question)

    def advise(self, facts: Facts) -> str:
        is_gray = facts.labels is not None and _are_gray(facts.labels, list_ids(facts.labels))
        return self.advice_gray if is_gray else super().advise(facts)


def _are_gray(labels: LabelFacts, ids: Sequence[int]) -> bool:
    """Return True if ``ids`` may be gray levels of colors, which do not follow the order of the classes."""
    return labels.kind == 'pixels' and ids[-1] >= BRIGHT and are_far(ids) and not rise_evenly(ids)


#: Lowest id that exceeds the number of classes of any model.
HUGE = 5000


class HugeIds(DataRule):
    code = 'MG137'
    follows = ('MG106', 'MG107', 'MG138', 'MG581')
    kinds = ('pixels', 'instances')
    summary = 'Ids of a database, of instances or of segments are used as class labels.'
    title = 'Ids such as {values} are not class labels.'
    why = (
        'The ids were not renumbered to 0..N-1, so a lookup by label fails. On a GPU the error appears later and '
        'elsewhere, for instance as an assertion about valid boxes.'
    )
    example = Example(wrong='"category_id": 90000417', right='"category_id": 3')
    limits = 'Only ids of at least 5,000 are checked here; other rules check lower ids.'
    advice = (
        'Renumber the ids to 0..{last}, `label = sorted(cat_ids).index(cat_id)`, or use a reader that does so '
        '(CocoDataset of mmdet). Label maps of instance or panoptic ids are the wrong files: in Cityscapes use '
        '*_gtFine_labelTrainIds.png, in COCO panoptic the classes in segments_info.'
    )
    pytorch = (
        'Renumber the ids to 0..{last} when the data set is read (torchvision detectors count from 1): label = '
        'sorted(cat_ids).index(cat_id). Masks of instance or panoptic ids need a table from id to class.'
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


class OrderDiffers(AnnotationRule):
    code = 'MG141'
    follows = ('MG161',)
    needs = ('annotations', 'has_config or coco.renamed or annotations.unordered_ids')
    summary = 'The classes of the config are in a different order from the categories of the file.'
    title_texts = (
        'The file lists its category ids sorted as strings, {ids}: their positions differ from their numeric order.'
    )
    title_part = (
        'The file lists {number} of {num_classes} categories, which are numbered by position: id {id} becomes label '
        '{label} here, but another label in a file with other categories.'
    )
    title_joined = 'Files that are trained together list different categories: one label means several classes.'
    why = (
        "mmdet's CocoDataset numbers categories in the order of the file, whatever the order of metainfo.classes: the "
        'results are right, but carry the names of other classes. detectron2 and YOLOX number categories by id.'
    )
    example = Example(
        wrong="metainfo=dict(classes=('dog', 'cat')) for categories cat, dog",
        right="metainfo=dict(classes=('cat', 'dog'))",
    )
    limits = 'Only names and order are compared; the order that a checkpoint was trained with is not known.'
    advice = (
        'List the same categories, in the order that the training uses, in all annotation files and in '
        '`metainfo=dict(classes=(...))`. If you train without mmdet, name the framework: `--framework NAME`.'
    )

    def look(self, facts: Facts, labels: LabelFacts) -> Iterator[Finding]:
        displaced, ids = self._find_displaced(labels), list(get_annotations(labels).categories)
        is_sorted_as_texts = ids != sorted(ids) and ids == sorted(ids, key=str)  # 1, 10, 2
        evidence = f'category ids in the file: {join_items(ids)}'
        if displaced is not None:
            path, names, ordered = displaced
            wrong = [
                f'label {i} is {shorten(b)} in the file, {shorten(a)} in {path}'
                for i, (a, b) in enumerate(zip(names, ordered))
                if a != b
            ]
            texts = '; the file lists its ids sorted as strings: 1, 10, 2' if is_sorted_as_texts else ''
            yield self.report_in(facts, PROVEN, join_items(wrong, 3) + texts)
        elif self._find_joined(labels):
            evidence, follow = join_items(self._find_joined(labels), 3), (*self.follows, 'MG135')
            yield self.report_in(facts, PROVEN, evidence, title=self.title_joined, follows=follow)
        elif is_part_of_a_list(labels):
            words = {'number': len(ids), 'id': ids[-1], 'label': len(ids) - 1}
            yield self.report_in(facts, LIKELY, evidence, words, self.title_part, WARNING)
        elif get_annotations(labels).labelled_by == 'unknown' and is_sorted_as_texts:
            yield self.report_in(facts, POSSIBLE, evidence, {'ids': join_items(ids, 4)}, self.title_texts, WARNING)

    def offer(self, facts: Facts, labels: LabelFacts) -> Iterator[Edit]:
        displaced = self._find_displaced(labels)
        if displaced is None and self._find_joined(labels):
            title = 'List the classes of the config in every file.'
            yield from rewrite(self, facts, title, classes=tuple(labels.class_names))
        if displaced is None or facts.config is None:
            return
        _, names, ordered = displaced
        if any(is_trained_on(split.labels) for split in (facts, *facts.others) if split.labels is not None):
            yield set_classes(facts, ordered)  # otherwise the training decides the order
        # Disagreeing files all get the order of the config.
        yield from rewrite(self, facts, 'List the categories in the order of the config.', classes=tuple(names))

    def _find_displaced(self, labels: LabelFacts) -> Optional[Tuple[str, List[str], List[str]]]:
        """Return (config path, class list, class list in the file's order), or ``None`` if no order differs."""
        found = get_annotations(labels)
        if found.names_from != 'categories' or not labels.has_config or found.labelled_by == 'class list':
            return None
        known = [str(name) for name in found.categories.values()]
        lists = find_class_lists(labels)
        if labels.class_names:
            lists = {path: names for path, names in lists.items() if names == labels.class_names}
            lists = lists or {'metainfo.classes': labels.class_names}
        for path, names in lists.items():
            listed = set(names)
            ordered = [name for name in known if name in listed]
            if sorted(ordered) == sorted(names) and ordered != names:
                return path, names, ordered
            pairs = [(a, b) for _, a, b in labels.coco.renamed] if len(found.sources) > 1 else []
            there, here = zip(*pairs) if pairs else ((), ())
            if there and sorted(there) == sorted(here) and set(here) <= listed:
                other = dict(zip(here, there))  # one of the files that are trained together
                return path, names, [other.get(name, name) for name in names]
        return None

    def _find_joined(self, labels: LabelFacts) -> List[str]:
        """Return evidence for labels that mean different classes in files that are numbered separately."""
        found = get_annotations(labels)
        if len(found.sources) < 2 or (found.names_from, found.labelled_by) != ('categories', 'file order'):
            return []
        return [
            f'label {label} is {shorten(a)} in a file, {shorten(b)} in the class list'
            for label, a, b in labels.coco.renamed
        ]


def is_part_of_a_list(labels: LabelFacts) -> bool:
    """True if a file whose categories are numbered by position lists only some of the num_classes categories."""
    found = get_annotations(labels)
    is_by_position = (found.names_from, found.labelled_by) == ('categories', 'file order')
    if not is_by_position or found.classes_counted or labels.has_config:
        return False
    ids = sorted(found.categories)
    is_own_list = any(ids == list(range(first, first + len(ids))) for first in (0, 1))
    return not is_own_list and len(ids) < labels.num_classes and 0 < max(ids, default=0) <= labels.num_classes


class FilesDiffer(AnnotationRule):
    code = 'MG158'
    needs = ('annotations', 'coco.other_categories')
    summary = 'Two annotation files of one scan number the same names differently.'
    title = 'The same names have different ids or labels in {other}: {which}.'
    why = 'A loader numbers each file separately, so a label means different classes in training and validation.'
    example = Example(wrong='train.json: 1 cat, 2 dog; val.json: 1 dog, 2 cat', right='both: 1 cat, 2 dog')
    limits = 'A loader that looks up names, for example in a class list of its own, is not affected.'
    advice = (
        'Give each name the same id and position in "categories" of all files, and change category_id of the '
        'annotations accordingly. Renumber all splits together.'
    )

    def look(self, facts: Facts, labels: LabelFacts) -> Iterator[Finding]:
        for other, categories in labels.coco.other_categories.items():
            yield from self._compare(facts, labels, other, categories)

    def _compare(self, facts: Facts, labels: LabelFacts, other: str, categories: Dict[int, str]) -> Iterator[Finding]:
        found = get_annotations(labels)
        both = (found.categories, categories)
        ids = _list_moved(*({name: number for number, name in one.items()} for one in both))
        places = _list_moved(*({name: at for at, name in enumerate(one.values())} for one in both))
        by = {'category id': [('id', ids)], 'file order': [('label', places)]}
        # RF-DETR looks up ids of train.
        labelled_by = 'category id' if labels.coco.framework == 'rf-detr' else found.labelled_by
        for word, moved in by.get(labelled_by, [('id', ids), ('label', places)]):
            if moved:
                which = join_items((f'{shorten(name)}: {word} {here}, there {there}' for name, here, there in moved), 3)
                is_sure = word == 'id' or found.labelled_by == 'file order'
                certainty, severity = (PROVEN, ERROR) if is_sure else (POSSIBLE, WARNING)
                words = {'other': other, 'which': which}
                yield self.report_in(facts, certainty, which, words, severity=severity, files=found.sources)
                return


def _list_moved(here: Dict[str, int], there: Dict[str, int]) -> List[Tuple[str, int, int]]:
    return [(name, here[name], there[name]) for name in here if there.get(name, here[name]) != here[name]]
