from __future__ import annotations

from typing import Iterator, Optional

from mmguard.findings.edits import SAFE, Edit
from mmguard.findings.facts import LabelFacts
from mmguard.findings.finding import PROVEN, Finding
from mmguard.findings.map_edits import renumbered
from mmguard.findings.rule import DataRule, Facts
from mmguard.findings.views import ids_of, is_whole, trained


class RawBratsIds(DataRule):
    """BraTS numbers its tumour parts 1, 2, 4."""

    code = 'MG118'
    needs = ('values', 'histogram')
    summary = 'These look like raw BraTS labels: 0, 1, 2 and 4, without 3.'
    why = 'Enhancing tumour, 4, is out of range for the four classes; where it is ignored it is never learnt.'
    advice = 'Map it: `label_map={{4: 3}}` in GuardSegLabels (3 is enhancing tumour then), or save the files with 0..3.'

    otherwise = (
        'Look which classes you train: BraTS numbers the parts of a tumour 1, 2 and 4, and 0 is none; with four '
        'classes 4 becomes 3.'
    )

    def edits(self, finding: Finding, facts: Facts) -> Iterator[Edit]:
        yield from renumbered(facts, {4: 3}, SAFE)

    def certainty(self, facts: LabelFacts) -> Optional[str]:
        ids = ids_of(trained(facts))
        fits = {1, 2, 4} <= ids <= {0, 1, 2, 4} and facts.num_classes in (3, 4)
        return PROVEN if is_whole(facts) and fits else None
