"""Category ids used as labels, looked up in COCO's, or in another order."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any, Dict, Iterator, List, Optional, Tuple

from mmguard.config.detr_yaml import fits_table, is_remapped
from mmguard.findings.class_edits import set_classes
from mmguard.findings.edits import ASKS, SAFE, Edit
from mmguard.findings.facts import AnnotationFacts, LabelFacts
from mmguard.findings.file_edits import rewrite
from mmguard.findings.finding import LIKELY, POSSIBLE, PROVEN, WARNING, Finding
from mmguard.findings.rule import AnnotationRule, DataRule, Example, Facts
from mmguard.findings.rules.labels.yolo import yolo_of
from mmguard.findings.views import (
    annotations_of,
    certainty_of_share,
    class_lists,
    config_of,
    has_config,
    is_trained_on,
    label_share,
    listing,
)
from mmguard.labels.numbering import COCO, COCO_IDS, IDS, POSITIONS, framework_titles
from mmguard.language import Message, join
from mmguard.text import quantity, shorten

#: Largest id for which models have outputs.
_MOST = 1000
#: Looking ids up in COCO's table trains other classes, often without an error.
_OWN_IDS = 'RT-DETR, D-FINE and DEIM need `remap_mscoco_category: False` for it.'
_ASKED = Message(
    'Does the training take ids as labels ({frameworks}, loops of your own)?', frameworks=framework_titles(IDS)
)


class IdsAsLabels(DataRule):
    """COCO category ids that are, or may be, used as labels."""

    code = 'MG138'
    kinds = ('instances',)
    needs = ('annotations',)
    summary = 'Category ids are used as labels, but they do not fit num_classes.'
    title = 'Category ids are used as labels: they are {ids}, but num_classes={num_classes} means {first}..{last}.'
    title_no_class = 'num_classes={num_classes} leaves no class for an object: the background counts as class 0 here.'
    title_needed = 'Labels are the category ids, {ids}: the outputs must reach to {highest}; the file has {number}.'
    title_ungrouped = (
        'RF-DETR up to 1.4 has no output for categories of the supercategory "none": {ungrouped} of {number}.'
    )
    title_background = 'Category id 0 is trained as background: torchvision keeps label 0 for it.'
    title_unknown = (
        'Category ids may be used as labels: with num_classes={num_classes}, {beyond} would be out of range. They '
        'are fine if the categories are renumbered.'
    )
    why = Message(
        '{by_position} renumber the categories to 0..N-1, whatever the ids are. {by_id} take category_id '
        'as the label: in DETR and its like label num_classes means "no object" and is trained so without an error, a '
        'larger one ends the run; in torchvision num_classes counts the background, 0.',
        by_position=framework_titles(POSITIONS),
        by_id=framework_titles(IDS),
    )
    example = Example(wrong='DETR: category ids 1..3, num_classes=3', right='num_classes=4  # the highest id + 1')
    limits = 'A loop of your own may renumber the ids: say so with `--labels positions`.'
    advice = (
        'Say what the training takes as labels: `--labels positions` (nothing needs to change then), `--labels ids` or '
        '`--framework NAME`.'
    )
    advice_ids = (
        'Where ids are labels, write the highest id + 1, `num_classes={enough}`, or renumber the ids from {first} '
        'without gaps. Torchvision trains id 0 as background (RetinaNet and FCOS do not): number from 1, and count the '
        'background.'
    )
    advice_ungrouped = 'For RF-DETR, upgrade it, or write another supercategory than "none" in the JSONs of all splits.'
    advice += f' {advice_ids} {advice_ungrouped}'

    def certainty(self, facts: LabelFacts) -> Optional[str]:
        found = annotations_of(facts)
        ids = self._ids(facts)
        if not found.categories or config_of(facts).framework == 'mmdet':
            return None
        if found.labelled_by == 'unknown':
            return POSSIBLE if self._count_beyond(facts) else None
        if found.labelled_by != 'category id':
            return None
        if self._is_background(facts):
            return PROVEN
        if facts.values:
            known = set() < set(facts.values) - set(found.unnamed) <= set(ids) and ids[-1] < _MOST
            return certainty_of_share(label_share(facts)) if known and ids != list(range(len(ids))) else None
        # RF-DETR counts the classes itself, and one more.
        counted = len(ids) + 1 - found.ungrouped if found.framework == 'rf-detr' else len(ids) + found.min_label
        return PROVEN if found.classes_counted and facts.num_classes > counted else None

    def choose_advice(self, facts: Facts) -> str:
        found = annotations_of(facts.labels) if facts.labels is not None else AnnotationFacts()
        if not found.framework:
            return self.advice
        return self.advice_ungrouped if self._are_left_out(found) else self.advice_ids

    def _are_left_out(self, found: AnnotationFacts) -> bool:
        """Return True if RF-DETR leaves out categories; one without a group is the root in Roboflow's exports."""
        return found.framework == 'rf-detr' and found.classes_counted and found.ungrouped > 1

    def severity_of(self, facts: LabelFacts) -> str:
        """Return a severity below error if the outcome depends on the unknown framework."""
        return 'error' if facts.values and annotations_of(facts).labelled_by != 'unknown' else 'info'

    def choose_title(self, facts: LabelFacts) -> str:
        if annotations_of(facts).labelled_by == 'unknown':
            return self.title_unknown
        if self._is_background(facts):
            return self.title_background
        if self._are_left_out(annotations_of(facts)):
            return self.title_ungrouped
        if facts.values and facts.num_classes <= annotations_of(facts).min_label:
            return self.title_no_class
        return self.title if facts.values else self.title_needed

    def offer(self, facts: Facts, labels: LabelFacts) -> Iterator[Edit]:
        if annotations_of(labels).classes_counted:
            return  # the number of classes of the model decides what is wrong
        is_unknown = annotations_of(labels).labelled_by == 'unknown'
        yield from self._fit_ids(facts, labels, _ASKED if is_unknown else '')
        if is_unknown:
            title = 'Change nothing, and say so: --labels positions, or --framework NAME.'
            question = Message('Are positions the labels ({frameworks})?', frameworks=framework_titles(POSITIONS))
            yield Edit(title, ASKS, question, options=(('labels', POSITIONS),))

    def _fit_ids(self, facts: Facts, labels: LabelFacts, question: str) -> Iterator[Edit]:
        first, ids = annotations_of(labels).min_label, self._ids(labels)
        contiguous = ids == list(range(first, first + len(ids)))
        if not contiguous:
            title: str = Message('Number the categories from {first}, in their order.', first=first)
            for edit in rewrite(self, facts, title, ASKS if question else SAFE, question, renumber=first):
                if not first:
                    edit = replace(edit, notes=(*edit.notes, _OWN_IDS))
                if self._is_background(labels):
                    enough = len(ids) + first  # counts the background
                    edit = replace(edit, lines=(f'num_classes={enough}',), options=(('num_classes', enough),))
                yield edit
        if set(ids) == set(COCO_IDS) and not first:
            title = 'Let the framework map the ids of COCO (RT-DETR, D-FINE, DEIM).'
            asked, lines = 'Does your training code know remap_mscoco_category?', ('remap_mscoco_category: True',)
            yield Edit(title, ASKS, asked, options=(('labels', COCO),), lines=lines)
        if not self._is_background(labels) and ids[-1] < _MOST:
            title = 'Give the model as many outputs as the highest id, and one more.'
            asked = question if contiguous else 'Shall the ids stay the labels as they are?'
            options, lines = (('num_classes', ids[-1] + 1),), (f'num_classes={ids[-1] + 1}',)
            notes = () if first else (_OWN_IDS,)
            yield Edit(title, ASKS if asked else SAFE, asked, options=options, lines=lines, notes=notes)

    def describe(self, facts: LabelFacts) -> Dict[str, object]:
        ids = self._ids(facts)
        return {
            'ids': listing(ids),
            'beyond': listing(self._count_beyond(facts)),
            'number': quantity(len(ids), 'category'),
            'first': annotations_of(facts).min_label,
            'ungrouped': annotations_of(facts).ungrouped,
            'highest': ids[-1],
            'enough': ids[-1] + 1,
        }

    def evidence(self, facts: LabelFacts) -> str:
        ids, beyond = listing(self._ids(facts)), self._count_beyond(facts)
        if self.severity_of(facts) == 'error':
            return facts.evidence
        if annotations_of(facts).labelled_by != 'unknown':
            return Message('category ids {ids} in {images}', ids=ids, images=quantity(facts.files, 'image'))
        classes = Message(
            '{classes}, 0..{last}', classes=quantity(facts.num_classes, 'class'), last=facts.num_classes - 1
        )
        number = quantity(sum(beyond.values()), 'annotation')
        raw = Message(' (those of COCO, with gaps)') if self._are_raw(self._ids(facts)) else ''
        return Message(
            'category ids {ids}{raw}; as labels of {classes}, {beyond} would be out of range ({number})',
            ids=ids,
            raw=raw,
            classes=classes,
            beyond=listing(beyond),
            number=number,
        )

    def _ids(self, facts: LabelFacts) -> List[int]:
        return sorted(annotations_of(facts).categories) or [0]

    def _count_beyond(self, facts: LabelFacts) -> Dict[int, int]:
        """Count the annotations of each id that would be out of range as a label."""
        instances = annotations_of(facts).instances_of
        counts = {number: instances.get(str(number), 0) for number in self._ids(facts)}
        return {number: n for number, n in counts.items() if n and not 0 <= number < facts.num_classes}

    def _are_raw(self, ids: List[int]) -> bool:
        """Return True if these are COCO's ids, with its gaps: so many other ids would fall into the gaps."""
        return len(ids) > len(COCO_IDS) / 2 and set(ids) <= set(COCO_IDS) and ids[-1] > len(ids)

    def _is_background(self, facts: LabelFacts) -> bool:
        return 0 in facts.values and annotations_of(facts).min_label > 0


class CocoIdsLookedUp(AnnotationRule):
    """``remap_mscoco_category: True`` with categories that are not COCO's."""

    code = 'MG162'
    kinds = ('instances',)
    looks_at = ('labels', 'config')
    summary = 'Labels are looked up in the table of the 80 ids of COCO, but the file has other categories.'
    title_converted = 'The label files name other classes than {source}, which has the same images and objects.'
    title_config = 'Labels are looked up among the 80 ids of COCO, but num_classes={number}: the data are not COCO.'
    why = (
        'With remap_mscoco_category: True RT-DETR, D-FINE and DEIM replace category_id by its place among the ids of '
        'COCO (1..90, ten of them missing). An id that is not one of those is a KeyError; the others get the '
        'labels of other classes, in training and in the evaluation. So does convert_coco of ultralytics, by default.'
    )
    example = Example(wrong='remap_mscoco_category: True, num_classes: 3', right='remap_mscoco_category: False')
    limits = 'Own categories whose ids are all among those of COCO are seen only if a label is out of range.'
    advice = (
        'In the YAML of RT-DETR, D-FINE or DEIM write `remap_mscoco_category: False`. Labels are then the ids, and '
        'num_classes is the highest id + 1: `mmguard scan CONFIG.yml` says which. If the ids have large gaps, number '
        'the categories from 0 first. Convert label files of YOLO again, with `convert_coco(..., cls91to80=False)`, '
        'and write `names` in the order of the ids.'
    )

    def find(self, facts: Facts) -> Iterator[Finding]:
        if facts.labels is not None:
            yield from super().find(facts)
        elif facts.config is not None and is_remapped(facts.config.data) and not fits_table(facts.config.file):
            number = facts.config.data['num_classes']
            yield self.report(f'num_classes: {number}', {'number': number}, self.title_config)

    def choose_title(self, facts: LabelFacts) -> str:
        return self.title_converted if yolo_of(facts).original else self.summary

    def describe(self, facts: LabelFacts) -> Dict[str, Any]:
        return {'source': original.source} if (original := yolo_of(facts).original) else {}

    def certainty(self, facts: LabelFacts) -> Optional[str]:
        original = yolo_of(facts).original
        if original is not None:
            return PROVEN if original.is_looked_up else LIKELY
        if annotations_of(facts).labelled_by != 'COCO ids':
            return None
        return PROVEN if self._unknown(facts) or facts.values else None

    def offer(self, facts: Facts, labels: LabelFacts) -> Iterator[Edit]:
        if yolo_of(labels).original is not None:
            return
        enough = max(annotations_of(labels).categories, default=0) + 1
        options: List[Tuple[str, Any]] = [('labels', IDS)]
        lines = ['remap_mscoco_category: False']
        if enough != labels.num_classes:
            options.append(('num_classes', enough))
            lines.append(f'num_classes: {enough}')
        title = 'Train on the ids of the file, with as many outputs as the highest id, and one more.'
        yield Edit(title, SAFE, options=tuple(options), lines=tuple(lines))

    def evidence(self, facts: LabelFacts) -> str:
        original = yolo_of(facts).original
        if original is not None:
            said = listing(
                Message('{name}: {here:,} here, {there:,} there', name=name, here=here, there=there)
                for name, (here, there) in original.counts.items()
            )
            also = [Message('the labels are places among the ids of COCO')] * original.is_looked_up
            return join('; ', [said, *also])
        unknown, number = self._unknown(facts), len(annotations_of(facts).categories)
        said = Message(
            '{categories}, ids {ids}',
            categories=quantity(number, 'category'),
            ids=listing(annotations_of(facts).categories),
        )
        if unknown:
            annotations = quantity(sum(unknown.values()), 'annotation')
            return Message(
                '{said}; not ids of COCO: {unknown} ({annotations})',
                said=said,
                unknown=listing(unknown),
                annotations=annotations,
            )
        return join('; ', (said, facts.evidence))

    def files(self, facts: LabelFacts) -> List[str]:
        return annotations_of(facts).sources

    def _unknown(self, facts: LabelFacts) -> Dict[int, int]:
        """Count the annotations of each id that COCO lacks."""
        found = annotations_of(facts)
        return {i: found.instances_of.get(str(i), 0) for i in found.categories if i not in COCO_IDS}


class OrderDiffers(AnnotationRule):
    """Config classes in a different order than the file's categories."""

    code = 'MG141'
    summary = 'The classes of the config are in another order than the categories of the file.'
    title_texts = (
        'The file lists its category ids sorted as texts, {ids}: their places differ from their order as numbers.'
    )
    title_part = (
        'The file lists {number} of {num_classes} categories, and they are renumbered by their places in it: id {id} '
        'becomes label {label}. In a file with other categories it becomes another.'
    )
    why = (
        "mmdet's CocoDataset numbers categories in the order of the file, whatever the order of classes: the results "
        'are right, but carry the names of other classes. detectron2 and YOLOX number by id.'
    )
    example = Example(
        wrong="metainfo=dict(classes=('dog', 'cat')) for categories cat, dog",
        right="metainfo=dict(classes=('cat', 'dog'))",
    )
    limits = 'It compares names and order; it does not know which order a checkpoint was trained with.'
    advice = (
        'List the same categories in the same order in all annotation files, that of the training, and write the '
        'classes of the config so: `metainfo=dict(classes=(...))`. To sort a file: `data["categories"].sort(key=lambda '
        'one: int(one["id"]))`. If you train without mmdet, say with what: `--framework NAME`.'
    )

    def offer(self, facts: Facts, labels: LabelFacts) -> Iterator[Edit]:
        displaced = self._find_displaced(labels)
        if displaced is None or facts.config is None:
            return
        _, names, ordered = displaced
        if any(is_trained_on(split.labels) for split in (facts, *facts.others) if split.labels is not None):
            yield set_classes(facts, ordered, SAFE)  # otherwise the training decides the order
        # Disagreeing files all get the order of the config.
        yield from rewrite(self, facts, 'List the categories in the order of the config.', SAFE, classes=names)

    def certainty(self, facts: LabelFacts) -> Optional[str]:
        if self._find_displaced(facts):
            return PROVEN
        if is_part_of_a_list(facts):
            return LIKELY
        return POSSIBLE if annotations_of(facts).labelled_by == 'unknown' and _is_sorted_as_texts(facts) else None

    def severity_of(self, facts: LabelFacts) -> str:
        return self.severity if self._find_displaced(facts) else WARNING

    def choose_title(self, facts: LabelFacts) -> str:
        if self._find_displaced(facts):
            return self.summary
        return self.title_part if is_part_of_a_list(facts) else self.title_texts

    def describe(self, facts: LabelFacts) -> Dict[str, Any]:
        ids = list(annotations_of(facts).categories) or [0]
        return {'ids': listing(ids, 4), 'number': len(ids), 'id': ids[-1], 'label': len(ids) - 1}

    def evidence(self, facts: LabelFacts) -> str:
        displaced = self._find_displaced(facts)
        if displaced is None:
            return f'category ids in the file: {listing(list(annotations_of(facts).categories))}'
        path, names, ordered = displaced
        wrong = [
            f'label {i} is {shorten(b)} in the file, {shorten(a)} in {path}'
            for i, (a, b) in enumerate(zip(names, ordered))
        ]
        texts = '; the file lists its ids as texts are sorted: 1, 10, 2' if _is_sorted_as_texts(facts) else ''
        if ordered == sorted(ordered) and _are_in_number_order(names):
            texts = '; the file lists its names as texts are sorted, the config by the numbers in them'
        return listing([text for text, a, b in zip(wrong, names, ordered) if a != b], 3) + texts

    def _find_displaced(self, facts: LabelFacts) -> Optional[Tuple[str, List[str], List[str]]]:
        """Return the path of the classes, the classes, and the same classes in file order."""
        found = annotations_of(facts)
        if found.names_from != 'categories' or not has_config(facts):
            return None
        known = [str(name) for name in annotations_of(facts).categories.values()]
        if annotations_of(facts).labelled_by == 'class list':
            return None
        lists = class_lists(facts)
        if facts.class_names:
            lists = {path: names for path, names in lists.items() if names == facts.class_names}
            lists = lists or {'metainfo.classes': facts.class_names}
        for path, names in lists.items():
            listed = set(names)
            ordered = [name for name in known if name in listed]
            if sorted(ordered) == sorted(names) and ordered != names:
                return path, names, ordered
            there, here = (
                zip(*((a, b) for _, a, b in found.renamed)) if len(found.sources) > 1 and found.renamed else ((), ())
            )
            if there and sorted(there) == sorted(here) and set(here) <= listed:
                other = dict(zip(here, there))  # one of the files that are trained together
                return path, names, [other.get(name, name) for name in names]
        return None


def is_part_of_a_list(facts: LabelFacts) -> bool:
    """True if the ids of a file, renumbered by its framework, are a subset of those counted by num_classes."""
    found = annotations_of(facts)
    ids = sorted(found.categories)
    if (
        found.names_from != 'categories'
        or found.labelled_by != 'file order'
        or found.classes_counted
        or has_config(facts)
    ):
        return False
    is_own_list = any(ids == list(range(first, first + len(ids))) for first in (0, 1))
    return not is_own_list and len(ids) < facts.num_classes and 0 < max(ids, default=0) <= facts.num_classes


def _are_in_number_order(names: List[str]) -> bool:
    """True if names that differ only in a number are in the order of the numbers."""
    parts = [re.fullmatch(r'(.*?)(\d+)(.*)', name) for name in names]
    keys = [(part[1], int(part[2]), part[3]) for part in parts if part]
    return len(keys) == len(names) and keys == sorted(keys)


def _is_sorted_as_texts(facts: LabelFacts) -> bool:
    """True if the file sorts numbers as text: 1, 10, 2."""
    ids = list(annotations_of(facts).categories)
    return ids != sorted(ids) and ids == sorted(ids, key=str)
