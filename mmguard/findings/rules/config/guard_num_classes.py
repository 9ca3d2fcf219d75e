from __future__ import annotations

from typing import Iterator

from mmguard.config.guards import misfits
from mmguard.config.read import ReadConfig
from mmguard.findings.finding import Finding
from mmguard.findings.rule import ConfigRule, Example
from mmguard.findings.usual_edits import propose
from mmguard.text import plural


class GuardNumClasses(ConfigRule):
    """A guard of other classes than the head has."""

    code = 'MG225'
    summary = 'num_classes of a guard is not that of the head.'
    title = 'The guard has num_classes={given}, but the head has {numbers} {noun} ({place}).'
    why = (
        'With too many classes the guard lets labels through that end the run; with too few it takes classes out of '
        'training that the head has.'
    )
    example = Example(wrong='num_classes=19 in the head, 20 in GuardSegLabels', right='num_classes=19 in both')
    limits = 'If the number of the head is wrong, too, MG201 says so.'
    advice = 'Write the num_classes of the head in the guard.'

    def look(self, config: ReadConfig) -> Iterator[Finding]:
        for guard, number, (space, *heads) in misfits(config):
            place, given = guard.at('num_classes'), guard.config['num_classes']
            numbers = sorted({head.num_classes for head in heads})
            several, noun = ' or '.join(map(str, numbers)), plural(numbers[-1], 'class')
            words = dict(given=given, numbers=several, noun=noun, place=space.place)
            edit = propose('Write the number of classes of the head.', (place, number))
            yield self.report_at(place, given, words, edits=[edit])
