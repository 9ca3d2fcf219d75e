"""Search for faults in the scores and losses of a log: low, falling or nan scores, a single class, losses of 0."""

from __future__ import annotations

import re
from collections import Counter
from typing import Dict, Iterator, List, NamedTuple, Optional, Pattern, Sequence, Set, Tuple

from mmguard.commands.explain.log_errors import Piece
from mmguard.text import quantity, shorten_list

#: Only lines with one of these words are searched for a score.
WORDS = (b'ice', b'mAP', b'IoU', b'DSC', b' all ', b'_iou', b'miou', b'Jaccard')
#: Score below which a network has found nothing.
NEAR_0 = 0.01
#: Minimum number of validations for a sign, and of epochs after which a single validation is enough.
_ENOUGH, _EPOCHS = 3, 10
#: A falling score never rises, and drops to this fraction of the first score in at least this number of validations.
_FALLEN, _FALLS = 0.8, 4
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
    # The logs of transformers and of torchmetrics.
    rb'(?P<iou>\b(?:eval|val|test)[_/](?:mean_iou|m_?iou|(?:Mean|m)IoU|\w{0,20}Jaccard\w{0,20}))["\']?\s?[:=|]\s{0,9}'
    + _NUMBER
    + rb'|'
    rb'^(?P<all>\s{1,40}all)(?:\s{1,20}[\d.e-]{1,12}){4}\s{1,20}' + _NUMBER,
    re.MULTILINE,
)
#: Pattern of a row of the table that transformers shows in a notebook, and of the heading of its score column.
_TABLE = re.compile(rb'^\|? ?(?:Epoch|Step|\d{1,7}) ?[\t|][^\n]*', re.MULTILINE)
_TABLE_SCORE = re.compile(rb'(?i)^(?:mean[ _]?iou|miou|map|(?:mean )?dice)$')
_AP_OF = re.compile(rb'(?:annotation type \*|IoU metric: )(\w{1,20})')
#: Number of bytes before a score that are searched for its epoch.
_NEAR = 1 << 11
#: Box losses. If they are 0 in at least ``_ENOUGH_LINES`` lines and never differ from 0, training uses no object.
_BOX_WORDS = (b'loss_bbox: ', b'iou_loss: ')
_BOX_LOSS = re.compile(rb'\b(?:loss_bbox|iou_loss): (nan|\d[\d.]*)')
#: Loss and accuracy of label maps. Both are perfect from the start if the model has only one class.
_MAP_WORDS = (b'acc_seg: ',)
_MAP_LOSS = re.compile(rb'\bloss_\w{1,40}: ((?:nan|\d[\d.]*),?\s{1,9}[\w.]{0,60}acc_seg: [\d.]{1,12})')
_ZERO = re.compile(rb'0[.0]*(?:,?\s+[\w.]+: 100[.0]*)?')
_ENOUGH_LINES = 5
_EPOCH = re.compile(rb'[Ee]poch(?:\((?:train|val|test)\))?\W{0,3}(\d{1,6})|^\s{1,9}(\d{1,6})/\d{1,6}\s', re.MULTILINE)


def find_lines(text: bytes, markers: Sequence[bytes]) -> Iterator[Tuple[int, bytes]]:
    """Yield (offset, line) for each line of a text that contains one of the ``markers``, in order."""
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
    """Return number and text of the line at offset ``start`` of a piece that begins at line ``first``."""
    return first + text.count(b'\n', 0, start), line.decode('utf-8', 'replace').strip()[:_QUOTED]


class ZeroLoss:
    """Count of the log lines with a loss; ``is_zero`` is True if the loss is 0 in all of these lines."""

    def __init__(self, words: Sequence[bytes], pattern: Pattern[bytes]) -> None:
        self._words, self._pattern = words, pattern
        self.lines, self.is_zero = 0, True
        self.last = (0, '')  #: The last line with the loss, with its number.

    def take(self, text: bytes, first: int) -> None:
        """Count the lines with the loss in a piece of a log that begins at line ``first``."""
        for start, line in find_lines(text, self._words) if self.is_zero else ():
            found = self._pattern.search(line)
            if found is not None:
                self.lines += 1
                self.is_zero &= _ZERO.fullmatch(found.group(1)) is not None
                self.last = _number_row(text, start, line, first)

    @property
    def is_sign(self) -> bool:
        """True if the loss is 0 in all lines, and in at least ``_ENOUGH_LINES`` lines."""
        return self.is_zero and self.lines >= _ENOUGH_LINES


class Scores:
    """Validation scores in a log, by kind of score.

    Example:
        >>> scores = Scores()
        >>> scores.take(b'mAP@0.5: 0.0\\nmAP@0.5: 0.0\\nmAP@0.5: 0.001\\n', 1)
        >>> scores.sign
        Piece(line=3, text='mAP@0.5: 0.001', searched='Score near 0: mAP@0.5 is at most 0.001 in 3 validations')
    """

    def __init__(self) -> None:
        self.values: Dict[str, List[float]] = {}
        self._last: Dict[str, Tuple[int, str]] = {}
        self._epoch = 0
        self._column = (0, '')  #: Number and name of the score column in a notebook's table.
        self._boxes = ZeroLoss(_BOX_WORDS, _BOX_LOSS)
        self.maps = ZeroLoss(_MAP_WORDS, _MAP_LOSS)

    def take(self, text: bytes, first: int) -> None:
        """Collect the scores in a piece of a log that begins at line ``first``."""
        for start, line in find_lines(text, WORDS):
            for found in _SCORE.finditer(line):
                group, kind = next((group, kind) for group, kind in found.groupdict().items() if kind)
                name = {'ap': 'AP', 'all': 'mAP'}.get(group) or kind.decode('ascii', 'replace')
                if group == 'ap':  # of boxes and of masks, in one validation
                    kinds = _AP_OF.findall(text[max(start - _NEAR, 0) : start])
                    name = ' '.join([name, *(one.decode() for one in kinds[-1:])])
                if self._add(name, found.group(found.lastindex or 0), _number_row(text, start, line, first)):
                    for epoch in _EPOCH.finditer(text, max(start - _NEAR, 0), start + len(line)):
                        self._epoch = max(self._epoch, int(epoch.group(1) or epoch.group(2)))
        if self._column[0] or b'Training Loss' in text:
            self._take_table(text, first)
        self._boxes.take(text, first)
        self.maps.take(text, first)

    def _add(self, name: str, value: bytes, row: Tuple[int, str]) -> bool:
        values = self.values.setdefault(name, [])
        if len(values) < _KEPT:
            values.append(float(value))
            self._last[name] = row
        return len(values) < _KEPT

    def _take_table(self, text: bytes, first: int) -> None:
        for row in _TABLE.finditer(text):
            cells = [cell.strip() for cell in re.split(rb'[\t|]', row.group().strip(b'| '))]
            number, name = self._column
            if not cells[0].isdigit():
                scores = [(place, cell.decode()) for place, cell in enumerate(cells) if _TABLE_SCORE.search(cell)]
                self._column = scores[0] if scores else (0, '')
            elif number and number < len(cells) and re.fullmatch(_NUMBER, cells[number]):
                self._add(name, cells[number], _number_row(text, row.start(), row.group(), first))
                self._epoch = max(self._epoch, int(cells[0]))

    @property
    def sign(self) -> Optional[Piece]:
        """Sign that the model does not learn, or ``None`` if the scores do not show such a sign."""
        if self._boxes.is_sign:
            text = f'No object in training: the loss of the boxes is 0 in all of {self._boxes.lines:,} lines'
            return Piece(*self._boxes.last, text)
        signs = [sign for sign in map(self._find_sign, self.values) if sign is not None]
        # If one kind of score is fine, a bad value of another is not reliable.
        return signs[0] if signs and len(signs) == len(self.values) else None

    def _find_sign(self, name: str) -> Optional[Piece]:
        values, last = self.values[name], self._last[name]
        best = max(values)
        if best < NEAR_0:
            if len(values) < _ENOUGH and 0 < self._epoch < _EPOCHS:
                return None
            return Piece(*last, f'Score near 0: {name} is at most {best:g} in {quantity(len(values), "validation")}')
        fallen = next((place for place, value in enumerate(reversed(values)) if value >= NEAR_0), 0)
        if fallen >= _ENOUGH and best >= 5 * NEAR_0:
            said = f'Score collapsed: {name} fell from {best:g} to {values[-1]:g}; the last {fallen} scores are near 0'
            return Piece(*last, said)
        if len(values) >= _FALLS and values == sorted(values, reverse=True) and values[-1] <= _FALLEN * best:
            return Piece(*last, f'Score falls: {name} from {best:g} to {values[-1]:g} in {len(values)} validations')
        return None


#: Words of lines with scores per class: of nnU-Net v2 and v1, and in the tables of MMSegmentation (`nan` for a class
#: without labels) and MMDetection (`nan`, or `gts` 0).
_CLASS_WORDS = (b'seudo dice', b'foreground Dice', b' nan ', b' Class ', b' gts ', b' category ')
#: Minimum number of epochs of nnU-Net, which validates on patches; in fewer epochs a class may be missing by chance.
_ENOUGH_EPOCHS = 3
#: Note about a class whose score is nan only in some epochs.
NAN_IN_SOME_EPOCHS_NOTE = (
    'A nan in some epochs is harmless: the class neither occurs nor is predicted in the patches of these validations. '
    'If the score is nan in every epoch, the labels are wrong'
)
_LINE = re.compile(rb'(?:[Pp]seudo dice|[Gg]lobal foreground Dice:?)\s*\[([^\]\n]{1,20000})\]')


class _Score(NamedTuple):
    """Score per class: its name, its value for a class without labels, and what is counted, such as ``'epoch'``."""

    name: str
    value: str
    unit: str


#: Dice score of nnU-Net, whose validations are on patches.
_DICE = _Score('Dice', 'nan', 'epoch')
#: Number of objects per class (``gts``) in tables of MMDetection, which is treated like a score.
_OBJECTS = _Score('gts', '0', 'table')
#: {pattern of the head of a table: score in the table}.
_HEADS = {
    re.compile(rb'\|\s{1,99}Class\s{1,99}\|\s{1,9}IoU\s{1,9}\|\s{1,9}Acc\s{1,9}\|'): _Score('Acc', 'nan', 'validation'),
    re.compile(rb'\|\s{1,9}category\s{1,99}\|\s{1,9}mAP\s{1,9}\|\s{1,9}mAP_50\s{1,9}\|'): _Score('AP', 'nan', 'table'),
    re.compile(rb'\|\s{1,9}class\s{1,99}\|\s{1,9}gts\s{1,9}\|\s{1,9}dets\s{1,9}\|'): _OBJECTS,
}
_NAME = rb'^[^|\n]{0,200}\|\s{1,99}(\S[^|\n]{0,99}?)\s{1,99}\|\s{1,9}'
_ROWS = {
    'nan': re.compile(_NAME + rb'(nan|0\.0)\s{1,9}\|\s{1,9}nan\s{1,9}\|'),
    '0': re.compile(_NAME + rb'(0)\s{1,9}\|\s{1,9}\d+\s{1,9}\|'),
}
#: First row of a table of MMSegmentation (group 3 is ``+`` if it is the only row), and the accuracy of all pixels.
_FIRST_ROW = re.compile(
    rb'[^|\n]{0,200}\|\s{1,99}Class\s[^\n]{1,400}\n[^\n|]{0,400}\n'
    + _NAME.lstrip(b'^')
    + rb'[\w.]{1,9}\s{1,9}\|\s{1,9}(nan|\d{1,3}(?:\.\d{1,9})?)\s{1,9}\|[^\n]{0,400}\n[^|+\n]{0,200}([|+])'
)
_ALL_ACCURACY = re.compile(rb'\baAcc: (\d{1,3}(?:\.\d{1,9})?)')


class ClassScores:
    """Counter of validations in a log, and for each class, of validations without its labels, where its score is nan.

    Example:
        >>> scores = ClassScores()
        >>> scores.take(b'Pseudo dice [nan, 0.91] \\nPseudo dice [0.8, np.float32(0.92)] \\n', 1)
        >>> scores.summary
        'the Dice of class 1 is nan in 1 of 2 epochs'
    """

    def __init__(self) -> None:
        self._counted: Counter = Counter()  #: {score: number of validations or tables with this score}.
        self._nan: Counter = Counter()  #: {(score, class): number of validations without labels of the class}.
        self._table = _DICE  #: Score of the last table.
        self.predicted: Set[str] = set()  #: Classes without labels that are predicted (their IoU is 0).
        self.last = (0, '')  #: The last line with nan, with its number.
        #: Line of the only class in the tables, if the accuracy of this class is the accuracy of all pixels.
        self.only: Optional[Piece] = None

    def take(self, text: bytes, first: int) -> None:
        """Count the validations in a piece of a log that begins at line ``first``."""
        is_counted = self._table is _OBJECTS or b' gts ' in text
        for start, line in find_lines(text, (*_CLASS_WORDS, b' 0 ') if is_counted else _CLASS_WORDS):
            found = _LINE.search(line)
            score = next((score for head, score in _HEADS.items() if head.search(line)), None)
            if score is not None:
                self._table = score
                self._see_first_row(text, start, first)
            shown = _DICE if found else score
            self._counted.update([] if shown is None else [shown])
            row = None if self._table is _DICE else _ROWS[self._table.value].search(line)
            nan = [row.group(1).decode('utf-8', 'replace')] if row else []
            if found:
                nan = [str(place) for place, value in enumerate(found.group(1).split(b','), 1) if b'nan' in value]
            if nan:
                self.last = _number_row(text, start, line, first)
            if row and row.group(2) == b'0.0':
                self.predicted.update(nan)
            self._nan.update((shown or self._table, name) for name in nan)

    def _see_first_row(self, text: bytes, start: int, first: int) -> None:
        """Set ``only`` if the table at ``start`` has a single class, whose accuracy equals that of all pixels."""
        row = _FIRST_ROW.match(text, start)
        if row is None:
            return
        self.only = None
        accuracy = _ALL_ACCURACY.search(text, row.end(), row.end() + _NEAR)
        if row.group(3) == b'+' and accuracy is not None:
            own, of_all = float(row.group(2)), float(accuracy.group(1))
            if min(abs(own - of_all), abs(own - 100 * of_all)) < 0.02:
                said = f'the validation counts only {row.group(1).decode("utf-8", "replace")}, with Acc {own:g} = aAcc'
                place = text.rfind(b'\n', 0, row.start(1)) + 1
                line = text[place : text.find(b'\n', place)]
                self.only = Piece(*_number_row(text, place, line, first), said)

    @property
    def missing(self) -> Set[str]:
        """Classes without labels in at least one validation."""
        return {name for _, name in self._nan}

    @property
    def always_nan(self) -> List[str]:
        """Classes whose score is nan in every validation, if there are enough validations."""
        always = [(score, name) for (score, name), times in self._nan.items() if times >= self._counted[score]]
        return [name for score, name in always if score is not _DICE or self._counted[score] >= _ENOUGH_EPOCHS]

    @property
    def is_sometimes_nan(self) -> bool:
        """True if a class scores nan in some validations, and no class in all of them."""
        return bool(self._nan) and all(
            self._counted[score] not in (1, times) for (score, _), times in self._nan.items()
        )

    @property
    def is_on_patches(self) -> bool:
        """True if the validations are on patches (nnU-Net), so that a score may be nan by chance."""
        return _DICE in self._counted

    @property
    def summary(self) -> str:
        """Text that says in how many validations the score of a class is nan; empty if no score is nan."""
        keys = sorted(self._nan, key=lambda key: key[1].zfill(9) if key[1].isdigit() else '')
        texts = [
            f'the {score.name} of class {name} is {score.value} in {self._nan[score, name]:,} '
            f'of {quantity(self._counted[score], score.unit, f"{score.unit}s")}'
            for score, name in keys
        ]
        return '; '.join(shorten_list(texts, 8))


def find_one_class(only: Optional[Piece], loss: ZeroLoss) -> Optional[Piece]:
    """Return a sign that model or metric has a single class, or ``None`` if neither tables nor loss show this."""
    if loss.is_sign:
        said = f'the loss is 0 and acc_seg 100 in all of {loss.lines:,} lines'
        return Piece(*loss.last, f'One channel or class: {f"{only.searched}; " if only else ""}{said}')
    if only is None:
        return None
    return only._replace(
        searched=f'One channel or class: {only.searched}{"" if loss.is_zero else ", but the loss is not 0"}'
    )
