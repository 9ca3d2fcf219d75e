"""Validation scores (Dice, mAP, mIoU): near 0 throughout, fallen to 0, or nan for a class."""

from __future__ import annotations

import re
from typing import Dict, Iterator, List, NamedTuple, Optional, Sequence, Set, Tuple

from mmguard.text import quantity, shorten_list

#: A score is only found in a line with one of these.
WORDS = (b'ice', b'mAP', b'IoU', b'DSC', b' all ')
#: Below this score a network has found nothing.
NEAR_0 = 0.01
#: Number of validations that make a trend, and of epochs after which one is enough.
_ENOUGH, _EPOCHS = 3, 10
#: Maximum number of characters of a line that is quoted.
_QUOTED = 400
#: Maximum number of scores that are kept per kind.
_KEPT = 100_000
_NUMBER = rb'(-?\d{1,9}(?:\.\d{1,20})?(?:e-?\d{1,3})?)(?![\d:])'
_SCORE = re.compile(
    rb'(?P<dice>[Pp]seudo dice|[Dd]ice [Ss]core|\b(?:mean|val)_dice|\bDSC)\s?[:=]?\s{0,3}\[?(?:np\.float32\()?'
    + _NUMBER
    + rb'|'
    rb'(?P<ap>\(AP\) @\[ ?IoU=0\.50:0\.95 \| area= {0,3}all \|[^\]\n]{0,60})\] ?= ?' + _NUMBER + rb'|'
    rb'(?P<map>\bmAP(?:@[\d.]{1,5}(?::[\d.]{1,5})?)?|mIoU(?:/\w{1,9}){0,3})\s?[:=]?\s{1,3}' + _NUMBER + rb'|'
    rb'^(?P<all>\s{1,40}all)(?:\s{1,20}[\d.e-]{1,12}){4}\s{1,20}' + _NUMBER,
    re.MULTILINE,
)
_AP_OF = re.compile(rb'(?:annotation type \*|IoU metric: )(\w{1,20})')
#: Number of bytes before a score that are searched for its epoch.
_NEAR = 1 << 11
#: Losses of boxes; if they are 0 in all of at least ``_ENOUGH_LINES`` lines, training uses no object.
_BOX_WORDS = (b'loss_bbox: ', b'iou_loss: ')
_BOX_LOSS = re.compile(rb'\b(?:loss_bbox|iou_loss): (nan|\d[\d.]*)')
_ENOUGH_LINES = 5
_EPOCH = re.compile(rb'[Ee]poch(?:\((?:train|val|test)\))?\W{0,3}(\d{1,6})|^\s{1,9}(\d{1,6})/\d{1,6}\s', re.MULTILINE)


class Sign(NamedTuple):
    """A text that a signature recognizes, and the log line that shows it, with its number."""

    text: str
    line: int
    quoted: str


def find_lines(text: bytes, markers: Sequence[bytes]) -> Iterator[Tuple[int, bytes]]:
    """Yield the lines of a text that contain one of the words, in order, with their places."""
    places = set()
    for word in markers:
        at = text.find(word)
        while at >= 0:
            places.add(text.rfind(b'\n', 0, at) + 1)
            end = text.find(b'\n', at)
            at = text.find(word, end) if end >= 0 else -1
    for start in sorted(places):
        end = text.find(b'\n', start)
        yield start, text[start : end if end >= 0 else len(text)]


def _number_row(text: bytes, start: int, line: bytes, first: int) -> Tuple[int, str]:
    """Return the number of a row in a piece of a log that begins in line ``first``, and the line."""
    return first + text.count(b'\n', 0, start), line.decode('utf-8', 'replace').strip()[:_QUOTED]


class Scores:
    """Values of each kind of score.

    Example:
        >>> scores = Scores()
        >>> scores.take(b'mAP@0.5: 0.0\\nmAP@0.5: 0.0\\nmAP@0.5: 0.001\\n', 1)
        >>> scores.sign
        Sign(text='Score near 0: mAP@0.5 is at most 0.001 in 3 validations', line=3, quoted='mAP@0.5: 0.001')
    """

    def __init__(self) -> None:
        self.values: Dict[str, List[float]] = {}
        self._last: Dict[str, Tuple[int, str]] = {}
        self._epoch = 0
        self._box_lines = 0
        self._has_boxes = False

    def take(self, text: bytes, first: int) -> None:
        """Collect the scores of a piece of a log that begins at a line."""
        for start, line in find_lines(text, WORDS):
            for found in _SCORE.finditer(line):
                group, kind = next((group, kind) for group, kind in found.groupdict().items() if kind)
                name = {'ap': 'AP', 'all': 'mAP'}.get(group) or kind.decode('ascii', 'replace')
                if group == 'ap':  # of boxes and of masks, in one validation
                    name = ' '.join(
                        [name, *[part.decode() for part in _AP_OF.findall(text[max(start - _NEAR, 0) : start])][-1:]]
                    )
                values = self.values.setdefault(name, [])
                if len(values) < _KEPT:
                    values.append(float(found.group(found.lastindex or 0)))
                    self._last[name] = _number_row(text, start, line, first)
                    for epoch in _EPOCH.finditer(text, max(start - _NEAR, 0), start + len(line)):
                        self._epoch = max(self._epoch, int(epoch.group(1) or epoch.group(2)))

        for start, line in find_lines(text, _BOX_WORDS) if not self._has_boxes else ():
            found_loss = _BOX_LOSS.search(line)
            self._box_lines += found_loss is not None
            self._has_boxes |= found_loss is not None and found_loss.group(1).strip(b'0.') != b''
            self._last['box loss'] = _number_row(text, start, line, first)

    @property
    def sign(self) -> Optional[Sign]:
        """Sign given by the scores; ``None`` if they give none."""
        if self._box_lines >= _ENOUGH_LINES and not self._has_boxes:
            text = f'No object in training: the loss of the boxes is 0 in all of {self._box_lines:,} lines'
            return Sign(text, *self._last['box loss'])
        signs = [sign for sign in map(self._find_sign, self.values) if sign is not None]
        # If one kind of score is fine, a bad value of another is not reliable.
        return signs[0] if signs and len(signs) == len(self.values) else None

    def _find_sign(self, name: str) -> Optional[Sign]:
        values, last = self.values[name], self._last[name]
        best = max(values)
        if best < NEAR_0:
            is_trend = len(values) >= _ENOUGH or self._epoch >= _EPOCHS or not self._epoch
            times = quantity(len(values), 'validation')
            return Sign(f'Score near 0: {name} is at most {best:g} in {times}', *last) if is_trend else None
        fallen = next((place for place, value in enumerate(reversed(values)) if value >= NEAR_0), 0)
        if fallen >= _ENOUGH and best >= 5 * NEAR_0:
            return Sign(
                f'Score collapsed: {name} fell from {best:g} to {values[-1]:g}, for {fallen} validations', *last
            )
        return None


#: Lines with the scores of classes: nnU-Net v2 and v1; the table of MMSegmentation has `nan` for a class without
#: labels.
_CLASS_WORDS = (b'seudo dice', b'foreground Dice', b' nan ', b' Class ')
#: nnU-Net validates on patches: in fewer epochs a class may be missing by chance.
_ENOUGH_EPOCHS = 3
#: Explanation for a class that is nan only in some epochs.
NAN_IN_SOME_EPOCHS_NOTE = (
    'That is harmless: the class neither occurs nor is predicted in the patches of these validations. If it happens in '
    'every epoch, the labels are wrong'
)
_LINE = re.compile(rb'(?:[Pp]seudo dice|[Gg]lobal foreground Dice:?)\s*\[([^\]\n]{1,20000})\]')
_HEAD = re.compile(rb'\|\s{1,99}Class\s{1,99}\|\s{1,9}IoU\s{1,9}\|\s{1,9}Acc\s{1,9}\|')
_ROW = re.compile(rb'\|\s{1,99}(\S[^|\n]{0,99}?)\s{1,99}\|\s{1,9}(nan|0\.0)\s{1,9}\|\s{1,9}nan\s{1,9}\|')


class ClassScores:
    """Number of validations, and of those in which a class scores nan because it has no labels.

    Example:
        >>> scores = ClassScores()
        >>> scores.take(b'Pseudo dice [nan, 0.91] \\nPseudo dice [0.8, np.float32(0.92)] \\n', 1)
        >>> scores.summary
        'the Dice of class 1 is nan in 1 of 2 epochs'
    """

    def __init__(self) -> None:
        #: Number of validations on patches (nnU-Net), and on all labels.
        self.epochs = self.validations = 0
        #: Class -> number of validations in which it is nan.
        self.nan: Dict[str, int] = {}
        #: Classes of which an IoU of 0 shows that they are predicted.
        self.predicted: Set[str] = set()
        #: The last line with nan, with its number.
        self.last = (0, '')

    def take(self, text: bytes, first: int) -> None:
        """Count the validations of a piece of a log that begins at a line."""
        for start, line in find_lines(text, _CLASS_WORDS):
            found = _LINE.search(line)
            row = _ROW.search(line)
            self.epochs += found is not None
            self.validations += _HEAD.search(line) is not None
            nan = [row.group(1).decode('utf-8', 'replace')] if row else []
            if found:
                nan = [str(place) for place, value in enumerate(found.group(1).split(b','), 1) if b'nan' in value]
            if nan:
                self.last = _number_row(text, start, line, first)
            if row and row.group(2) != b'nan':
                self.predicted.update(nan)
            for name in nan:
                self.nan[name] = self.nan.get(name, 0) + 1

    @property
    def always_nan(self) -> List[str]:
        """Classes whose score is nan in every validation, if there are enough validations."""
        is_enough = self.validations or self.epochs >= _ENOUGH_EPOCHS
        return [name for name, times in self.nan.items() if times >= self._all] if is_enough else []

    @property
    def is_sometimes_nan(self) -> bool:
        """True if the score of a class is nan in some epochs, and that of no class in all."""
        return bool(self.nan) and self._all >= 2 and self._all not in self.nan.values()

    @property
    def summary(self) -> str:
        """Classes whose score is nan, and in how many validations; empty if none is."""
        score, *unit = ('Acc', 'validation', 'validations') if self.validations else ('Dice', 'epoch', 'epochs')
        names = sorted(self.nan, key=lambda name: name.zfill(9) if name.isdigit() else '')
        of_all = f'of {quantity(self._all, *unit)}'
        texts = [f'the {score} of class {name} is nan in {self.nan[name]:,} {of_all}' for name in names]
        return '; '.join(shorten_list(texts, 8))

    @property
    def _all(self) -> int:
        return self.validations or self.epochs
