"""Reading the output of a training: how it ended, what it logged."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any, Callable, Dict, List, Mapping

from mmguard.tools.demo.dataset import DataSet

RECORD = re.compile(r'^\d\d/\d\d \d\d:\d\d:\d\d - mmengine - [A-Z]+ - (?P<text>.*)$')
ITERATION = re.compile(r'^Iter\(train\) +\[ *(?P<number>\d+)/(?P<total>\d+)\].* loss: (?P<loss>\S+)')
CUDA = 'CUDA error: device-side assert triggered'
TRACEBACK = 'Traceback (most recent call last)'


def last_traceback(output: List[str]) -> List[str]:
    """Return the end of the last traceback: its three innermost frames and the exception; empty without any."""
    starts = [number for number, line in enumerate(output) if line.startswith(TRACEBACK)]
    body = output[starts[-1] + 1 :] if starts else []
    end = next((number for number, line in enumerate(body) if line and not line.startswith(' ')), len(body) - 1)
    frames = [number for number, line in enumerate(body[:end]) if line.startswith('  File "')]
    return body[frames[-3] if len(frames) > 2 else 0 : end + 1]


def is_label_error(output: List[str], planted: Mapping[str, Mapping[int, int]]) -> bool:
    """Return True if a planted label ended the training."""
    found = re.search(r'Target (\d+) is out of bounds', '\n'.join(last_traceback(output)))
    values = {value for counts in planted.values() for value in counts}
    return CUDA in '\n'.join(output) or (found is not None and int(found[1]) in values)


class Narrator:
    """Says the lines of the guard, and the loss of each iteration, as they come; keeps iteration -> loss."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self.losses: Dict[int, float] = {}
        self._say = say
        self._in_guard = False

    def hear(self, line: str) -> None:
        """Take one line of the log."""
        record = RECORD.match(line)
        text = line if record is None else record['text']
        self._in_guard = self._in_guard if record is None else text.startswith('guard:')
        iteration = ITERATION.match(text)
        if iteration:
            self.losses[int(iteration['number'])] = float(iteration['loss'])
            self._say(f'{iteration["number"]}/{iteration["total"]}  loss {float(iteration["loss"]):.2f}')
        elif self._in_guard:
            self._say(text)


def read_records(path: Path) -> List[Dict[str, Any]]:
    """Read ``label_guard.jsonl``; a file that offends as it did before is logged without values: they are added."""
    records = [json.loads(line) for line in path.read_text(encoding='utf-8').splitlines()]
    before: Dict[str, Dict[str, int]] = {}
    for sample in (sample for record in records for sample in record['samples']):
        before[sample['source']] = sample.setdefault('values', before.get(sample['source'], {}))
    return records


def objections(records: List[Dict[str, Any]], dataset: DataSet, iters: int, batch_size: int) -> List[str]:
    """Return what of the log does not fit what was planted, file by file and value by value.

    The sampler hands out every file once before any comes again, so it is known how often each must have been met.
    """
    found = []
    reads = Counter(sample['source'] for record in records for sample in record['samples'])
    for record in records:
        for sample in record['samples']:
            values = {int(value): count for value, count in sample['values'].items()}
            planted = dataset.planted.get(sample['source'], {})
            if values != planted or sample['skipped'] != sum(planted.values()):
                found.append(f'iteration {record["iter"]}: {sample["source"]}: logged {values}, planted {planted}')
        if record['skipped_pixels'] != sum(sample['skipped'] for sample in record['samples']):
            found.append(f'iteration {record["iter"]}: {record["skipped_pixels"]} px do not add up')
        if any(loss['skipped'] for loss in record['losses'].values()):
            found.append(f'iteration {record["iter"]}: the losses counted what the pipeline had sanitized')
    least, rest = divmod(iters * batch_size, len(dataset.labels))
    wrong = [file for file in dataset.planted if not least <= reads[file] <= least + bool(rest)]
    return found + [f'{file} was logged {reads[file]} times, expected {least} or {least + 1}' for file in wrong]
