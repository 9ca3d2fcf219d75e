from __future__ import annotations

from typing import Dict, Iterator, List, Optional

from mmguard.findings.edits import ASKS, Edit
from mmguard.findings.facts import LabelFacts
from mmguard.findings.finding import LIKELY, PROVEN, Finding
from mmguard.findings.known_sets import VOID_BEHIND
from mmguard.findings.map_edits import renumbered, splits_of
from mmguard.findings.rule import DataRule, Facts
from mmguard.findings.views import as_map, ids_of, is_rare, is_whole, listing, trained


class GapsInIds(DataRule):
    """As many ids as classes, but not 0..N-1."""

    code = 'MG116'
    kinds = ('pixels', 'instances')
    needs = ('values', 'histogram')
    summary = 'The ids have gaps: {ids} are {number} ids, but the highest is {most} and num_classes={num_classes}.'
    why = 'A loss indexes by label: what lies beyond num_classes - 1 is out of range, however few ids there are.'
    advice = (
        'Renumber them without gaps: `label_map={pairs}` in GuardSegLabels (and class names in that order), or save '
        'the files anew. Do not raise num_classes to the highest id.'
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
        # Void behind the last class of a known set, and one class that no file holds.
        # Rare: the last class does not occur, and the id behind the gap is a slip. Far away: no numbering at all.
        void_behind = ids[-1] == facts.num_classes and facts.num_classes in VOID_BEHIND
        return LIKELY if void_behind or is_rare(facts) or ids[-1] > 4 * len(ids) + 8 else PROVEN

    only_edits = True
    otherwise = (
        'Look which class each id is: the splits hold other ids, or more of them than there are classes. One table, '
        'id: class, must serve all splits.'
    )

    def edits(self, finding: Finding, facts: Facts) -> Iterator[Edit]:
        labels = facts.labels
        if labels is None or labels.kind != 'pixels':
            return
        # One table for all splits: an id may be missing in one of them.
        ids = sorted({value for split in splits_of(facts) for value in self._ids(split)})
        if len(ids) == labels.num_classes:
            table = {value: label for label, value in enumerate(ids) if value != label}
            yield from renumbered(facts, table, ASKS, f'Are the classes, in the order of your list, {listing(ids)}?')

    def words(self, facts: LabelFacts) -> Dict[str, object]:
        ids = self._ids(facts)
        moved = {value: label for label, value in enumerate(ids) if value != label}
        most = ids[-1] if ids else 0
        return {'ids': listing(ids), 'number': len(ids), 'most': most, 'pairs': as_map(moved)}

    def _ids(self, facts: LabelFacts) -> List[int]:
        return sorted(ids_of(trained(facts)) - {facts.ignore_index})
