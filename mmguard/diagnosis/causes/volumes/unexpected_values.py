from __future__ import annotations

from typing import Dict, List

from mmguard.diagnosis.causes.volumes.base import VolumeCause, volumes_of
from mmguard.diagnosis.facts import LabelFacts
from mmguard.diagnosis.views import as_map, listing, share
from mmguard.diagnosis.volumes import UNEXPECTED
from mmguard.words import counted

#: Up to this share of the voxels a value is a slip rather than a class.
RARE = 1e-4


class UnexpectedValues(VolumeCause):
    """Values in label files that dataset.json does not declare."""

    code = 'MG185'
    shown_by = (UNEXPECTED,)
    weight = 0.9
    summary = 'Label files hold values that dataset.json does not declare: {listed}.'
    why = 'Preprocessing takes them over; in training they index beyond the classes: a device-side assert on a GPU.'
    advice = (
        'Valid are {valid}. Look at the slices named. A slip is corrected or made background, '
        '`seg[~np.isin(seg, {valid_list})] = 0`; a class, or the ignored label, is added to `"labels"` in dataset.json.'
    )
    renumber = (
        'There are as many different values as classes: the files were not renumbered. Write `for old, new in '
        '{pairs}.items(): seg[seg == old] = new` over all label files; nnU-Net wants 0, 1, 2, ...'
    )
    one_more = (
        'It is the next number. If it is a class that was forgotten, declare it: `"NAME": {first}`; if it marks what '
        'was not annotated: `"ignore": {first}`. Do not leave it in undeclared.'
    )
    negative = 'Nothing below 0 is a label. Where it marks the outside, make it background: `seg[seg < 0] = 0`.'
    void = (
        'Where 255 marks what was not annotated, nnU-Net wants the highest label + 1: `seg[seg == 255] = {next}`, and '
        '`"ignore": {next}` in dataset.json.'
    )

    needs = ()

    def likelihood(self, facts: LabelFacts) -> float:
        return self.weight if self.faults(facts) or facts.values else 0.0

    def values(self, facts: LabelFacts) -> Dict[int, int]:
        return facts.values

    def words(self, facts: LabelFacts) -> Dict[str, object]:
        expected = volumes_of(facts).expected
        highest = max(expected, default=0)
        return {
            'listed': listing(sorted(facts.values)) or 'many',
            'valid': listing(expected, 16),
            'valid_list': expected if len(expected) <= 16 else f'range({highest + 1})',
            'pairs': as_map(self._renumbered(facts)),
            'first': min(facts.values, default=highest + 1),
            'next': highest if facts.ignore_index is not None else highest + 1,
        }

    def advise(self, facts: LabelFacts) -> str:
        wrong, expected = facts.values, volumes_of(facts).expected
        rare = share(sum(wrong.values()), facts.total) <= RARE
        if wrong and all(value < 0 for value in wrong):
            return self.negative
        if self._renumbered(facts) and not rare:
            return self.renumber
        if set(wrong) == {255}:
            return self.void
        if set(wrong) == {max(expected, default=0) + 1} and facts.ignore_index is None and not rare:
            return self.one_more
        return self.advice

    def evidence(self, facts: LabelFacts) -> str:
        volumes, faults = volumes_of(facts), self.faults(facts)
        with_value = volumes.files_with_class
        ranked = sorted(facts.values, key=lambda value: (-facts.values[value], value))
        texts: List[str] = [
            f'value {value}: {facts.values[value]:,} voxels in {counted(with_value.get(value, 0), "label file")}'
            for value in ranked[:4]
        ]
        if len(ranked) > 4:
            texts.append(f'{len(ranked) - 4} more values')
        if not faults:
            return '; '.join(texts)
        first = max(faults, key=lambda fault: fault.voxels)
        where = 'most in' if len(faults) > 1 else 'in'
        return f'{"; ".join(texts)}; {where} {first.file}: {first.detail}'

    def _renumbered(self, facts: LabelFacts) -> Dict[int, int]:
        """Old value -> new, where the values found are as many as declared, ignored ones aside."""
        found = sorted(set(facts.histogram) - {facts.ignore_index})
        classes = sorted(set(volumes_of(facts).expected) - {facts.ignore_index})
        if not facts.values or len(found) != len(classes) or len(classes) < 2 or found[0] != 0:
            return {}
        return {old: new for old, new in zip(found, classes) if old != new}
