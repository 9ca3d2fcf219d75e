from __future__ import annotations

from dataclasses import replace
from typing import Dict, Iterator, List, Optional

from mmguard.config.head_classes import counts
from mmguard.config.read import ReadConfig
from mmguard.findings.class_edits import learn
from mmguard.findings.edits import ASKS, Edit
from mmguard.findings.facts import LabelFacts
from mmguard.findings.file_edits import rewrite
from mmguard.findings.finding import POSSIBLE, Finding
from mmguard.findings.rule import DataRule, Example, Facts
from mmguard.findings.views import annotations_of, listing, nearest
from mmguard.text import quantity, shorten


class CategoriesLeftOut(DataRule):
    """Categories of the file that the class list does not name."""

    code = 'MG154'
    shows_values = False
    kinds = ('pixels', 'instances')
    needs = ('annotations',)
    severity = 'warning'
    summary = 'Annotations are left out because the class list does not name their category.'
    title = 'Annotations are left out: the class list does not name {names}.'
    why = (
        'The objects are trained as background. That is right if you chose the classes; if not, the list is too short.'
    )
    example = Example(
        wrong="classes=('cat',)  # the file has cat and dog", right="classes=('cat', 'dog'), num_classes=2"
    )
    limits = 'It cannot know whether classes were left out on purpose.'
    advice = (
        'If they are to be learnt, name them in `metainfo.classes`, in the order of the file, and write '
        '`num_classes={number}` in every head. If not, nothing needs to change.'
    )

    def certainty(self, facts: LabelFacts) -> Optional[str]:
        return POSSIBLE if self._names(facts) else None

    def edits(self, finding: Finding, facts: Facts) -> Iterator[Edit]:
        if facts.labels is not None:
            slips = self._slips(facts.labels)
            if slips:
                asked = (
                    f'Is it a slip: {listing(f"{shorten(slip)} for {shorten(name)}" for slip, name in slips.items())}?'
                )
                yield from rewrite(self, facts, 'Correct the names.', ASKS, asked, rename=slips)
        if facts.labels is not None and facts.config is not None and not self._are_chosen(facts.config, facts.labels):
            question = f'Are {listing(map(repr, self._names(facts.labels)))} to be learnt, too?'
            edit = learn(facts, self._all(facts.labels), ASKS, question)
            yield replace(edit, if_not='Nothing needs to change.')

    def _are_chosen(self, config: ReadConfig, facts: LabelFacts) -> bool:
        """True if every head counts just the classes of the list: somebody left the others out."""
        return {count.value for count in counts(config) if count.kind == 'all'} == {len(facts.class_names)}

    def describe(self, facts: LabelFacts) -> Dict[str, object]:
        return {'names': listing(map(repr, self._names(facts))), 'number': len(self._all(facts))}

    def evidence(self, facts: LabelFacts) -> str:
        return listing(f'{quantity(n, "annotation")} of {shorten(name)}' for name, n in self._names(facts).items())

    def _slips(self, facts: LabelFacts) -> Dict[str, str]:
        """Map a name that is left out to the name of the list that is spelt nearly like it."""
        close = nearest(list(self._names(facts)), facts.class_names, 0.8)
        return {name: found for name, found in close.items() if found}

    def _all(self, facts: LabelFacts) -> List[str]:
        return list(dict.fromkeys([*map(str, annotations_of(facts).categories.values()), *self._names(facts)]))

    def _names(self, facts: LabelFacts) -> Dict[str, int]:
        return {name: number for name, number in annotations_of(facts).left_out_names.items() if number}
