from __future__ import annotations

from typing import Any, Dict, Iterator, List, Sequence

from mmguard.findings.edits import ASKS, SAFE, Edit
from mmguard.findings.facts import LabelFacts, NoData
from mmguard.findings.finding import ERROR, WARNING, Finding
from mmguard.findings.map_edits import converted_files, renumbered, stored_in_all
from mmguard.findings.rule import DataRule, Facts
from mmguard.findings.usual_edits import set_ignore_index
from mmguard.findings.views import VOID, listing, maps_of
from mmguard.text.words import counted

#: What stands for NaN and numbers beyond 32 bits.
_BEYOND = -(1 << 31)


class NoDataTrained(DataRule):
    """GeoTIFF declare a value as no data, and training does not ignore it."""

    code = 'MG155'
    summary = 'GeoTIFF label maps declare {declared} as "no data", but training takes it for {taken}.'
    needs = ('maps',)
    why = (
        'Loaders do not look at the declaration: what nobody labelled is trained as a class, or is out of range for '
        'the loss (a negative value wraps into 0..255 first).'
    )
    advice = (
        'Make the declared value the ignored one, `label_map={{{first}: {void}}}`, or write the files anew without the '
        'declaration where the value is a class after all: `gdal_translate -a_nodata none`.'
    )
    otherwise = (
        'Look at one of the files in a GIS: is the declared value what nobody labelled? Then write {void} in its '
        'place, in each file that declares it. Is it a class, remove the declaration: `gdal_translate -a_nodata none`.'
    )

    def likelihood(self, facts: LabelFacts) -> float:
        if not _trained(facts):
            return 0.0
        return 0.965 if self.severity_of(facts) == ERROR else 0.6

    def severity_of(self, facts: LabelFacts) -> str:
        return WARNING if all(_is_class(found, facts) for found in _trained(facts)) else ERROR

    def explained(self, facts: LabelFacts) -> Sequence[str]:
        declared = _trained(facts)
        others = set(maps_of(facts).raw) - {found.value for found in declared}
        if not set(facts.values) <= {found.label for found in declared}:
            return ()
        wide = [] if any(not 0 <= value <= VOID for value in others) else ['MG122', 'MG123']
        return ('MG101', 'MG102', 'MG103', 'MG104', 'MG105', 'MG107', 'MG116', 'MG125', 'MG127', 'MG133', *wide)

    def edits(self, finding: Finding, facts: Facts) -> Iterator[Edit]:
        labels = facts.labels
        if labels is None:
            return
        declared = _trained(labels)
        void = VOID if labels.ignore_index is None else labels.ignore_index
        taken = [found.label for found in declared if _is_class(found, labels)]
        is_class = f'Is {listing(sorted(found.value for found in declared))} a class after all?'
        question = f'Is {listing(sorted(taken))} what nobody labelled, and no class?' if taken else ''
        sure = ASKS if taken else SAFE
        if all(maps_of(labels).files_with.get(found.value, 0) <= found.files for found in declared):
            if all(0 <= found.value <= VOID for found in declared):
                table = {found.label: void for found in declared}
                yield from renumbered(facts, table, sure, question, taken)
            if len(declared) == 1 and not taken and 0 <= declared[0].value <= VOID:
                yield set_ignore_index(facts, declared[0].label, sure, question)
            if all(0 <= value <= VOID for value in stored_in_all(facts) - {found.value for found in declared}):
                table = {found.value: void for found in declared}
                text = 'Write the files anew, with the ignored value'
                yield from converted_files(facts, text, sure, question, label_map=table)
        if taken and len(taken) == len(declared):
            text = 'Write the files anew, without the declaration'
            yield from converted_files(facts, text, ASKS, is_class)

    def words(self, facts: LabelFacts) -> Dict[str, Any]:
        declared = _trained(facts)
        classes = sorted({found.label for found in declared if found.label not in facts.values})
        invalid = sorted({found.label for found in declared if found.label in facts.values})
        taken = [f'class {listing(classes)}'] * bool(classes) + [f'the invalid label {listing(invalid)}'] * bool(
            invalid
        )
        return {
            'declared': listing(map(_name, declared)),
            'taken': ' and '.join(taken),
            'first': declared[0].label if declared else 0,
        }

    def evidence(self, facts: LabelFacts) -> str:
        return '; '.join(
            f'{_name(found)} in {counted(found.files, "file")}, {found.pixels:,} px, trained as {found.label}'
            for found in _trained(facts)
        )

    def files(self, facts: LabelFacts) -> List[str]:
        return list(dict.fromkeys(path for found in _trained(facts) for path in found.examples))

    def values(self, facts: LabelFacts) -> Dict[int, int]:
        return {found.value: found.pixels for found in _trained(facts)}


def _trained(facts: LabelFacts) -> List[NoData]:
    """What is declared, and is not the ignored label."""
    return [found for found in maps_of(facts).nodata if found.label != facts.ignore_index]


def _is_class(found: NoData, facts: LabelFacts) -> bool:
    """Whether it is the number of a class as it stands, not only as it wraps into 8 bits."""
    return 0 <= found.value <= VOID and found.label not in facts.values


def _name(found: NoData) -> str:
    return str(found.value) if found.value != _BEYOND else f'{found.value} (or NaN, or a number beyond 32 bits)'
