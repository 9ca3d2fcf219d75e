from __future__ import annotations

from importlib import metadata
from typing import Iterator

from mmguard.compat.stack import distributions_of
from mmguard.config.parts import datasets
from mmguard.config.read import ReadConfig
from mmguard.findings.config_facts import label_map_of
from mmguard.findings.finding import ERROR, INFO, Finding
from mmguard.findings.rule import ConfigRule, Example, Facts


class ShiftAndMap(ConfigRule):
    """``reduce_zero_label`` together with the label map that some classes of a data set make: the order matters."""

    code = 'MG232'
    severity = INFO
    summary = 'reduce_zero_label and a label_map at once: which comes first depends on the version of mmseg.'
    title = '{kind} has a label_map and reduce_zero_label, but {mmseg} maps first, and subtracts 1 from the result.'
    title_right = (
        '{kind} has a label_map and reduce_zero_label: {mmseg} rightly subtracts 1 first, older than 1.0.0 maps first.'
    )
    why = (
        'A data set that is given some of its classes maps the labels of its own list to theirs. That list counts '
        'without 0, so 1 must be subtracted first. mmseg before 1.0.0 mapped first: every class was its neighbour.'
    )
    example = Example(wrong="mmseg 0.30: metainfo=dict(classes=('sky', 'wall'))", right='the same with mmseg 1.0.0')
    limits = 'It knows the mmseg that is installed here; that of the machine that trains may differ.'
    advice = (
        'Upgrade an mmseg that maps first: `pip install -U mmsegmentation`. One that subtracts first is right, and '
        'nothing is to be done; `mmguard trace CONFIG` shows what becomes of each value.'
    )

    def find(self, facts: Facts) -> Iterator[Finding]:
        # Labels that were read show what the order makes of them; it is not a finding then that it is right.
        yield from (found for found in super().find(facts) if facts.labels is None or found.severity == ERROR)

    def look(self, config: ReadConfig) -> Iterator[Finding]:
        for dataset in datasets(config):
            moved = {raw: label for raw, label in label_map_of(dataset).items() if raw != label}
            if not moved or dataset.get('reduce_zero_label') is not True:
                continue
            mmseg = _find_installed()
            if not mmseg:
                continue
            shifts_first = not mmseg.partition(' ')[2].startswith('0.')
            words = dict(kind=dataset.name, mmseg=mmseg)
            title, severity = (self.title_right, INFO) if shifts_first else (self.title, ERROR)
            yield self.report_at(dataset.at('reduce_zero_label'), True, words, title, severity)


def _find_installed() -> str:
    """Return name and version of the mmseg that is installed; empty: none is."""
    for name in distributions_of('mmseg'):
        try:
            return f'{name} {metadata.version(name)}'
        except metadata.PackageNotFoundError:
            continue
    return ''
