"""Rules about labels numbered as in well-known data sets: Cityscapes, COCO and ADE20K."""

from __future__ import annotations

from dataclasses import replace
from typing import Dict, FrozenSet, Iterator, List, Optional

from mmguard.facts.labels import LabelFacts
from mmguard.findings.edits import Edit
from mmguard.findings.file_edits import renumber, shift_down
from mmguard.findings.finding import ERROR, LIKELY, POSSIBLE, PROVEN, WARNING, Finding
from mmguard.findings.known_sets import CITYSCAPES_RARE, CITYSCAPES_TRAIN_IDS, COCO_STUFF_CLASSES
from mmguard.findings.rule import DataRule, Example, Facts, find_files_with
from mmguard.findings.views import (
    VOID,
    compute_share,
    count_stored,
    count_trained,
    find_files_named,
    get_config,
    get_maps,
    has_num_classes,
    join_items,
    rate_share,
    select_ids,
    subtracts_one,
)
from mmguard.language import Message, join

#: Number of distinct ids up to 33 above which the files are regarded as ``labelIds``.
MANY_IDS = 15
#: Maximum share of the pixels with the ids of rare classes.
RARE_IDS = 0.05
#: Minimum share of the invalid values that are ids, since some gray levels are ids by chance.
MOSTLY = 0.5


class RawCityscapesIds(DataRule):
    code = 'MG101'
    follows = ('MG102', 'MG106', 'MG107', 'MG116', 'MG125')
    needs = ()
    summary = 'The labels look like raw Cityscapes ids (labelIds), not train ids.'
    title_named = 'Files called *_labelTrainIds.png hold raw Cityscapes ids ({ids}): not every class was converted.'
    why = 'Ids below 19 mean different classes in the two numberings, so even the labels that look valid are wrong.'
    example = Example(wrong="seg_map_suffix='_gtFine_labelIds.png'", right="seg_map_suffix='_gtFine_labelTrainIds.png'")
    limits = 'The labels of another data set with 30 to 33 classes may look like Cityscapes ids.'
    advice = (
        'Write the suffix of the files with the 19 classes, _gtFine_labelTrainIds.png, as `seg_map_suffix` of each '
        'split (mmseg creates these files: `python tools/dataset_converters/cityscapes.py data/cityscapes`). If the '
        'data are not Cityscapes, write a label_map to your classes.'
    )
    advice_named = (
        'Create the files again; mmseg has `python tools/dataset_converters/cityscapes.py data/cityscapes`. If your '
        'own export skipped only these classes, write label_map={table}.'
    )
    pytorch = (
        "Use the *_gtFine_labelTrainIds.png files, or torchvision's Cityscapes.classes[i].train_id as a table. Even "
        'the ids below 19 differ from the train ids.'
    )

    def look(self, facts: Facts, labels: LabelFacts) -> Iterator[Finding]:
        files = find_files_named(labels, '_labelids') or None
        if labels.values:
            certainty = self._judge_by_values(labels)
            called_train_ids = _find_called_train_ids(labels)
            if certainty is not None and called_train_ids:
                table = _map_raw(labels)
                words: Dict[str, object] = {'ids': join_items(table), 'table': table}
                advice = self.advice_named
                yield self.report_in(
                    facts, LIKELY, None, words, self.title_named, files=called_train_ids, advice=advice
                )
            elif certainty is not None:
                yield self.report_in(facts, certainty, files=files)
            return
        certainty = None if has_num_classes(labels) else self._judge_by_ids(labels)
        if certainty is not None:
            counts = count_stored(labels)
            evidence = Message('values {values}', values=join_items(sorted(counts), 24))
            values = {value: count for value, count in counts.items() if value > 18 and value != VOID}
            yield self.report_in(facts, certainty, evidence, severity=WARNING, values=values, files=files)

    def _judge_by_values(self, labels: LabelFacts) -> Optional[str]:
        raw = _select_raw(labels)
        share = len(raw) / len(labels.values)
        if labels.num_classes > 33 or not any(value >= 20 for value in raw):
            return None
        if find_files_named(labels, '_labelids'):
            return rate_share(share)
        if share < MOSTLY:
            return None
        if labels.num_classes == 19:
            return rate_share(share) if len(raw) >= 2 else LIKELY if share == 1 else POSSIBLE
        ids = select_ids(count_trained(labels))
        full = bool(labels.histogram) and len(ids) > MANY_IDS and 26 in ids and 30 <= max(ids) <= 33
        return rate_share(share) if full else None

    def _judge_by_ids(self, labels: LabelFacts) -> Optional[str]:
        """Return the certainty that values are Cityscapes ids if num_classes is unknown; ``None`` if they are not."""
        counts = count_trained(labels)
        ids = select_ids(counts)
        if len(ids) <= MANY_IDS or not 30 <= max(ids) <= 33:
            return None
        if find_files_named(labels, '_labelids'):
            return PROVEN
        rare = sum(counts.get(value, 0) for value in CITYSCAPES_RARE)
        return (
            LIKELY if {7, 8, 11, 21, 23, 26} <= ids and compute_share(rare, sum(counts.values())) < RARE_IDS else None
        )

    def offer(self, facts: Facts, labels: LabelFacts) -> Iterator[Edit]:
        if labels.values and _find_called_train_ids(labels):
            yield from renumber(facts, _map_raw(labels), 'Do the other labels follow the train ids (road is 0, not 7)?')
            return
        named = bool(find_files_named(labels, '_labelids'))
        question = '' if named else 'Are these the Cityscapes ids of *_labelIds.png?'
        void = [value for value, label in CITYSCAPES_TRAIN_IDS.items() if label == VOID]
        for edit in renumber(facts, CITYSCAPES_TRAIN_IDS, question, void):
            note = 'If files *_gtFine_labelTrainIds.png exist, use them without a label_map.'
            yield replace(edit, notes=(*edit.notes, note))


def _select_raw(labels: LabelFacts) -> List[int]:
    """Return the invalid values that are ids of Cityscapes."""
    return sorted(value for value in labels.values if 19 <= value <= 33 or value == -1)


def _map_raw(labels: LabelFacts) -> Dict[int, int]:
    """Return {Cityscapes id: train id} for the invalid values."""
    return {value: CITYSCAPES_TRAIN_IDS[value] for value in _select_raw(labels) if value >= 0}


def _find_called_train_ids(labels: LabelFacts) -> List[str]:
    """Return files named *_labelTrainIds with raw Cityscapes ids, or [] if most road pixels have the raw id 7."""
    counts = count_stored(labels)
    if counts.get(7, 0) > counts.get(0, 0):
        return []
    files = find_files_with(labels, _map_raw(labels))
    return [file for file in files if '_labeltrainids' in file.lower()]


#: Category ids that COCO names but never annotated.
NEVER: FrozenSet[int] = frozenset({12, 26, 29, 30, 45, 66, 68, 69, 71, 83})


#: Maximum probability that ids unrelated to COCO avoid all gaps by chance.
BY_CHANCE = 0.005


class RawCocoIds(DataRule):
    code = 'MG117'
    follows = ('MG102', 'MG106', 'MG107', 'MG116')
    kinds = ('pixels', 'instances')
    needs = ('values or maps.raw',)
    summary = 'The labels look like raw COCO category ids, which have gaps.'
    title = 'The labels look like raw COCO category ids ({span}, with gaps), not the {contiguous} contiguous labels.'
    why = 'Raw ids exceed the class range, and valid ids after a gap in the numbering are trained as another class.'
    example = Example(wrong='label = ann["category_id"]', right='label = cat2label[ann["category_id"]]')
    limits = 'With few ids, COCO and another data set with as many classes look the same.'
    advice = (
        "Load boxes with `dataset_type='CocoDataset'` (it numbers the categories), or renumber the ids: `cat2label = "
        '{{cat_id: i for i, cat_id in enumerate(coco.getCatIds())}}`. For maps of COCO-Stuff, `python '
        'tools/dataset_converters/coco_stuff164k.py data/coco_stuff164k` writes *_labelTrainIds.png.'
    )
    pytorch = (
        'Renumber the ids of objects: label_of = dict(zip(sorted(cat_ids), range(len(cat_ids)))). For maps of '
        'COCO-Stuff use the *_labelTrainIds.png (171 classes and 255), or a table from id to class, and do not '
        'subtract 1: COCO-Stuff does not need a shift.'
    )

    def look(self, facts: Facts, labels: LabelFacts) -> Iterator[Finding]:
        shift, classes = self._find_shift(labels), len(COCO_STUFF_CLASSES)
        severity = ERROR if labels.values else WARNING
        if shift is not None:
            counts = count_stored(labels)
            ids = sorted(select_ids(counts))
            gaps = [gap + shift for gap in sorted(set(range(182)) - set(COCO_STUFF_CLASSES))]
            seen: str = Message(
                '{number} values in {lowest}..{highest}, but not {gaps}, the ids that COCO never uses',
                number=len(ids),
                lowest=ids[0],
                highest=ids[-1],
                gaps=join_items(gaps, 11),
            )
            evidence = join('; ', (labels.evidence, seen)) if labels.values else seen
            words = {'span': f'{shift}..{181 + shift}', 'contiguous': classes}
            values = labels.values or {v: n for v, n in counts.items() if v >= classes and v != VOID}
            yield self.report_in(facts, PROVEN, evidence, words, severity=severity, values=values)
        elif labels.values and self._are_raw(labels):
            span = '0..181' if labels.num_classes == 171 else '1..90'
            yield self.report_in(facts, PROVEN, words={'span': span, 'contiguous': labels.num_classes})

    def _are_raw(self, labels: LabelFacts) -> bool:
        """Return True if the invalid values are ids of COCO, and few values are ids that COCO never uses."""
        ids = select_ids(count_trained(labels))
        if min(labels.values) < 0 or not ids:
            return False
        # Maps of things and stuff hold the id - 1.
        never = NEVER if labels.num_classes == 80 else {value - 1 for value in NEVER}
        if labels.histogram and len(ids & never) > 0.02 * len(ids):
            return False
        most = {80: 90, 171: 181}.get(labels.num_classes)
        beyond = set(labels.values) - {255}
        if most is None or not beyond or max(beyond) > most:
            return False
        # A full count of at least half the ids without a single gap id leaves little doubt.
        return (bool(labels.histogram) and len(ids) > labels.num_classes / 2) or len(beyond) >= 2 or beyond == {most}

    def offer(self, facts: Facts, labels: LabelFacts) -> Iterator[Edit]:
        classes = len(COCO_STUFF_CLASSES)
        shift = self._find_shift(labels)
        if labels.kind != 'pixels' or (labels.num_classes != classes and shift is None):
            return
        # Raw files never contain unnamed ids: a split with them is already renumbered.
        nothing = dict.fromkeys(set(range(max(COCO_STUFF_CLASSES))) - set(COCO_STUFF_CLASSES), 255)
        table = {value + (shift or 0): label for value, label in {**COCO_STUFF_CLASSES, **nothing}.items()}
        moved = {value: label for value, label in table.items() if value != label}
        if shift:
            moved[0] = VOID  # values without an id
        where = facts
        if labels.num_classes != classes:
            if facts.config is not None:
                return
            where = facts._replace(labels=replace(labels, num_classes=classes))
        for edit in renumber(where, moved, 'Are these the ids of COCO-Stuff?' if where is not facts or shift else ''):
            note = 'If files *_labelTrainIds.png exist, use them without a label_map.'
            if where is not facts:
                edit = replace(edit, options={**edit.options, 'num_classes': classes})
            yield replace(edit, notes=(*edit.notes, note))

    def _find_shift(self, labels: LabelFacts) -> Optional[int]:
        """Infer the offset of COCO-Stuff ids in the maps, 0 or 1, from the gaps between the ids.

        Return ``None`` if these are not COCO ids, or if both offsets fit. Random ids would hardly avoid all gaps.
        """
        if labels.kind != 'pixels' or not get_maps(labels).raw or get_config(labels).label_map or subtracts_one(labels):
            return None
        ids, most = select_ids(count_stored(labels)), max(COCO_STUFF_CLASSES)
        gaps = set(range(most)) - set(COCO_STUFF_CLASSES)
        fits = [
            shift
            for shift in (0, 1)
            if len(COCO_STUFF_CLASSES) <= max(ids, default=0) <= most + shift
            and not ids & {gap + shift for gap in gaps}
            and (1 - min(len(ids) / most, 1.0)) ** len(gaps) < BY_CHANCE
        ]
        # Heads with an output for each id need no map.
        exact = [shift for shift in fits if labels.num_classes == most + shift + 1]
        return fits[0] if len(fits) == 1 and not exact else None


#: First names of ADE20K's class list.
ADE = ('wall', 'building', 'sky')


class AdeNotReduced(DataRule):
    code = 'MG119'
    follows = ('MG102', 'MG107')
    needs = ()
    summary = 'These look like raw ADE20K ids (0..150): 0 is "other", the classes are 1..150.'
    why = 'Every class is trained as the next class, "other" as class 0 (wall), and 150 is out of range.'
    example = Example(wrong='reduce_zero_label=False  # files: 0..150', right='reduce_zero_label=True')
    limits = 'Without its class list, ADE20K looks like other data with ids 0..150: the edit asks you if 0 is "other".'
    advice = (
        'If 0 is "other" and 1 is wall in your files, as in ADE20K, write `reduce_zero_label=True` in the dataset and '
        'in LoadAnnotations. Otherwise do not subtract 1: the split is already converted, or 150 is another class.'
    )
    pytorch = (
        'If 0 is "other" and 1 is wall, write target = target - 1 and ignore_index=-1. If not, find out where 150 '
        'comes from.'
    )

    def look(self, facts: Facts, labels: LabelFacts) -> Iterator[Finding]:
        ids, stored = set(labels.values) - {VOID}, set(get_maps(labels).raw)
        # A few files need not contain 150. Files shifted by hand have 255 for "other".
        is_raw = tuple(labels.class_names[:3]) == ADE and not ids and 0 in stored and VOID not in stored
        if subtracts_one(labels) or not (is_raw or (labels.num_classes == 150 and ids == {150})):
            return
        evidence, ids = labels.evidence, select_ids(stored)
        if not labels.values and ids:
            evidence = (
                f'values {min(ids)}..{max(ids)} without 255; the class list is that of ADE20K; '
                'reduce_zero_label is not set'
            )
        yield self.report_in(facts, PROVEN, evidence)

    def offer(self, facts: Facts, labels: LabelFacts) -> Iterator[Edit]:
        known = tuple(labels.class_names[:3]) == ADE
        question = '' if known else 'Is 0 "other" in these files (1 is the first class)?'
        yield from shift_down(facts, question, (0,))
