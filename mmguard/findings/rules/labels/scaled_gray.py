from __future__ import annotations

from typing import Dict, Iterator, List, Optional, Sequence

from mmguard.findings.edits import ASKS, SAFE, Edit
from mmguard.findings.facts import LabelFacts
from mmguard.findings.finding import PROVEN, Finding
from mmguard.findings.map_edits import renumbered, stored_in_all
from mmguard.findings.rule import DataRule, Facts
from mmguard.findings.views import VOID, as_map, is_rare, is_whole, knows_classes, listing, maps_of, stored, trained

#: Gray levels of classes lie this far apart at least; ids of classes do not.
STEP = 8
MOST = 24


class ScaledGray(DataRule):
    """One gray level per class, far enough apart that a human sees them."""

    code = 'MG125'
    needs = ()
    summary = 'The values are gray levels of a picture, one per class: {levels}.'
    why = 'A label is used as an index: 128 is not "class 1, drawn in gray", but class 128.'
    advice = (
        'Map each level to its class, directly after LoadAnnotations (before anything pads with 255): '
        "`dict(type='GuardSegLabels', num_classes={num_classes}, label_map={pairs})`. The map assumes that the levels "
        'ascend with the classes: check it against one image. Or save the files with 0..{last}.'
    )

    def certainty(self, facts: LabelFacts) -> Optional[str]:
        known = is_whole(facts) or maps_of(facts).raw
        if not known or not (facts.values or (not knows_classes(facts) and set(trained(facts)) == set(stored(facts)))):
            return None
        levels = self._levels(facts)
        if not 2 <= len(levels) <= min(facts.num_classes + 1, MOST) or levels[0] != 0 or not 64 <= levels[-1] <= VOID:
            return None
        steps = [high - low for low, high in zip(levels, levels[1:])]
        return None if min(steps) < STEP or is_rare(facts) else PROVEN

    only_edits = True
    otherwise = (
        'Look which class each gray level is: there are others in another split, or not as many as classes. One table, '
        'level: class, must serve all splits.'
    )

    def edits(self, finding: Finding, facts: Facts) -> Iterator[Edit]:
        labels = facts.labels
        if labels is None:
            return
        levels = sorted(value for value in stored_in_all(facts) if value >= 0)
        table = _table(levels, labels.num_classes if knows_classes(labels) else len(levels))
        clear = len(levels) == labels.num_classes == 2
        question = '' if clear else f'Are {listing(levels)} the classes, in the order of your list?'
        moved = {level: label for level, label in table.items() if level != label}
        if moved:
            yield from renumbered(facts, moved, SAFE if clear else ASKS, question)

    def evidence(self, facts: LabelFacts) -> str:
        return facts.evidence or f'only the values {listing(self._levels(facts))} occur'

    def words(self, facts: LabelFacts) -> Dict[str, object]:
        levels = self._levels(facts)
        # One level more than classes: the last is void already.
        pairs = {level: label for label, level in enumerate(levels) if label < facts.num_classes and level != label}
        classes = facts.num_classes if knows_classes(facts) else len(levels)
        return {'num_classes': classes, 'last': classes - 1, 'levels': listing(levels), 'pairs': as_map(pairs)}

    def _levels(self, facts: LabelFacts) -> List[int]:
        return sorted(value for value in (stored(facts) or trained(facts)) if value >= 0)


def _table(levels: Sequence[int], classes: int) -> Dict[int, int]:
    """Level -> class; empty where there are more of the one than of the other, and no regular step between them."""
    if len(levels) == classes:
        return {level: label for label, level in enumerate(levels)}
    if len(levels) == classes + 1 and levels[-1] == VOID:
        return {level: label for label, level in enumerate(levels[:-1])}
    step = min((high - low for low, high in zip(levels, levels[1:])), default=0)
    if step and len(levels) > 2 and all(level % step == 0 for level in levels) and levels[-1] // step < classes:
        return {level: level // step for level in levels}  # the level of a class that no file holds is left out
    return {}
