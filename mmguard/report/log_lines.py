"""The lines of a training's ``label_guard.jsonl``: what of them can be understood."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Dict, Iterator, List

from mmguard.log.span import ByKind, by_kind
from mmguard.log.totals import KINDS, LossCount
from mmguard.report.run_files import NotALog
from mmguard.tally import Tally

#: A line of more bytes is none of the hook's.
_LONGEST = 1 << 26


@dataclass
class Line:
    """One iteration that had something skipped or remapped.

    Args:
        mode (str): ``'train'``, ``'val'`` or ``'test'``.
        place (int): The iteration since the start of the training; of a test, the iteration.
        pixels, instances (Tally): Their sums.
        samples (dict[str, list[Tally]]): Kind -> what was found in single files, by the pipeline or by a loss.
        losses (dict[str, LossCount]): Guarded loss -> what it skipped and remapped.
        empty_images (int): Images without any instance.
        filled (list[FilledRank]): Ranks that lacked losses; a line of its own, without any counts.
    """

    mode: str
    place: int
    pixels: Tally
    instances: Tally
    samples: ByKind
    losses: Dict[str, LossCount]
    empty_images: int = 0
    filled: List[FilledRank] = field(default_factory=list)


@dataclass
class FilledRank:
    """A rank that lacked losses in an iteration, and trained with zeros in their place."""

    rank: int
    losses: List[str]
    samples: List[str]


@dataclass
class Unread:
    """What of the files could not be understood.

    Args:
        lines (int): How many lines.
        first (str): ``file:line: why`` of the first.
        cut_off (list[str]): Files whose last line ends in the middle: the training was killed, or still runs.
    """

    lines: int = 0
    first: str = ''
    cut_off: List[str] = field(default_factory=list)


def read_lines(paths: List[Path], unread: Unread) -> Iterator[Line]:
    """The lines of all files, one after the other; what cannot be understood is noted in ``unread``.

    Raises:
        NotALog: A file cannot be read.
    """
    for path in paths:
        try:
            with open(path, 'rb') as file:
                for number, line in enumerate(_bounded(file), start=1):
                    if not line.strip():
                        continue
                    try:
                        if not _is_note(line):
                            yield parse_line(line)
                    except ValueError as error:
                        if not line.endswith(b'\n'):
                            unread.cut_off.append(str(path))
                            continue
                        unread.lines += 1
                        unread.first = unread.first or f'{path}:{number}: {error}'
        except OSError as error:
            raise NotALog(f'{path}: {error.strerror or error}') from error


def _is_note(line: bytes) -> bool:
    """Whether a line only says that there are no more, because the file reached its limit."""
    return line.startswith(b'{"note"')


def _bounded(file: Any) -> Iterator[bytes]:
    while True:
        line = file.readline(_LONGEST)
        if not line:
            return
        yield line


def parse_line(text: bytes) -> Line:
    """One line of the log.

    Raises:
        ValueError: It is none; says why.

    Example:
        >>> parse_line(b'{"mode": "val", "iter": 3, "step": 40, "skipped_pixels": 7, "total": 9}').pixels.skipped
        7
    """
    try:
        record = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ValueError('not JSON') from error
    if not isinstance(record, dict):
        raise ValueError('not an object')
    mode = record.get('mode')
    if not isinstance(mode, str) or 'iter' not in record:
        raise ValueError("no 'mode' and 'iter': not written by LabelGuardHook")
    reasons = _counts(record.get('reasons', {}), str)
    samples = by_kind()
    for sample in (*_list(record, 'samples'), *_list(record, 'loss_samples')):
        kind = sample.get('kind', 'pixels')
        if kind in KINDS:  # another version may know more
            samples[kind].append(_tally(sample))
    losses = record.get('losses', {})
    if not isinstance(losses, dict):
        raise ValueError(f"'losses' is no object: {losses!r:.40}")
    return Line(
        mode=mode,
        place=_integer(record, 'step' if 'step' in record else 'iter'),
        pixels=Tally(
            _integer(record, 'total'), _integer(record, 'skipped_pixels'), _integer(record, 'remapped_pixels')
        ),
        instances=Tally(
            _integer(record, 'total_instances'),
            _integer(record, 'skipped_instances'),
            _integer(record, 'remapped_instances'),
            reasons=reasons,
        ),
        samples=samples,
        losses={name: _loss(count) for name, count in losses.items()},
        empty_images=_integer(record, 'empty_images'),
        filled=[
            FilledRank(
                _integer(rank, 'rank'), [*map(str, rank.get('losses', ()))], [*map(str, rank.get('samples', ()))]
            )
            for rank in _list(record, 'filled')
        ],
    )


def _tally(sample: Dict[str, Any]) -> Tally:
    source = sample.get('source')
    return Tally(
        skipped=_integer(sample, 'skipped'),
        remapped=_integer(sample, 'remapped'),
        values=_counts(sample.get('values', {}), int),
        other_values=_integer(sample, 'other_values'),
        source='<unknown>' if source is None else str(source),
        reasons=_counts(sample.get('reasons', {}), str),
    )


def _loss(count: Any) -> LossCount:
    if not isinstance(count, dict):
        raise ValueError(f'the count of a loss is no object: {count!r:.40}')
    return LossCount(_integer(count, 'seen'), _integer(count, 'skipped'), _integer(count, 'remapped'))


def _list(record: Dict[str, Any], key: str) -> List[Dict[str, Any]]:
    found = record.get(key, [])
    if not isinstance(found, list) or not all(isinstance(item, dict) for item in found):
        raise ValueError(f'{key!r} is no list of objects: {found!r:.40}')
    return found


def _integer(record: Dict[str, Any], key: str) -> int:
    value = record.get(key, 0)
    if isinstance(value, bool) or not isinstance(value, int):
        raise ValueError(f'{key!r} is no integer: {value!r:.40}')
    return value


def _counts(record: Any, key_type: Any) -> Dict[Any, int]:
    if not isinstance(record, dict):
        raise ValueError(f'counts are no object: {record!r:.40}')
    return {key_type(key): _integer(record, key) for key in record}
