from __future__ import annotations

from typing import List, Optional

from mmguard.findings.facts import LabelFacts
from mmguard.findings.finding import INFO, LIKELY, POSSIBLE
from mmguard.findings.rule import DataRule, Example
from mmguard.findings.views import ids_of, is_trained_on, listing, maps_of, stored, trained

#: A single file may well show a single class.
ENOUGH_FILES = 5


class OnlyOneClass(DataRule):
    """All valid pixels have the same label, or named classes of objects have none."""

    code = 'MG135'
    aliases = ('MG194',)
    shows_values = False
    kinds = ('pixels', 'instances', 'voxels')
    severity = 'warning'
    needs = ('histogram',)
    summary = 'Only one class occurs in all files, or classes of the list never do.'
    title = 'Only 1 of {num_classes} classes occurs in the files: {only}.'
    title_never = 'Classes of the list never occur in the files: {never}; {missing} of {num_classes}.'
    why = 'The loss falls to 0 and nothing is learnt. Usually the loader, or a label_map, made one of many values.'
    example = Example(
        wrong='ToTensor() on a mask: k / 255 becomes 0',
        right='torch.as_tensor(np.array(mask), dtype=torch.int64)',
    )
    limits = 'A set of few classes on purpose, next to classes that it lacks, is reported too.'
    advice = (
        'Compare the count of each class with that in the source of the labels, and with that after each step of the '
        'pipeline, `mmguard trace CONFIG`. Usual reasons: ToTensor on a mask, 16 bits read as 8, the foreground stored '
        'as the ignored value, ids renumbered by a converter, cases that were not copied. If the classes really have '
        'no label, nothing is learnt of them: take them from the list.'
    )

    def certainty(self, facts: LabelFacts) -> Optional[str]:
        if self._never(facts):
            return POSSIBLE
        if facts.kind != 'pixels' or len(self._classes(facts)) != 1 or facts.values or facts.num_classes < 2:
            return None
        return LIKELY if len(ids_of(maps_of(facts).raw)) > 1 or facts.files >= ENOUGH_FILES else None

    def severity_of(self, facts: LabelFacts) -> str:
        return INFO if self._never(facts) and facts.kind == 'instances' else self.severity

    def choose_title(self, facts: LabelFacts) -> str:
        return self.title_never if self._never(facts) else self.title

    def describe(self, facts: LabelFacts) -> dict:
        never = self._never(facts)
        named = [f'{facts.name_of(label)} ({label})' for label in never]
        return {'only': listing(sorted(self._classes(facts))), 'missing': len(never), 'never': listing(named)}

    def evidence(self, facts: LabelFacts) -> str:
        if self._never(facts):
            return f'{sum(trained(facts).values()):,} {facts.kind} of {len(self._classes(facts))} classes'
        return f'values as stored: {listing(sorted(stored(facts)))}; as trained: {listing(sorted(trained(facts)))}'

    def _classes(self, facts: LabelFacts) -> set:
        return ids_of(trained(facts)) - {facts.ignore_index}

    def _never(self, facts: LabelFacts) -> List[int]:
        """List the named classes without an object in training, and those that no volume holds."""
        if facts.volumes is not None:
            return facts.volumes.never
        names = facts.class_names
        if facts.kind == 'pixels' or not names or len(names) != facts.num_classes or not is_trained_on(facts):
            return []
        return [] if facts.values else sorted(set(range(len(names))) - set(trained(facts)))
