from __future__ import annotations

from typing import Iterator, NamedTuple, Tuple

from mmguard.findings.edits import SAFE, Edit
from mmguard.findings.environment import EnvironmentChanges, EnvironmentFacts, line_of
from mmguard.findings.finding import ERROR, Finding
from mmguard.findings.rule import EnvironmentRule

#: A module in a version from, up to but not including; empty: no limit.
Versions = Tuple[str, str, str]


class Pair(NamedTuple):
    """Versions of a module that do not go with versions of another.

    Attributes:
        module, other (tuple): The module, and what it does not go with.
        severity (str): One of ``SEVERITIES``.
        why (str): What happens.
        install (str): What to type.
        becomes (tuple): What that installs.
        source (str): Where it is said.
    """

    module: Versions
    other: Versions
    severity: str
    why: str
    install: str
    becomes: EnvironmentChanges
    source: str


PAIRS = (
    Pair(
        ('numpy', '2', ''),
        ('torch', '', '2.3'),
        ERROR,
        'torch below 2.3 was compiled against NumPy 1: tensors and arrays do not become each other.',
        'pip install "numpy<2"',
        (('numpy', '1.26.4'),),
        'https://github.com/pytorch/pytorch/issues/107302',
    ),
    Pair(
        ('numpy', '2', ''),
        ('cv2', '', '4.10.0.83'),
        ERROR,
        'OpenCV up to 4.10.0.82 was compiled against NumPy 1: it cannot be imported.',
        'pip install "numpy<2"',
        (('numpy', '1.26.4'),),
        'https://github.com/opencv/opencv/issues/25772',
    ),
)


class NotTogether(EnvironmentRule):
    """Versions that are known not to go together."""

    code = 'MG507'
    summary = 'Two packages are installed in versions that do not go together.'
    why = ' '.join(f'{pair.why} ({pair.source})' for pair in PAIRS)
    advice = 'Install another version of one: {}.'.format(', or '.join(sorted({f'`{pair.install}`' for pair in PAIRS})))

    def look(self, environment: EnvironmentFacts) -> Iterator[Finding]:
        for pair in PAIRS:
            names = (pair.module[0], pair.other[0])
            if environment.is_from(*pair.module) and environment.is_from(*pair.other):
                yield self.found(
                    pair.why,
                    f'{" beside ".join(f"{name} {environment.version(name)}" for name in names)} ({pair.source})',
                    severity=pair.severity,
                    edits=[Edit(f'`{pair.install}`', SAFE, environment=pair.becomes)],
                    places=(line_of(names[0]),),
                )
