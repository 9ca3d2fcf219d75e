"""The Dice that nnU-Net logs after each epoch: nan now and then is harmless, nan in every epoch is not."""

from __future__ import annotations

import re
from typing import List

from mmguard.text.words import counted

#: What stands in a piece of a log that has it; nnU-Net v2 and v1.
WORDS = (b'seudo dice', b'foreground Dice')
#: Of fewer epochs nobody can say that a class has none in all.
_ENOUGH = 3
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
        if not any(words in text for words in WORDS):
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
        if self.epochs < _ENOUGH:
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
            f'{counted(self.epochs, "epoch", "epochs")}'
            for number, times in enumerate(self.nan, 1)
            if times
        ]
        more = f'; and of {len(texts) - 8} more' if len(texts) > 8 else ''
        return '; '.join(texts[:8]) + more

    @property
    def summary(self) -> str:
        """The line that its signature knows."""
        return f'Pseudo dice: {self.words}'
