from __future__ import annotations

from typing import Iterator

from mmguard.config.read import ReadConfig
from mmguard.config.types import kind_of
from mmguard.findings.finding import ERROR, WARNING, Finding
from mmguard.findings.rule import ConfigRule, Example
from mmguard.findings.usual_edits import propose


class WrongType(ConfigRule):
    """A value of a type that is not taken there."""

    code = 'MG231'
    summary = 'Wrong type: a text for a number, a number for a dict.'
    title = 'Wrong type of {key}: expected {wanted}, got {kind}.'
    why = (
        "The frameworks check few types: num_classes='19' ends in a layer that cannot be built, train_dataloader=5 in "
        'an error that does not name the key. An array or a tensor is taken, but the copy of the config that training '
        'saves cannot be loaded again. The other rules look at the config as if such a value were not there.'
    )
    example = Example(wrong="num_classes='19'", right='num_classes=19')
    limits = 'Only keys that other rules read are checked.'
    advice = 'Write a value of the type that is expected; an array as a list.'

    def look(self, config: ReadConfig) -> Iterator[Finding]:
        for one in config.misplaced:
            kind = one.value if not one.fatal else kind_of(one.value)
            words = dict(key=one.path.rpartition('.')[2], wanted=one.wanted, kind=kind)
            ways = [] if one.instead is None else [propose('Write the right type.', (one.path, one.instead))]
            yield self.report_at(one.path, one.value, words, '', ERROR if one.fatal else WARNING, ways)
