from __future__ import annotations

from dataclasses import replace
from typing import Dict, FrozenSet, Iterator, Optional

from mmguard.findings.edits import ASKS, SAFE, Edit
from mmguard.findings.facts import LabelFacts
from mmguard.findings.finding import ERROR, PROVEN, WARNING, Finding
from mmguard.findings.known_sets import COCO_STUFF_CLASSES
from mmguard.findings.map_edits import renumber, shift_down
from mmguard.findings.rule import DataRule, Example, Facts
from mmguard.findings.views import VOID, config_of, ids_of, is_whole, listing, maps_of, stored, subtracts_one, trained

#: Category ids that COCO names but never annotated.
NEVER: FrozenSet[int] = frozenset({12, 26, 29, 30, 45, 66, 68, 69, 71, 83})


#: How likely ids that have nothing to do with COCO leave all gaps free, at most.
BY_CHANCE = 0.005


class RawCocoIds(DataRule):
    """Category ids of COCO (1..90), or of COCO-Stuff (up to 182), with their gaps."""

    code = 'MG117'
    kinds = ('pixels', 'instances')
    needs = ()
    summary = 'The labels look like raw COCO category ids, which have gaps.'
    title = 'The labels look like raw COCO category ids ({span}, with gaps), not the {contiguous} contiguous labels.'
    why = 'Raw ids exceed the classes and, below that, mean other classes: every label after a gap is displaced.'
    example = Example(
        wrong='label = ann["category_id"]',
        right='label = cat2label[ann["category_id"]]',
    )
    limits = 'Of a few ids it cannot tell COCO from another data set of as many classes.'
    advice = (
        "Things: load the annotations with `dataset_type='CocoDataset'` (it numbers the names), or renumber: "
        '`cat2label = {{cat_id: i for i, cat_id in enumerate(coco.getCatIds())}}`. COCO-Stuff maps: `python '
        'tools/dataset_converters/coco_stuff164k.py data/coco_stuff164k` writes *_labelTrainIds.png.'
    )
    pytorch = (
        'Renumber the ids of objects: label_of = dict(zip(sorted(cat_ids), range(len(cat_ids)))). For maps of '
        'COCO-Stuff use the *_labelTrainIds.png (171 classes and 255), or a table from id to class; if 1 is '
        'subtracted, do not: COCO-Stuff needs no shift.'
    )

    def certainty(self, facts: LabelFacts) -> Optional[str]:
        if self._shift(facts) is not None:
            return PROVEN
        ids = ids_of(trained(facts))
        if not facts.values:
            return None
        if min(facts.values) < 0 or not ids:
            return None
        # Maps of things and stuff hold the id - 1.
        never = NEVER if facts.num_classes == 80 else {value - 1 for value in NEVER}
        if is_whole(facts) and len(ids & never) > 0.02 * len(ids):
            return None
        most = {80: 90, 171: 181}.get(facts.num_classes)
        beyond = set(facts.values) - {255}
        if most is None or not beyond or max(beyond) > most:
            return None
        # A full count of at least half the ids without a single gap id leaves little doubt.
        if is_whole(facts) and len(ids) > facts.num_classes / 2:
            return PROVEN
        return PROVEN if len(beyond) >= 2 or beyond == {most} else None

    def edits(self, finding: Finding, facts: Facts) -> Iterator[Edit]:
        labels, classes = facts.labels, len(COCO_STUFF_CLASSES)
        shift = None if labels is None else self._shift(labels)
        if labels is None or labels.kind != 'pixels' or (labels.num_classes != classes and shift is None):
            return
        # Ids that name nothing are never in raw files: a split that holds them is numbered already.
        nothing = dict.fromkeys(set(range(max(COCO_STUFF_CLASSES))) - set(COCO_STUFF_CLASSES), 255)
        table = {value + (shift or 0): label for value, label in {**COCO_STUFF_CLASSES, **nothing}.items()}
        moved = {value: label for value, label in table.items() if value != label}
        if shift:
            moved[0] = VOID  # what has no id
        where = facts
        if labels.num_classes != classes:
            if facts.config is not None:
                return
            where = facts._replace(labels=replace(labels, num_classes=classes))
        asks = 'Are these the ids of COCO-Stuff?' if where is not facts or shift else ''
        for edit in renumber(where, moved, ASKS if asks else SAFE, asks):
            note = 'Files named *_labelTrainIds.png, if they were made, need no map.'
            if where is not facts:
                edit = replace(edit, options=(*edit.options, ('num_classes', classes)))
            yield replace(edit, notes=(*edit.notes, note))

    def _shift(self, facts: LabelFacts) -> Optional[int]:
        """Find what was added to the ids of COCO-Stuff's maps, 0 or 1 (they are the ids then), by the gaps in them.

        Of as many ids without a system some would fall into the gaps. ``None``: they are other ids, or it is not clear.
        """
        if facts.kind != 'pixels' or not maps_of(facts).raw or config_of(facts).label_map or subtracts_one(facts):
            return None
        ids, most = ids_of(stored(facts)), max(COCO_STUFF_CLASSES)
        gaps = set(range(most)) - set(COCO_STUFF_CLASSES)
        fits = [
            shift
            for shift in (0, 1)
            if len(COCO_STUFF_CLASSES) <= max(ids, default=0) <= most + shift
            and not ids & {gap + shift for gap in gaps}
            and (1 - min(len(ids) / most, 1.0)) ** len(gaps) < BY_CHANCE
        ]
        # An output for each id: as it is meant.
        exact = [shift for shift in fits if facts.num_classes == most + shift + 1]
        return fits[0] if len(fits) == 1 and not exact else None

    def severity_of(self, facts: LabelFacts) -> str:
        return ERROR if facts.values else WARNING

    def evidence(self, facts: LabelFacts) -> str:
        if self._shift(facts) is None:
            return facts.evidence
        ids = sorted(ids_of(stored(facts)))
        gaps = [gap + (self._shift(facts) or 0) for gap in sorted(set(range(182)) - set(COCO_STUFF_CLASSES))]
        seen = f'{len(ids)} values, {ids[0]}..{ids[-1]}, none of them {listing(gaps, 11)}: ids that COCO never uses'
        return f'{facts.evidence}; {seen}' if facts.values else seen

    def values(self, facts: LabelFacts) -> Dict[int, int]:
        return facts.values or {v: n for v, n in stored(facts).items() if v >= len(COCO_STUFF_CLASSES) and v != VOID}

    def describe(self, facts: LabelFacts) -> dict:
        shift = self._shift(facts)
        if shift is not None:
            return {'span': f'{shift}..{181 + shift}', 'contiguous': len(COCO_STUFF_CLASSES)}
        return {'span': '0..181' if facts.num_classes == 171 else '1..90', 'contiguous': facts.num_classes}


class RawBratsIds(DataRule):
    """Raw numbers of BraTS, 1, 2 and 4, where 0..3 are expected."""

    code = 'MG118'
    needs = ('values', 'histogram')
    summary = 'The labels look like raw BraTS labels: 0, 1, 2 and 4, without 3.'
    why = 'Enhancing tumour, 4, is out of range for the four classes; where it is ignored it is never learnt.'
    example = Example(
        wrong='num_classes=4, labels 0, 1, 2, 4',
        right='label_map={4: 3}',
    )
    limits = 'Three classes of your own numbered 1, 2 and 4 look the same.'
    advice = (
        'BraTS numbers the parts of a tumour 1, 2 and 4. If these are your classes, map enhancing '
        'tumour: `label_map={{4: 3}}` in GuardSegLabels, or save the files with 0..3. If you train other regions, '
        'write the table from these numbers to yours.'
    )
    pytorch = 'Renumber: target = target.masked_fill(target == 4, 3).'

    def edits(self, finding: Finding, facts: Facts) -> Iterator[Edit]:
        yield from renumber(facts, {4: 3}, SAFE)

    def certainty(self, facts: LabelFacts) -> Optional[str]:
        ids = ids_of(trained(facts))
        fits = {1, 2, 4} <= ids <= {0, 1, 2, 4} and facts.num_classes in (3, 4)
        return PROVEN if is_whole(facts) and fits else None


#: How its list of classes begins.
ADE = ('wall', 'building', 'sky')


class AdeNotReduced(DataRule):
    """ADE20K's raw ids, 0..150, where 0 is outside the 150 classes."""

    code = 'MG119'
    needs = ()
    summary = 'These look like raw ADE20K ids (0..150): 0 is "other", the classes are 1..150.'
    why = 'Every class is trained as its neighbour, "other" as class 0 (wall), and 150 is out of range.'
    example = Example(wrong='reduce_zero_label=False  # files: 0..150', right='reduce_zero_label=True')
    limits = 'Without the class list of ADE20K it cannot tell other data with ids 0..150: its edit asks.'
    advice = (
        'Look at a file of each split: in those of ADE20K 0 is "other" and 1 is the wall. If so, write '
        '`reduce_zero_label=True` in the dataset and in LoadAnnotations, as `ADE20KDataset` does. If not, a split was '
        'converted already, or 150 is one more class: do not reduce it.'
    )
    pytorch = 'If 0 is "other" and 1 the wall: target = target - 1, ignore_index=-1. If not, find where 150 is from.'

    def edits(self, finding: Finding, facts: Facts) -> Iterator[Edit]:
        known = facts.labels is not None and tuple(facts.labels.class_names[:3]) == ADE
        question = '' if known else 'Is 0 "other" in these files (1 is the first class)?'
        yield from shift_down(facts, SAFE if known else ASKS, question, (0,))

    def evidence(self, facts: LabelFacts) -> str:
        stored = ids_of(maps_of(facts).raw)
        if facts.values or not stored:
            return facts.evidence
        return f'values {min(stored)}..{max(stored)} and no 255, with the class list of ADE20K and no reduce_zero_label'

    def certainty(self, facts: LabelFacts) -> Optional[str]:
        ids = set(facts.values) - {VOID}
        if subtracts_one(facts):
            return None
        # In a few files 150 need not occur. Whoever shifted them by hand has 255 for "other".
        stored = set(maps_of(facts).raw)
        if tuple(facts.class_names[:3]) == ADE and not ids and 0 in stored and VOID not in stored:
            return PROVEN
        return PROVEN if facts.num_classes == 150 and ids == {150} and not subtracts_one(facts) else None
