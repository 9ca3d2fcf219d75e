from __future__ import annotations

from typing import Iterator

from mmguard.config.read import ReadConfig
from mmguard.config.types import Misplaced, kind_of
from mmguard.findings.edits import SAFE, Edit
from mmguard.findings.finding import ERROR, WARNING, Finding, shown
from mmguard.findings.rule import ConfigRule


class WrongType(ConfigRule):
    """A value of a type that nobody takes there."""

    code = 'MG231'
    summary = 'A value stands where something else is taken: a text for a number, a number for a dict.'
    why = (
        "The frameworks check few types: num_classes='19' ends in a layer that cannot be built, train_dataloader=5 in "
        'an error that does not name the key. An array or a tensor is taken, but the copy of the config that training '
        'saves cannot be loaded again. The other rules look at the config as if such a value were not there.'
    )
    advice = 'Write a value of the type that is named.'

    def look(self, config: ReadConfig) -> Iterator[Finding]:
        for one in config.misplaced:
            kind = one.value if not one.fatal else kind_of(one.value)
            yield self.at(
                one.path,
                one.value,
                f'{one.path.rpartition(".")[2]} takes {one.wanted}, and here stands {_article(str(kind))}.',
                '' if one.instead is not None else f'Write {one.wanted}.',
                ERROR if one.fatal else WARNING,
                edits=[] if one.instead is None else [_edit(one)],
            )


def _edit(one: Misplaced) -> Edit:
    key = one.path.rpartition('.')[2]
    return Edit(f'Write `{key}={shown(one.instead)}`.', SAFE, '', ((one.path, one.instead),))


def _article(kind: str) -> str:
    return f'{"an" if kind[:1].lower() in "aeiou" else "a"} {kind}'
