from __future__ import annotations

from typing import Dict, Iterator, List, Optional, Sequence, Tuple

from mmguard.findings.edits import Edit
from mmguard.findings.facts import LabelFacts
from mmguard.findings.finding import PROVEN, Finding
from mmguard.findings.known_sets import named_values
from mmguard.findings.rule import Facts
from mmguard.findings.rules.labels.volumes.base import (
    VolumeCause,
    as_written,
    declared_labels,
    is_old,
    rewrite_volumes,
    slips_of,
    volumes_of,
)
from mmguard.findings.views import as_map, listing, share
from mmguard.findings.volumes import UNEXPECTED
from mmguard.text.short import short
from mmguard.text.words import counted

#: Up to this share of the voxels a value is a slip rather than a class.
RARE = 1e-4
#: Gray levels up to here are near 0, and so near 255.
_NEAR = 32


class UnexpectedValues(VolumeCause):
    """Values in label files that dataset.json does not declare."""

    code = 'MG185'
    shown_by = (UNEXPECTED,)
    summary = 'Label files hold values that dataset.json does not declare: {listed}.'
    why = 'Preprocessing takes them over; in training they index beyond the classes: a device-side assert on a GPU.'
    advice = (
        'Valid are {valid}: look at the slices named. A slip is corrected where it lies; a class, or the ignored '
        'label, is added to `"labels"` in dataset.json. Do not make background of what is not looked at: a structure '
        'would be trained as nothing.'
    )
    renumber = (
        'There are as many different values as classes: the files were not renumbered. Write `for old, new in '
        '{pairs}.items(): seg[seg == old] = new` over all label files; nnU-Net wants 0, 1, 2, ...'
    )
    one_more = (
        'It is the next number. If it is a class that was forgotten, declare it: `"NAME": {first}`; if it marks what '
        'was not annotated: `"ignore": {first}`. Do not leave it in undeclared.'
    )
    named = (
        'Write `old = seg.copy()` and `for value, label in {pairs}.items(): seg[old == value] = label` over all label '
        'files: by the names in dataset.json, not by the order of the numbers.'
    )
    gray = (
        'They are gray levels around 0 and 255: a binary mask that was compressed or resized. Threshold it, '
        '`seg = (seg > 127).astype(np.uint8)`, and save it without loss as one channel (PNG, NIfTI).'
    )
    negative = (
        'Nothing below 0 is a label. Where it marks what was not annotated, nnU-Net wants the highest label + 1: '
        '`seg[seg < 0] = {next}`, and `"ignore": {next}` in dataset.json.'
    )
    void = (
        'Where 255 marks what was not annotated, nnU-Net wants the highest label + 1: `seg[seg == 255] = {next}`, and '
        '`"ignore": {next}` in dataset.json.'
    )

    needs = ()
    otherwise = (
        'Look at the slices named. A slip is corrected where it lies; a class is declared in dataset.json. Do not make '
        'background of what is not looked at: a structure would be trained as nothing.'
    )

    def certainty(self, facts: LabelFacts) -> Optional[str]:
        return PROVEN if self.faults(facts) or facts.values else None

    def superseded(self, facts: LabelFacts) -> Sequence[str]:
        """What was not renumbered is missing under its number."""
        never = len(volumes_of(facts).never)
        is_renumbering = len(facts.values) >= never or bool(self._renumbered(facts))
        is_common = share(sum(facts.values.values()), facts.total) > RARE
        return super().superseded(facts) if is_renumbering and is_common else ()

    def values(self, facts: LabelFacts) -> Dict[int, int]:
        return facts.values

    def words(self, facts: LabelFacts) -> Dict[str, object]:
        expected = volumes_of(facts).expected
        highest = max(expected, default=0)
        return {
            'listed': listing(sorted(facts.values)) or 'many',
            'valid': listing(expected, 16),
            'pairs': as_map(self._renumbered(facts)),
            'first': min(facts.values, default=highest + 1),
            'next': highest if facts.ignore_index is not None else highest + 1,
        }

    def advise(self, facts: LabelFacts) -> str:
        wrong, expected = facts.values, volumes_of(facts).expected
        rare = share(sum(wrong.values()), facts.total) <= RARE
        if wrong and all(value < 0 for value in wrong):
            return self.negative
        if _is_gray(facts):
            return self.gray
        if self._renumbered(facts) and not rare:
            return self.renumber
        if set(wrong) == {255}:
            return self.void
        if set(wrong) == {max(expected, default=0) + 1} and facts.ignore_index is None and not rare:
            return self.one_more
        return self.advice

    def edits(self, finding: Finding, facts: Facts) -> Iterator[Edit]:
        if facts.labels is None or not facts.labels.values:
            return
        labels, wrong = facts.labels, sorted(facts.labels.values)
        volumes = volumes_of(labels)
        declared = declared_labels(labels)
        following = max(volumes.expected, default=0) + 1
        rare = share(sum(labels.values.values()), labels.total) <= RARE
        if _is_gray(labels) and volumes.expected == [0, 1]:
            table = tuple((value, int(value > 127)) for value in labels.histogram if value != int(value > 127))
            yield rewrite_volumes(labels, self.gray, '', label_map=table)
            return
        title, pairs = self._by_name(labels)
        if pairs:
            meant = ', '.join(f'{old} {short(labels.name_of(new))}' for old, new in pairs.items())
            text = self.named.format(pairs=as_map(pairs))
            yield rewrite_volumes(
                labels, text, f'Are they the values of {title}: {meant}?', label_map=tuple(pairs.items())
            )
            return
        pairs = self._renumbered(labels)
        if pairs and not rare:
            meant = ', '.join(f'{old} {short(labels.name_of(new))}' for old, new in pairs.items())
            text = self.renumber.format(pairs=as_map(pairs))
            yield rewrite_volumes(labels, text, f'Is {meant}?', label_map=tuple(pairs.items()))
        if wrong == [following] and labels.ignore_index is None and not rare:
            entry = f'"{following}": "NAME"' if is_old(labels) else f'"NAME": {following}'
            text = f'Declare it in dataset.json: `{entry}`, with the name of the class.'
            added = {'labels': as_written(labels, {**declared, f'class {following}': following})}
            yield rewrite_volumes(labels, text, f'Is {following} a class that was forgotten?', added)
        void = following if labels.ignore_index is None else labels.ignore_index
        text = '' if wrong == [void] else f'Write `seg[np.isin(seg, {wrong[:16]})] = {void}` over all label files. '
        if len(wrong) <= 16 and not is_old(labels):  # v1 knows no ignored label
            added = {'labels': {**declared, 'ignore': void}}
            text += f'Declare it in dataset.json: `"ignore": {void}`.' if labels.ignore_index is None else ''
            asked = f'Does {listing(wrong)} mark what nobody annotated?'
            yield rewrite_volumes(labels, text, asked, added, label_map=tuple((value, void) for value in wrong))

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

    def _by_name(self, facts: LabelFacts) -> Tuple[str, Dict[int, int]]:
        """A well-known data set, and value -> label of the same name, where these decide."""
        found = [value for value in facts.histogram if value not in (0, facts.ignore_index)]
        names = {
            value: facts.name_of(value) for value in volumes_of(facts).expected if value not in (0, facts.ignore_index)
        }
        title, pairs = named_values(found, names)
        return title, {old: new for old, new in pairs.items() if old != new}

    def _renumbered(self, facts: LabelFacts) -> Dict[int, int]:
        """Old value -> new, where the values found are as many as declared, ignored ones excepted."""
        found = sorted(set(facts.histogram) - {facts.ignore_index} - set(slips_of(facts, facts.values)))
        classes = sorted(set(volumes_of(facts).expected) - {facts.ignore_index})
        if not facts.values or len(found) != len(classes) or len(classes) < 2 or found[0] != 0:
            return {}
        pairs = {old: new for old, new in zip(found, classes) if old != new}
        return {
            **pairs,
            **{value: pairs[meant] for value, meant in slips_of(facts, facts.values).items() if meant in pairs},
        }


def _is_gray(facts: LabelFacts) -> bool:
    """Whether nearly all values lie around 0 and 255, with others between: two classes that were blurred."""
    counts = facts.histogram
    low = sum(count for value, count in counts.items() if 0 <= value <= _NEAR)
    high = sum(count for value, count in counts.items() if 255 - _NEAR <= value <= 255)
    inside = len(counts) > 4 and min(counts) >= 0 and max(counts) <= 255
    return inside and low + high > 0.8 * sum(counts.values()) and bool(low and high)
