from __future__ import annotations

import json
from typing import Iterator, List, Set

from mmguard.findings.edits import Edit
from mmguard.findings.facts import LabelFacts
from mmguard.findings.finding import LIKELY, Finding
from mmguard.findings.rule import Facts
from mmguard.findings.rules.labels.volumes.base import (
    DeclaredCause,
    as_written,
    declared_labels,
    rewrite_volumes,
    slips_of,
    volumes_of,
)
from mmguard.findings.views import as_map, listing


class LabelList(DeclaredCause):
    """Labels in dataset.json that nnU-Net refuses."""

    code = 'MG181'
    kind = 'labels'
    summary = 'The labels in dataset.json are not 0, 1, 2, ... with background 0 and ignore last.'
    why = 'nnU-Net uses a label as the index of an output channel: a gap has no channel, and it refuses to plan.'
    advice = (
        'Write the labels as integers without a gap, each name once: `"labels": {{"background": 0, "liver": 1, '
        '"tumor": 2, "ignore": 3}}`, and renumber the label files accordingly, e.g. `seg[seg == 4] = 3`.'
    )

    def edits(self, finding: Finding, facts: Facts) -> Iterator[Edit]:
        if facts.labels is None:
            return
        known = declared_labels(facts.labels)
        values = list(known.values())
        if not known:
            yield from self._as_found(facts.labels)
        if not all(type(value) is int for value in values) or len(set(values)) < len(values) or 0 not in values:
            return  # regions, texts, one value twice: which number a class has, it does not say
        last = known.get('ignore')
        ordered = sorted(values, key=lambda value: (value == last, value))
        number = {old: new for new, old in enumerate(ordered)}
        pairs = {old: new for old, new in number.items() if old != new}
        names = {('background' if value == 0 else name): number[value] for name, value in known.items()}
        slips = {
            value: number[near]
            for value, near in slips_of(facts.labels, facts.labels.histogram).items()
            if near in number
        }
        pairs.update(slips)
        loop = f'for value, label in {as_map(pairs)}.items(): seg[old == value] = label'
        files = f', and, over all label files, `old = seg.copy()` and `{loop}`'
        labels = as_written(facts.labels, names)
        text = f'Write `"labels": {json.dumps(labels, ensure_ascii=False)}`{files if pairs else ""}.'
        asked = [f'Is {value} a slip of {ordered[new]}?' for value, new in slips.items()]
        question = ' '.join([*asked, *([] if known.get('background') == 0 else ['Is 0 the background?'])])
        yield rewrite_volumes(facts.labels, text, question, {'labels': labels}, label_map=tuple(pairs.items()))

    def evidence(self, facts: LabelFacts) -> str:
        found = '' if volumes_of(facts).expected else f'; the label files hold {listing(sorted(facts.histogram), 16)}'
        return super().evidence(facts) + (found if facts.histogram else '')

    def _as_found(self, facts: LabelFacts) -> Iterator[Edit]:
        """The values of the label files, each with a name to fill in."""
        found = sorted(facts.histogram)
        if found != list(range(len(found))) or len(found) < 2:
            return
        names = {'background': 0, **{f'NAME OF {value}': value for value in found[1:]}}
        labels = as_written(facts, names)
        text = f'Declare what the label files hold: `"labels": {json.dumps(labels)}`, with the names of the classes.'
        yield rewrite_volumes(facts, text, 'Is 0 the background?', {'labels': labels})


class RegionList(DeclaredCause):
    """Regions in dataset.json without the order in which they are written."""

    code = 'MG182'
    kind = 'regions'
    summary = 'Regions are declared, but regions_class_order does not fit them.'
    why = 'Region-based training predicts overlapping regions; the order says which label each writes, largest first.'
    advice = (
        'One entry per region but background, in the order of labels: `"labels": {{"background": 0, "whole": [1, 2], '
        '"core": [2]}}, "regions_class_order": [1, 2]`.'
    )

    def edits(self, finding: Finding, facts: Facts) -> Iterator[Edit]:
        if facts.labels is None:
            return
        known = declared_labels(facts.labels)
        regions = [value for name, value in known.items() if name not in ('background', 'ignore') and value != 0]
        members = [value if isinstance(value, list) else [value] for value in regions]
        if not all(isinstance(value, int) for region in members for value in region):
            return
        order: List[int] = []
        later: Set[int] = set()
        for region in reversed(members):
            order[:0] = [next((value for value in region if value not in later), region[0])] if region else []
            later.update(region)
        question = 'Does each region of `"labels"` hold those that come after it?'
        text = f'Write `"regions_class_order": {order}`.'
        yield rewrite_volumes(facts.labels, text, question, {'regions_class_order': order})


class TrainingCount(DeclaredCause):
    """numTraining that is not the number of cases."""

    code = 'MG183'
    kind = 'count'
    usual_certainty = LIKELY
    summary = 'The numTraining in dataset.json is not the number of cases.'
    why = 'nnU-Net stops; and often cases are missing because a copy was cut short.'
    advice = 'If all cases are there, write `"numTraining": {cases}`.'

    def edits(self, finding: Finding, facts: Facts) -> Iterator[Edit]:
        if facts.labels is not None:
            cases = volumes_of(facts.labels).cases
            text = f'Write `"numTraining": {cases}`.'
            yield rewrite_volumes(facts.labels, text, 'Are all cases there?', {'numTraining': cases})

    def words(self, facts: LabelFacts) -> dict:
        return {'cases': volumes_of(facts).cases}
