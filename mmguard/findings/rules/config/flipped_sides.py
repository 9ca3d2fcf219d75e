from __future__ import annotations

import re
from typing import Any, Iterator, List, Sequence, Tuple

from mmguard.config.parts import Part, classes_of, pipelines
from mmguard.config.read import ReadConfig
from mmguard.findings.edits import ASKS, Edit
from mmguard.findings.finding import WARNING, Finding
from mmguard.findings.rule import ConfigRule

#: Words, and abbreviations of them, for the two sides.
_SIDES = (('left', 'right'), ('l', 'r'))
#: Transforms that mirror: mmcv's, and those that stand inside of Albu.
_MIRROR = ('RandomFlip', 'HorizontalFlip', 'Flip', 'Transpose', 'D4', 'SquareSymmetry')
_CHANCES = ('prob', 'flip_ratio', 'p')


class FlippedSides(ConfigRule):
    """A mirrored image in which left stays left."""

    code = 'MG246'
    severity = WARNING
    summary = 'Images are mirrored, and two classes differ in left and right alone.'
    why = (
        'A horizontal flip makes a right hand of a left one, and its label stays: half of the training contradicts the '
        'other half. Both classes end near 50 % of confusion with each other.'
    )
    advice = 'Leave the horizontal flip out (`prob=0.0`, or `direction="vertical"`), or swap the two labels with it.'

    def look(self, config: ReadConfig) -> Iterator[Finding]:
        for pipeline in pipelines(config):
            for step in pipeline:
                names = (classes_of(step.owner) if step.owner is not None else None) or []
                pairs = sides_of(names) if step.split == 'train' and step.name in _MIRROR and _mirrors(step) else []
                if pairs:
                    yield self._of(step, pairs)

    def _of(self, step: Part, pairs: List[Tuple[str, str]]) -> Finding:
        key = next((key for key in _CHANCES if step.says(key)), 'prob' if step.name == 'RandomFlip' else 'p')
        several = isinstance(step.config.get(key), (list, tuple))
        value: Any = [0.0] * len(step.config[key]) if several else 0.0
        shown = ', '.join(f'{one!r} and {other!r}' for one, other in pairs[:3])
        return self.at(
            step.at(key),
            step.config.get(key),
            f'Images are mirrored from side to side, and the labels stay: {shown}.',
            edits=[
                Edit(
                    f'Write `{key}={value}`: no flip; or swap these labels where an image was flipped.',
                    ASKS,
                    'Do these classes mean the side as it is seen, or that of the body?',
                    ((step.at(key), value),),
                )
            ],
        )


def sides_of(names: Sequence[str]) -> List[Tuple[str, str]]:
    """Pairs of classes that differ in their side alone.

    Example:
        >>> sides_of(['left_hand', 'face', 'right_hand']), sides_of(['bright light', 'leftover'])
        ([('left_hand', 'right_hand')], [])
    """
    known = {_words(name): name for name in names}
    found = []
    for words, name in known.items():
        for left, right in _SIDES:
            other = known.get(tuple(right if word == left else word for word in words))
            if left in words and other is not None:
                found.append((name, other))
    return found


def _words(name: str) -> Tuple[str, ...]:
    spaced = re.sub(r'(?<=[a-z])(?=[A-Z])', ' ', str(name))
    return tuple(word for word in re.split(r'[\W_]+', spaced.lower()) if word)


def _mirrors(step: Part) -> bool:
    directions = step.config.get('direction', 'horizontal')
    directions = [directions] if isinstance(directions, str) else directions
    chance = next((step.config[key] for key in _CHANCES if step.says(key)), 0.5)
    if not isinstance(directions, (list, tuple)):
        return False
    each = chance if isinstance(chance, (list, tuple)) else [chance] * len(directions)
    return any(str(where) in ('horizontal', 'diagonal') and one for where, one in zip(directions, each))
