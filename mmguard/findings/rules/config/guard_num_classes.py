from __future__ import annotations

from typing import Iterator

from mmguard.config.guards import misfits
from mmguard.config.read import ReadConfig
from mmguard.findings.edits import SAFE, Edit
from mmguard.findings.finding import Finding
from mmguard.findings.rule import ConfigRule
from mmguard.text.words import plural


class GuardNumClasses(ConfigRule):
    """A guard that lets through what the head does not have."""

    code = 'MG225'
    summary = 'num_classes of a guard is not that of the head.'
    why = (
        'With too many classes the guard lets labels through that end the run; with too few it takes classes out of '
        'training that the head has.'
    )
    advice = 'Write the num_classes of the head.'

    def look(self, config: ReadConfig) -> Iterator[Finding]:
        for guard, number, (space, *heads) in misfits(config):
            numbers = sorted({head.num_classes for head in heads})
            several = f'{" or ".join(map(str, numbers))} {plural(numbers[-1], "class")}'
            yield self.at(
                guard.at('num_classes'),
                guard.config['num_classes'],
                f'The head tells {several} apart ({space.place}).',
                edits=[Edit(f'Write num_classes={number}.', SAFE, '', ((guard.at('num_classes'), number),))],
            )
