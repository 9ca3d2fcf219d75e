"""Scores of validations (Dice, mAP, mIoU): near 0 from the first to the last, or fallen to 0."""

from __future__ import annotations

import re
from typing import Dict, List, NamedTuple, Optional

from mmguard.text import quantity

#: No score is found in a piece of a log without one of these.
WORDS = (b'ice', b'mAP', b'IoU', b' all ')
#: Below this a network has found nothing.
NEAR_0 = 0.01
#: Validations from which on it is a trend, and epochs after which one is enough.
_ENOUGH, _EPOCHS = 3, 10
#: Scores of a kind that are kept.
_KEPT = 100_000
_NUMBER = rb'(-?\d{1,9}(?:\.\d{1,20})?(?:e-?\d{1,3})?)(?![\d:])'
_SCORE = re.compile(
    rb'(?P<dice>[Pp]seudo dice|[Dd]ice [Ss]core|\b(?:mean|val)_dice)\s?[:=]?\s{0,3}\[?(?:np\.float32\()?'
    + _NUMBER
    + rb'|'
    rb'(?P<ap>IoU=0\.50:0\.95 \|[^\]\n]{0,60})\] ?= ?' + _NUMBER + rb'|'
    rb'(?P<map>\bmAP(?:@[\d.]{1,5}(?::[\d.]{1,5})?)?|mIoU(?:/\w{1,9}){0,3})\s?[:=]?\s{1,3}' + _NUMBER + rb'|'
    rb'^(?P<all>\s{1,40}all)(?:\s{1,20}[\d.e-]{1,12}){4}\s{1,20}' + _NUMBER,
    re.MULTILINE,
)
_EPOCH = re.compile(rb'[Ee]poch\W{0,3}(\d{1,6})|^\s{1,9}(\d{1,6})/\d{1,6}\s', re.MULTILINE)


class Sign(NamedTuple):
    """A line that a signature knows, and the line of the log that it follows from."""

    text: str
    line: int


class Scores:
    """Values of each kind of score.

    Example:
        >>> scores = Scores()
        >>> scores.take(b'mAP@0.5: 0.0\\nmAP@0.5: 0.0\\nmAP@0.5: 0.001\\n', 1)
        >>> scores.sign
        Sign(text='Score near 0: mAP@0.5 is at most 0.001 in 3 validations', line=3)
    """

    def __init__(self) -> None:
        self.values: Dict[str, List[float]] = {}
        self._last: Dict[str, int] = {}
        self._epoch = 0

    def take(self, text: bytes, first: int) -> None:
        """Take the scores of a piece of a log that begins in a line."""
        if not any(word in text for word in WORDS):
            return
        for found in _SCORE.finditer(text):
            kind, number = next(group for group in found.groups() if group), found.group(found.lastindex or 0)
            name = {'ap': 'AP', 'all': 'mAP'}.get(found.lastgroup or '', '') or kind.decode('ascii', 'replace').strip()
            values = self.values.setdefault(name, [])
            if len(values) < _KEPT:
                values.append(float(number))
                self._last[name] = first + text.count(b'\n', 0, found.end())
        epochs = _EPOCH.findall(text)
        if epochs:
            self._epoch = max(self._epoch, int(max(epochs[-1], key=len)))

    @property
    def sign(self) -> Optional[Sign]:
        """The sign that the scores give; ``None``: none."""
        signs = [sign for sign in map(self._sign_of, self.values) if sign is not None]
        # A kind that is well says that another is not what it seems.
        return signs[0] if signs and len(signs) == len(self.values) else None

    def _sign_of(self, name: str) -> Optional[Sign]:
        values, line = self.values[name], self._last[name]
        best = max(values)
        if best < NEAR_0:
            is_trend = len(values) >= _ENOUGH or self._epoch >= _EPOCHS or not self._epoch
            times = quantity(len(values), 'validation')
            return Sign(f'Score near 0: {name} is at most {best:g} in {times}', line) if is_trend else None
        fallen = next((place for place, value in enumerate(reversed(values)) if value >= NEAR_0), 0)
        if fallen >= _ENOUGH and best >= 5 * NEAR_0:
            return Sign(f'Score collapsed: {name} fell from {best:g} to {values[-1]:g}, for {fallen} validations', line)
        return None


#: What stands in a piece of a log that has it; nnU-Net v2 and v1.
_DICE_WORDS = (b'seudo dice', b'foreground Dice')
#: Of fewer epochs nobody can say that a class has none in all.
_ENOUGH_EPOCHS = 3
#: What is said where it comes and goes.
HARMLESS = (
    'That is harmless: no patch of these validations held the class, and none was predicted. It would be a fault of '
    'the labels if it stood in every epoch'
)
_LINE = re.compile(rb'(?:[Pp]seudo dice|[Gg]lobal foreground Dice:?)\s*\[([^\]\n]{1,20000})\]')


class PseudoDice:
    """Counts epochs, and those in which the Dice of a class is nan.

    Example:
        >>> dice = PseudoDice()
        >>> dice.take(b'Pseudo dice [nan, 0.91] \\nPseudo dice [0.8, np.float32(0.92)] \\n')
        >>> dice.words
        'the Dice of class 1 is nan in 1 of 2 epochs'
    """

    def __init__(self) -> None:
        self.epochs = 0
        #: For each class, in how many epochs it is nan.
        self.nan: List[int] = []

    def take(self, text: bytes) -> None:
        """Counts the epochs of a piece of a log."""
        if not any(words in text for words in _DICE_WORDS):
            return
        for found in _LINE.finditer(text):
            values = found.group(1).split(b',')
            self.nan += [0] * (len(values) - len(self.nan))
            self.epochs += 1
            for place, value in enumerate(values):
                self.nan[place] += b'nan' in value

    @property
    def always(self) -> List[int]:
        """The classes, from 1, whose Dice is nan in every epoch, of which there are enough."""
        if self.epochs < _ENOUGH_EPOCHS:
            return []
        return [number for number, times in enumerate(self.nan, 1) if times == self.epochs]

    @property
    def is_now_and_then(self) -> bool:
        """Whether a class has nan in some epochs, and none has it in all."""
        return any(self.nan) and self.epochs >= 2 and self.epochs not in self.nan

    @property
    def words(self) -> str:
        """Which class is nan, and how often; empty where none is."""
        texts = [
            f'the Dice of class {number} is nan in {"all" if times == self.epochs else f"{times:,} of"} '
            f'{quantity(self.epochs, "epoch", "epochs")}'
            for number, times in enumerate(self.nan, 1)
            if times
        ]
        more = f'; and of {len(texts) - 8} more' if len(texts) > 8 else ''
        return '; '.join(texts[:8]) + more

    @property
    def summary(self) -> str:
        """The line that its signature knows."""
        return f'Pseudo dice: {self.words}'
