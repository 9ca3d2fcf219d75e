from __future__ import annotations

from typing import Dict, Iterator, List, Optional

from mmguard.findings.edits import ASKS, Edit
from mmguard.findings.facts import LabelFacts
from mmguard.findings.finding import LIKELY, PROVEN, Finding
from mmguard.findings.known_sets import VOID_BEHIND
from mmguard.findings.map_edits import renumber, splits_of
from mmguard.findings.rule import DataRule, Example, Facts
from mmguard.findings.views import as_map, ids_of, is_rare, is_whole, listing, trained


class GapsInIds(DataRule):
    """Ids with gaps, as many as there are classes."""

    code = 'MG116'
    kinds = ('pixels', 'instances')
    needs = ('values', 'histogram')
    summary = 'The ids have gaps: there are as many as classes, but the highest is out of range.'
    title = 'The ids have gaps: {ids} are {number} ids, but the highest is {most} and num_classes={num_classes}.'
    why = 'A loss indexes by label: ids above num_classes - 1 are out of range, however few ids there are.'
    example = Example(wrong='labels 0, 1, 4 with num_classes=3', right='label_map={4: 2}')
    limits = 'An id after the gap may also be void or a slip; its edit asks.'
    advice = (
        'Find out which class each id is. If all are classes, one table for all splits renumbers them in the order of '
        'the class list: of these `label_map={pairs}`, in GuardSegLabels or where the files are written (of '
        'annotations: the category ids). If one is void or a slip, ignore or correct it. Do not raise num_classes to '
        'the highest id.'
    )

    def certainty(self, facts: LabelFacts) -> Optional[str]:
        ids = self._ids(facts)
        if not is_whole(facts) or len(ids) < 2 or min(facts.values) < 0 or ids[-1] >= 1000:
            return None
        full = len(ids) == facts.num_classes
        ignored = facts.ignore_index is not None and facts.histogram.get(facts.ignore_index, 0) > 0
        if (
            ignored
            and len(ids) < len({*ids, facts.ignore_index} & set(range(ids[0], ids[-1] + 1))) == ids[-1] - ids[0] + 1
        ):
            return None  # what is ignored fills the gap
        if not full or ids[0] > 1 or ids[-1] < len(ids) + (ids[0] == 1):
            return None
        # Void after the last class of a known set, and one class that no file holds.
        # Rare: the last class does not occur, and the id after the gap is a slip. Far away: not a numbering at all.
        void_behind = ids[-1] == facts.num_classes and facts.num_classes in VOID_BEHIND
        return LIKELY if void_behind or is_rare(facts) or ids[-1] > 4 * len(ids) + 8 else PROVEN

    def edits(self, finding: Finding, facts: Facts) -> Iterator[Edit]:
        labels = facts.labels
        if labels is None or labels.kind != 'pixels':
            return
        # One table for all splits: an id may be missing in one of them.
        ids = sorted({value for split in splits_of(facts) for value in self._ids(split)})
        if len(ids) == labels.num_classes:
            table = {value: label for label, value in enumerate(ids) if value != label}
            yield from renumber(facts, table, ASKS, f'Are the classes, in the order of your list, {listing(ids)}?')

    def describe(self, facts: LabelFacts) -> Dict[str, object]:
        ids = self._ids(facts)
        moved = {value: label for label, value in enumerate(ids) if value != label}
        most = ids[-1] if ids else 0
        return {'ids': listing(ids), 'number': len(ids), 'most': most, 'pairs': as_map(moved, 8)}

    def _ids(self, facts: LabelFacts) -> List[int]:
        return sorted(ids_of(trained(facts)) - {facts.ignore_index})
