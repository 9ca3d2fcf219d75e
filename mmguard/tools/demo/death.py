"""Reads from a traceback whether a label ended the training, and which."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Dict, List, Mapping, Optional

from mmguard.tools.demo.dataset import IGNORE_INDEX, MEANING, NUM_CLASSES

FRAME = re.compile(r'^  File "(?P<file>.+)", line (?P<line>\d+), in (?P<function>.+)$')
CUDA = 'CUDA error: device-side assert triggered'


@dataclass
class Death:
    """How a training ended.

    Args:
        excerpt (list[str]): The last lines of the traceback, as printed.
        error (str): The line that names the exception.
        place (str): The line of MMSegmentation that was reached last.
        by_label (bool): Whether a label ended it.
        explanation (str): What happened there.
    """

    excerpt: List[str]
    error: str
    place: str
    by_label: bool
    explanation: str


def read_death(output: List[str], planted: Mapping[str, Mapping[int, int]], frames: int = 3) -> Optional[Death]:
    """Reads the last traceback of a process's output.

    Args:
        output (list[str]): All lines that the process printed.
        planted (dict[str, dict[int, int]]): Label file -> invalid value -> pixels, of the files that it trained on.
        frames (int): How many of the innermost frames the excerpt shows.

    Returns:
        Death: or ``None`` where there is no traceback.
    """
    starts = [index for index, line in enumerate(output) if line.startswith('Traceback (most recent call last)')]
    if not starts:
        return None
    body = output[starts[-1] + 1 :]
    end = next((index for index, line in enumerate(body) if line and not line.startswith(' ')), len(body) - 1)
    calls = [index for index, line in enumerate(body[:end]) if FRAME.match(line)]
    excerpt = body[calls[-frames] if len(calls) >= frames else 0 : end + 1]
    error = body[end] if body else ''
    found = _explain(error, '\n'.join(output), planted)
    return Death(excerpt, error, _place([body[index] for index in calls]), found is not None, found or '')


def _place(calls: List[str]) -> str:
    for call in reversed(calls):
        match = FRAME.match(call)
        if match and 'mmseg/' in match['file'].replace('\\', '/'):
            file = match['file'].replace('\\', '/').rpartition('mmseg/')[2]
            return f'mmseg/{file}:{match["line"]}'
    return ''


def _explain(error: str, output: str, planted: Mapping[str, Mapping[int, int]]) -> Optional[str]:
    if CUDA in output:
        return (
            f'This is the `{CUDA}`: some label lies outside 0..{NUM_CLASSES - 1}, and the GPU does not say '
            f'which, nor where: kernels run later than the line that the traceback names.'
        )
    target = re.search(r'Target (-?\d+) is out of bounds', error)
    if target:
        value = int(target[1])
        files = [file for file, values in planted.items() if value in values]
        if not files:
            return None
        return (
            f'Label {value} ({MEANING[value]}), planted in {len(files)} of the label files, was looked up among'
            f' the classes 0..{NUM_CLASSES - 1}. On a GPU this is `{CUDA}`: it names neither value '
            f'nor file, and the process is unusable afterwards.'
        )
    index = re.search(r'index (-?\d+) is out of bounds for dimension 0 with size (\d+)', error)
    if index and (int(index[1]), int(index[2])) == (IGNORE_INDEX, NUM_CLASSES):
        return (
            f'The ordinary ignored label {IGNORE_INDEX} was looked up in class_weight, which has {NUM_CLASSES} '
            f'entries. On a GPU this is `{CUDA}`.'
        )
    return None


def values_of(planted: Mapping[str, Mapping[int, int]]) -> Dict[int, int]:
    """Invalid value -> pixels over all files."""
    total: Dict[int, int] = {}
    for values in planted.values():
        for value, count in values.items():
            total[value] = total.get(value, 0) + count
    return dict(sorted(total.items()))
