from __future__ import annotations

from typing import Iterator, List, NamedTuple

from mmguard.findings.edits import SAFE, Edit
from mmguard.findings.environment import EnvironmentFacts, line_of, version_key
from mmguard.findings.finding import INFO, WARNING, Finding
from mmguard.findings.installing import installer_of
from mmguard.findings.rule import EnvironmentRule


class LabelBug(NamedTuple):
    """What some versions of a package do with labels.

    Attributes:
        module (str): Whose.
        low, high (str): From, and below: the first version without it; empty: no limit, or none is known.
        what (str): What happens, and when.
        source (str): Where it is reported.
        instead (str): What to do where no version is known to be without it.
        severity (str): A note where few configs meet it, and `check` speaks of these.
        system (str): On which systems alone, as ``platform.platform()`` begins.
    """

    module: str
    low: str
    high: str
    what: str
    source: str
    instead: str = ''
    severity: str = WARNING
    system: str = ''


_MMSEG, _TORCH = 'https://github.com/open-mmlab/mmsegmentation', 'https://github.com/pytorch/pytorch'

BUGS = (
    LabelBug(
        'mmseg',
        '',
        '1.0.0rc5',
        'LoadAnnotations applies label_map before reduce_zero_label: where a data set is given some of its classes, '
        'labels that were mapped already are shifted again, silently',
        f'{_MMSEG}/pull/2517',
    ),
    LabelBug(
        'mmseg',
        '1.1.0',
        '1.1.2',
        'DiceLoss does not take ignore_index, which every decode head hands over (TypeError), and compares class '
        'indices with scores as they are',
        f'{_MMSEG}/issues/3172',
    ),
    LabelBug(
        'mmseg',
        '1.4.2',
        '1.4.3',
        'CrossEntropyLoss with class_weight and avg_non_ignore=True fails on any labels (mask of the wrong shape)',
        'docs/stacks.md, where it was measured',
        'Write GuardedCrossEntropyLoss, or leave out one of the two.',
        INFO,
    ),
    LabelBug(
        'torch',
        '1.13',
        '2.2',
        'cross_entropy on MPS ignores the label -100 even where another ignore_index is given, and takes labels out '
        'of range without a word',
        f'{_TORCH}/issues/108148',
        system='macOS',
    ),
)


class KnownLabelBugs(EnvironmentRule):
    """A version that does something wrong with labels, as was reported and corrected."""

    code = 'MG514'
    summary = 'This version of a package does something wrong with labels.'
    why = 'The labels and the config can be right, and training fails, or learns something else.'
    advice = 'Install a newer version.'
    severity = WARNING

    def look(self, environment: EnvironmentFacts) -> Iterator[Finding]:
        for module in dict.fromkeys(bug.module for bug in BUGS):
            bugs = _bugs_of(module, environment)
            if not bugs:
                continue
            name, version = next(iter(environment.installed(module).items()))
            newer = _without(module, environment)
            yield self.found(
                f'{name} {version}: {"; ".join(bug.what for bug in bugs)}.',
                f'{name} {version}; {", ".join(bug.source for bug in bugs)}',
                advice=' '.join(bug.instead for bug in bugs if bug.instead) or None,
                severity=WARNING if any(bug.severity == WARNING for bug in bugs) else INFO,
                edits=[Edit(f'`{installer_of(name)} "{name}>={newer}"`', SAFE, environment=((name, newer),))]
                if newer
                else (),
                places=(line_of(module),),
            )


def _bugs_of(module: str, environment: EnvironmentFacts) -> List[LabelBug]:
    return [
        bug
        for bug in BUGS
        if bug.module == module and environment.system.startswith(bug.system)
        if environment.is_from(module, bug.low, bug.high)
    ]


def _without(module: str, environment: EnvironmentFacts) -> str:
    """The first version that has none of them; empty where none is known."""
    version, bugs = '', _bugs_of(module, environment)
    name = next(iter(environment.installed(module)))
    while bugs:
        if any(bug.instead for bug in bugs):
            return ''
        version = max((bug.high for bug in bugs), key=version_key)
        bugs = _bugs_of(module, environment.with_changes(((name, version),)))
    return version
