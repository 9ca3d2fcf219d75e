"""Collector of facts in a log, such as the number of classes, the framework and the progress of the training.

An inferred fact is a text that begins with ``fact: ``. The patterns of causes match it, but the user sees the log line.
"""

from __future__ import annotations

import re
from typing import Iterator, List, NamedTuple, Optional, Sequence, Tuple

from mmguard.commands.explain.log_errors import Piece

#: Number of bytes that are searched for facts at the beginning, and near errors.
HEAD = 1 << 17
#: Maximum number of lines that are kept per kind.
_KEPT = 4
#: Number of characters that are searched for a framework.
_SEARCHED = 1 << 17
_LINES = re.compile(
    r'(?P<classes>(?:num_classes|n_classes|out_channels|\bnc)["\']?\s?[:=]\s?\d'
    r'|\b\d{1,6} (?:classes|output channels)\b)'
    r'|(?P<masks>\bloss_(?:ce|dice|mask): \d)'
    r'|(?P<proposals>\bloss_rpn_\w{1,20}: \d)'
    r'|(?P<config>\bconfig[_-]file\W{1,4}[^\s\'"]{1,200})'
    r'|(?P<imported>\bimports\b\W{1,40}mmguard\b| - guard: )'
    r'|(?P<unlabeled>\b[1-9]\d{0,8} (?:missing|backgrounds)\b)'
    r'|(?P<precision>[Mm]ixed [Pp]recision|\bAMP\b|--amp\b|fp16|autocast)'
    r'|(?P<ranks>Distributed training: True|nproc_per_node|torch\.distributed|\bDDP\b|\d ranks|[Rr]ank \d)'
)
#: Every line with facts has one of these words. ``_NEXT`` characters of the next line are searched if a line continues.
_WORDS = re.compile(
    'missing|backgrounds|loss_(?:ce|dice|mask|rpn)|config.file|classes|channels|nc|imports|guard|ixed|AMP|amp|fp16|cast|nproc|torch|DDP|Distributed|ank'
)
_NEXT = 60
_CLASSES = re.compile(
    r'(?:num_classes|n_classes|\bnc)["\']?\s?[:=]\s?(\d{1,6})\b|\b(\d{1,6}) (?:output channels|classes)\b'
)
#: Error of a label that was used as the index of a column.
_SIZED = re.compile(r'index (\d{1,9}) is out of bounds for dimension \d+ with size (\d{1,9})\b')
_VALUE = re.compile(r'\b(?:[Tt]arget|index|Label class|label class|values?) (-?\d{1,9})\b')
#: {framework: pattern for paths of a traceback and for the beginning of a log}; specific frameworks come first.
_FRAMEWORKS = {
    name: re.compile(pattern)
    for name, pattern in {
        'mmseg': r'\bmmseg(?:mentation)?\b|MMSegmentation',
        'mmdet': r'\bmmdet(?:ection)?\b|MMDetection',
        'mmengine': r'\bmm(?:engine|cv)\b',
        'ultralytics': r'[Uu]ltralytics|\bYOLOv\d|yolov[35]|exceeds nc=',
        'nnunet': r'nn-?[Uu]-?[Nn]et|[Pp]seudo [Dd]ice|global foreground Dice',
        'detectron2': r'\bdetectron2\b|\bd2\.',
        'monai': r'\bmonai\b',
        'yolox': r'[/\\]yolox[/\\]',
        'rf-detr': r'(?i)[/\\]rf-?detr[/\\]',
        'rt-detr': r'(?i)[/\\]rt-?detr(?:v2)?(?:_pytorch)?[/\\]',
        'd-fine': r'(?i)[/\\]d-?fine[/\\]',
        'deim': r'(?i)[/\\]deim(?:v2)?[/\\]',
        'transformers': r'[/\\]transformers[/\\]',
        'torchvision': r'torchvision[/\\]models',
    }.items()
}
_VALIDATION = re.compile(r'\b(?:[Vv]al(?:id\w*)?|[Ee]valuat\w*)\b')
_FIRST = re.compile(
    r'^\s{0,9}[01]/\d+\s[^\n]{0,300}\|\s{0,3}[0-2]/\d'  # a table of YOLO
    r'|[Ee]poch\W{1,4}[01]\b[^\n]{0,300}(?:\||\[)\s{0,9}[0-2]/\d'
    r'|Iter(?:\(train\))? \[\s{0,9}[0-2]/\d'
    r'|\b(?:step|iter(?:ation)?)\W{1,3}[0-2]\b(?!/)'
)
_LATE = re.compile(
    r'(?:\||\[)\s{0,9}(\d{2,9})/\d|\b[Ee]poch\W{1,4}[1-9]\d*\b|\b(?:step|iter(?:ation)?)\W{1,3}\d{2,9}\b'
)
_PROGRESS = re.compile(
    r'(?P<epoch>[Ee]poch\W{1,4}(?P<done>\d{1,9})/(?P<all>\d{1,9}))|\[\s{0,9}(?P<iter>\d{1,9})/(?P<iters>\d{1,9})\]'
)
_DONE = re.compile(r'[Dd]one\b|[Ff]inish|[Cc]omplet|[Ss]aved?\b|[Ee]xit|[Ee]arly stop|\bbest\b|Results saved')
_PART = re.compile(
    r'\b(\w{0,40}(?:loss|iou|box|cls|mask|dfl)\w{0,40})["\']?\s{0,2}[:=]\s{0,2}(?:tensor\()?(nan|NaN|-?\d)'
)
#: Patterns that show that labels are boxes (``_BOXES``) or label maps (``_MAPS``).
_BOXES = re.compile(
    r'(?:box|bbox|giou|dfl|obj)_?loss|loss_(?:r\w{2,4}_)?(?:box|bbox|giou)|exceeds nc=|(?:bbox|rpn|roi|dense)_heads?\b'
    r'|box_ops|[/\\]tal\.py|models[/\\]detection|detr\w{0,30}[/\\.]|\bd2\.data\.datasets\.coco'
)
_MAPS = re.compile(
    r'decode\.|decode_head|acc_seg|segmentation_models_pytorch|[Uu]-?net\b|loss2d|Spatial\w{0,20}NLL|_2d\b'
)
#: Pattern that shows that the error is about a label map, even in a model for boxes.
_LABEL_MAP = re.compile(r'batches of spatial targets|semantic_head')
_LOSS_FILE = re.compile(r'(?:_head|loss|losses|criterion|matcher|assigner)\.py:\d|:\d+ in \w{0,40}loss')
_BOX = re.compile(r'inv\w{3,4} box \[' + r',\s'.join([r'(-?\d+(?:\.\d+)?)'] * 4))
_RANGE = re.compile(r'to be in the range .{1,20}, got (?:tensor\()?(-?\d+(?:\.\d+)?)')
#: Box loss and the two losses after it in a row of YOLO's table.
_TABLE = re.compile(r'\d\d?/\d+\s+\d[\d.]*G\s+(nan|[\d.]+)\s+(nan|[\d.]+)\s+(nan|[\d.]+)\s')
_LOSS = re.compile(r'\b(?:total_)?loss["\']?: (\d{1,9}(?:\.\d{1,9})?)\b')
#: Patterns of a gradient or loss from which no training recovers, and of identities (persons, vehicles) as labels.
_EXPLODED = re.compile(r'\bgrad_norm["\']?: (?:\d{7,}|\d[\d.]*e\+(?:0[6-9]|[1-9]\d))|\b(?:total_)?loss["\']?: \d{6,}')
_IDENTITIES = re.compile(r'\bpids?\b|\bre-?id\b|(?:torch|fast)reid\b|\bidentit(?:y|ies)\b')
#: Pattern of a model without region proposals, in the name of a config.
_ONE_STAGE = re.compile(r'(?i)mask2?former|(?<![a-z])detr|retinanet|fcos')
#: An index that may be two 32-bit integers, read as one 64-bit integer.
_WIDE = re.compile(r'index (\d{10,19}) is out of bounds')
_FIRST_LOSS = re.compile(r'\b\w*loss["\']?(?:\s?[:=]|\s)\s{0,3}(?:tensor\()?(nan|NaN|-?\d)')
_SHAPE = re.compile(r'\[(\d+(?:, \d+)+)\]')
#: Expected and found label values in a message of nnU-Net, in brackets over several lines.
_VALUES = re.compile(r'Expected: \[([^\]]*)\]\W{0,9}[Ff]ound: \[([^\]]*)\]')


class LogFacts(NamedTuple):
    """Facts of a log with their lines, and the framework in the log (empty if unknown)."""

    pieces: List[Piece]
    framework: str

    @property
    def task(self) -> str:
        """Kind of labels that the error is about, ``'boxes'`` or ``'segmentation'``; empty if unknown."""
        said = [piece.searched for piece in self.pieces]
        return next((kind for kind in ('boxes', 'segmentation') if f'fact: {kind}' in said), '')


class FactLines:
    """Collector of log lines that help to decide between causes, such as lines with the number of classes."""

    def __init__(self) -> None:
        self.found: List[Tuple[str, int, str]] = []

    def take(self, text: str, first: int) -> None:
        """Collect the facts of a piece of the log that begins at line ``first``."""
        start = 0
        for number, line in enumerate(text.split('\n'), first):
            end = start + len(line)
            if _WORDS.search(line):
                # A list of imports may continue in the next line.
                for found in _LINES.finditer(text, start, end + _NEXT if 'imports' in line else end):
                    kind = found.lastgroup or ''
                    if found.start() < end and sum(one[0] == kind for one in self.found) < _KEPT:
                        self.found.append((kind, number, line.strip()[:400]))
            start = end + 1

    def find_other_model(self) -> Optional[Piece]:
        """Return a sign if the log has losses of an RPN, but the config names a model without RPN, else ``None``."""
        config = next(
            (found for _, text in self.find_kind('config') for found in [_ONE_STAGE.search(text)] if found), None
        )
        loss = next(self.find_kind('proposals'), None)
        if config is None or loss is None:
            return None
        return Piece(*loss, f'Another model trains: loss_rpn_ is a loss of an R-CNN, but the config is for {config[0]}')

    def find_kind(self, kind: str) -> Iterator[Tuple[int, str]]:
        """Yield (line number, text) of the collected lines of a kind, such as ``'classes'`` or ``'ranks'``."""
        return ((number, text) for one, number, text in self.found if one == kind)


def find_facts(
    lines: FactLines,
    before: Sequence[Tuple[int, str]],
    pieces: Sequence[Piece],
    names: Sequence[str] = (),
    num_classes: Optional[int] = None,
    beginning: Sequence[str] = (),
) -> LogFacts:
    """Return the facts shown by the collected ``lines`` of a log, the lines ``before`` its error, and the errors.

    ``names`` are texts that may name a framework, ``num_classes`` comes from ``--num-classes``, and ``beginning`` has
    the first lines of the log.
    """
    facts = [Piece(line, text, text) for _, line, text in lines.found]
    facts += _find_facts_of_classes(lines, pieces, num_classes)
    facts += [Piece(line, text, 'fact: mmguard is imported') for kind, line, text in lines.found if kind == 'imported']
    facts += _find_facts_of_progress(before)
    finders = (_find_fact_of_losses, _find_fact_of_shapes, _find_fact_of_range, _find_fact_of_values)
    facts += filter(None, (find(pieces) for find in finders))
    first = next((found.group(1) for found in map(_FIRST_LOSS.search, beginning) if found), '')
    if first in ('nan', 'NaN'):
        facts.append(Piece(pieces[0].line, pieces[0].text, 'fact: nan from the start'))
    framework = find_framework([*(piece.text for piece in pieces), *names])
    facts += _find_facts_of_kind([*pieces, *(Piece(line, text, text) for line, text in before)], framework)
    return LogFacts(facts, framework)


def find_framework(texts: Sequence[str]) -> str:
    """Return the framework that texts name; prefer a specific one (mmseg) to its base (mmengine); empty if unknown."""
    joined = '\n'.join(texts)[:_SEARCHED]
    return next((name for name, pattern in _FRAMEWORKS.items() if pattern.search(joined)), '')


def find_ending(last: Sequence[Tuple[int, str]]) -> Optional[Piece]:
    """Return the line at which a log ends early, or ``None`` if the log is complete or its length is unknown."""
    for line, text in reversed(last):
        if _DONE.search(text):
            return None
        found = _PROGRESS.search(text)
        if found:
            done, total = (
                int(found.group(one) or 0) for one in (('iter', 'iters') if found['iter'] else ('done', 'all'))
            )
            if 0 < done < total:
                quoted = text.strip()[:400]
                return Piece(line, quoted, f'Log ends: training reached {done:,} of {total:,} ({quoted})')
            return None
    return None


def _find_facts_of_classes(lines: FactLines, pieces: Sequence[Piece], num_classes: Optional[int]) -> Iterator[Piece]:
    value = next((found for found in (_VALUE.search(piece.searched) for piece in pieces[:4]) if found), None)
    number = int(value.group(1)) if value else None
    own = [(piece.line, piece.text) for piece in pieces[:4]]
    said = [(line, text, _CLASSES.findall(text)) for line, text in [*own, *((n, t) for _, n, t in lines.found)]]
    # "nc=1000 with nc=24": the last number of a line is used.
    counts = [(line, text, int(found[-1][0] or found[-1][1])) for line, text, found in said if found]
    if number is not None:
        kind = 'is negative' if number < 0 else '255' if number in (254, 255) else 'other'
        yield Piece(pieces[0].line, pieces[0].text, f'fact: value {kind}')
    if num_classes is not None:
        counts.insert(0, (0, f'--num-classes {num_classes}', num_classes))
    wide = _WIDE.search(pieces[0].searched)
    if wide and all(0 < half < 1 << 16 for half in divmod(int(wide.group(1)), 1 << 32)):
        yield Piece(pieces[0].line, pieces[0].text, 'fact: two integers in one')
    sized = _SIZED.search(pieces[0].searched)
    if sized and int(sized.group(1)) > int(sized.group(2)) and number != 255:
        yield Piece(pieces[0].line, pieces[0].text, 'fact: value above num_classes')
    for line, text, classes in counts[:1]:
        yield Piece(line, text, 'fact: two classes' if classes == 2 else 'fact: more than two classes')
        if number is not None and 0 <= number < 254:
            relation = 'is' if number == classes else 'above' if number > classes else 'below'
            yield Piece(line, text, f'fact: value {relation} num_classes')


def _find_facts_of_progress(before: Sequence[Tuple[int, str]]) -> Iterator[Piece]:
    near = [(line, text) for line, text in before if text.strip()][-4:]
    for line, text in reversed(near):
        if _VALIDATION.search(text) and not re.search(r'[Tt]rain', text):
            yield Piece(line, text.strip(), 'fact: validation before the error')
            break
    for line, text in reversed(near):
        if _FIRST.search(text):
            yield Piece(line, text.strip(), 'fact: first iterations')
            break
        if _LATE.search(text):
            yield Piece(line, text.strip(), 'fact: trained before')
            break
    for line, text in before:
        exploded = _EXPLODED.search(text)
        if exploded:
            yield Piece(line, text[max(exploded.start() - _NEXT, 0) :].strip(), 'fact: the loss exploded')
    losses = [(float(loss.group(1)), line, text) for line, text in before for loss in [_LOSS.search(text)] if loss]
    if len(losses) > 1 and losses[-1][0] < losses[0][0]:
        yield Piece(losses[-1][1], losses[-1][2].strip(), 'fact: the loss fell')


def _find_facts_of_kind(pieces: Sequence[Piece], framework: str) -> Iterator[Piece]:
    shown = {'ultralytics': 'boxes', 'mmseg': 'segmentation', 'nnunet': 'segmentation'}.get(framework)
    kinds = {'boxes': _BOXES, 'segmentation': _MAPS, 'in a loss': _LOSS_FILE, 'identities': _IDENTITIES}
    found = {kind: next((one for one in pieces if words.search(one.searched)), None) for kind, words in kinds.items()}
    about_maps = next((one for one in pieces if _LABEL_MAP.search(one.searched)), None)
    if about_maps is not None:
        found.update({'boxes': None, 'segmentation': about_maps})
    elif shown is not None:
        found.update({'boxes': None, 'segmentation': None, shown: pieces[0]})
    elif found['boxes'] and found['segmentation']:
        del found['boxes'], found['segmentation']
    yield from (Piece(one.line, one.text, f'fact: {kind}') for kind, one in found.items() if one)
    if framework == 'nnunet':  # its trainer does not say that it uses autocast
        yield Piece(pieces[0].line, pieces[0].text, 'fact: half precision')


def _find_fact_of_range(pieces: Sequence[Piece]) -> Optional[Piece]:
    for piece in pieces[:4]:
        found = _RANGE.search(piece.searched)
        if found:
            where = 'just' if -0.5 < float(found.group(1)) < 1.5 else 'far'
            return Piece(piece.line, piece.text, f'fact: {where} outside')
        box = _BOX.search(piece.searched)
        if box:
            x1, y1, x2, y2 = (float(side) for side in box.groups())
            how = 'corners reversed' if x2 < x1 or y2 < y1 else 'no area'
            return Piece(piece.line, piece.text, f'fact: {how}')
    return None


def _find_fact_of_losses(pieces: Sequence[Piece]) -> Optional[Piece]:
    for piece in sorted(pieces, key=lambda piece: piece.line):
        table = _TABLE.search(piece.searched)
        parts = [(name, value) for name, value in _PART.findall(piece.searched) if name not in ('loss', 'total_loss')]
        parts = list(zip(('box_loss', 'loss 2', 'loss 3'), table.groups())) if table else parts
        bad = [name for name, value in parts if value in ('nan', 'NaN')]
        if bad and len(parts) > 1:
            words = f'only {", ".join(bad[:8])} is nan' if len(bad) < len(parts) else 'every loss is nan'
            return Piece(piece.line, piece.text, f'fact: {words}')
    return None


def _find_fact_of_shapes(pieces: Sequence[Piece]) -> Optional[Piece]:
    for piece in pieces[:4]:
        shapes = [[int(side) for side in shape.split(', ')] for shape in _SHAPE.findall(piece.searched)][:2]
        sizes = [int(size) for size in re.findall(r'tensor [ab] \((\d{1,15})\)', piece.searched)]
        if len(sizes) == 2 and min(sizes) > 1_000_000:
            return Piece(piece.line, piece.text, 'fact: sizes are voxels')
        if len(shapes) == 2 and len(shapes[0]) != len(shapes[1]) and re.search('broadcast|equal size', piece.searched):
            return Piece(piece.line, piece.text, 'fact: shapes differ in rank')
        if len(shapes) == 2 and len(shapes[0]) == len(shapes[1]) > 2 and shapes[0][-2:] != shapes[1][-2:]:
            ratios = {max(sides) / max(min(sides), 1) for sides in zip(shapes[0][-2:], shapes[1][-2:])}
            how = 'by a factor' if len(ratios) == 1 and ratios <= {4, 8, 16} else 'in height or width'
            return Piece(piece.line, piece.text, f'fact: shapes differ {how}')
    return None


def _find_fact_of_values(pieces: Sequence[Piece]) -> Optional[Piece]:
    """Return nnU-Net's line with the values of a label file if the values may be classes, else ``None``.

    They may be classes if they are integers >= 0, not only 0 and 255, and at most one more than the declared values.
    """
    lists = _VALUES.search('\n'.join(piece.searched for piece in pieces))
    if lists is None or '...' in lists.group(2):
        return None
    declared, found = (set(re.findall(r'-?\d+(?:\.\d+)?', text)) for text in lists.groups())
    values = {float(value) for value in found}
    are_classes = all(value >= 0 and value.is_integer() for value in values) and values != {0, 255}
    if not are_classes or len(values) > len(declared) + 1:
        return None
    line = next(piece for piece in pieces if 'ound: [' in piece.searched)
    return Piece(line.line, line.text, 'fact: as many values as classes')
