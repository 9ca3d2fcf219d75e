from __future__ import annotations

from typing import Iterator, Optional

from mmguard.findings.edits import SAFE, Edit
from mmguard.findings.facts import LabelFacts
from mmguard.findings.finding import PROVEN, Finding
from mmguard.findings.map_edits import renumber
from mmguard.findings.rule import DataRule, Example, Facts
from mmguard.findings.views import ids_of, is_whole, trained


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
