from __future__ import annotations

from dataclasses import replace
from typing import Dict, Iterator, List, Optional

from mmguard.findings.edits import ASKS, SAFE, Edit
from mmguard.findings.facts import LabelFacts
from mmguard.findings.finding import ERROR, LIKELY, POSSIBLE, PROVEN, WARNING, Finding
from mmguard.findings.known_sets import CITYSCAPES_RARE, CITYSCAPES_TRAIN_IDS
from mmguard.findings.map_edits import renumber
from mmguard.findings.rule import DataRule, Example, Facts
from mmguard.findings.views import (
    VOID,
    certainty_of_share,
    find_files_named,
    ids_of,
    is_whole,
    knows_classes,
    listing,
    share,
    stored,
    trained,
)

#: Ids in ``labelIds`` files: more of them than this, up to 33, and it is not another numbering.
MANY_IDS = 15
#: Share of the pixels below which ids are nearly never drawn.
RARE = 0.05
#: Of the invalid values: gray levels hold some that are ids, too.
MOSTLY = 0.5
#: The highest id.
LAST = 33


class RawCityscapesIds(DataRule):
    """Ids of Cityscapes, up to 33, where train ids, up to 18, are expected."""

    code = 'MG101'
    needs = ()
    summary = 'The labels look like raw Cityscapes ids (labelIds), not train ids.'
    why = 'Ids below 19 mean other classes in the two numberings, so even the labels that look valid are wrong.'
    example = Example(
        wrong="seg_map_suffix='_gtFine_labelIds.png'",
        right="seg_map_suffix='_gtFine_labelTrainIds.png'",
    )
    limits = 'Many classes of another data set, 30 to 33 of them, may look like these ids.'
    advice = (
        '*_gtFine_labelIds.png hold ids 0..33, *_gtFine_labelTrainIds.png the 19 classes: `seg_map_suffix` of each '
        'split chooses between them. mmseg makes the latter: `python tools/dataset_converters/cityscapes.py '
        'data/cityscapes`. If the data are not of Cityscapes, write a label_map from their numbers to your classes.'
    )
    pytorch = (
        "Use the *_gtFine_labelTrainIds.png files, or torchvision's Cityscapes.classes[i].train_id as a table. Ids "
        'below 19 mean other classes, too.'
    )

    def certainty(self, facts: LabelFacts) -> Optional[str]:
        if not facts.values:
            return None if knows_classes(facts) else self._unsaid(facts)
        raw = [value for value in facts.values if 19 <= value <= 33 or value == -1]
        share = len(raw) / len(facts.values)
        if facts.num_classes > 33 or not any(value >= 20 for value in raw):
            return None
        if find_files_named(facts, '_labelids'):
            return certainty_of_share(share)
        if share < MOSTLY:
            return None
        if facts.num_classes == 19:
            return certainty_of_share(share) if len(raw) >= 2 else LIKELY if share == 1 else POSSIBLE
        ids = ids_of(trained(facts))
        full = is_whole(facts) and len(ids) > MANY_IDS and 26 in ids and 30 <= max(ids) <= 33
        return certainty_of_share(share) if full else None

    def _unsaid(self, facts: LabelFacts) -> Optional[str]:
        """Judge by the ids only, some of which are nearly never drawn, where num_classes is not known."""
        counts = trained(facts)
        ids = ids_of(counts)
        if len(ids) <= MANY_IDS or not 30 <= max(ids) <= 33:
            return None
        if find_files_named(facts, '_labelids'):
            return PROVEN
        rare = sum(counts.get(value, 0) for value in CITYSCAPES_RARE)
        return LIKELY if {7, 8, 11, 21, 23, 26} <= ids and share(rare, sum(counts.values())) < RARE else None

    def _shift(self, facts: LabelFacts) -> int:
        """Find the shift of the ids by which those that are nearly never drawn have next to no pixels."""
        counts = {value: count for value, count in stored(facts).items() if value in ids_of(stored(facts))}

        def unlikely(shift: int) -> float:
            never = {id + shift for id in CITYSCAPES_RARE}
            wrong = sum(n for value, n in counts.items() if value in never or value > LAST + shift)
            return share(wrong, sum(counts.values()))

        others = [shift for shift in (-1, 1) if is_whole(facts) and unlikely(shift) < RARE / 2]
        return others[0] if len(others) == 1 and unlikely(0) > 2 * RARE else 0

    def values(self, facts: LabelFacts) -> Dict[int, int]:
        return facts.values or {value: count for value, count in stored(facts).items() if value > 18 and value != VOID}

    def evidence(self, facts: LabelFacts) -> str:
        return facts.evidence if facts.values else f'values {listing(sorted(stored(facts)), 24)}'

    def severity_of(self, facts: LabelFacts) -> str:
        return ERROR if facts.values else WARNING

    def edits(self, finding: Finding, facts: Facts) -> Iterator[Edit]:
        named = facts.labels is not None and bool(find_files_named(facts.labels, '_labelids'))
        question = '' if named else "Are these Cityscapes' ids, as its *_labelIds.png hold them?"
        void = [value for value, label in CITYSCAPES_TRAIN_IDS.items() if label == 255]
        shift = 0 if facts.labels is None else self._shift(facts.labels)
        if shift:
            question = f"Are these Cityscapes' ids {shift:+}?"
        table = {value + shift: label for value, label in CITYSCAPES_TRAIN_IDS.items() if value + shift >= 0}
        if shift > 0:
            table[0] = VOID  # what has no id
        void = [value + shift for value in void if value + shift >= 0]
        for edit in renumber(facts, table, SAFE if named and not shift else ASKS, question, void):
            note = 'Files named *_gtFine_labelTrainIds.png, if they were made, need no map.'
            yield replace(edit, notes=(*edit.notes, note))

    def files(self, facts: LabelFacts) -> List[str]:
        return find_files_named(facts, '_labelids') or super().files(facts)
