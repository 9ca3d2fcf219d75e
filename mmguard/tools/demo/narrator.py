"""Condenses the log of a training, as it comes, to losses and guard lines."""

from __future__ import annotations

import re
from typing import Callable, Dict, List

RECORD = re.compile(r'^\d\d/\d\d \d\d:\d\d:\d\d - mmengine - (?:[A-Z]+) - (?P<text>.*)$')
ITERATION = re.compile(r'^Iter\(train\) +\[ *(?P<number>\d+)/(?P<total>\d+)\]')
SCALAR = re.compile(r'([\w./]+): (-?\d+(?:\.\d+)?(?:e[+-]?\d+)?|nan|-?inf)\b')


class Narrator:
    """Reads a log line by line and reports the parts that matter.

    Args:
        say (callable): Called with each line for the reader.

    Attributes:
        scalars (dict[int, dict[str, float]]): Iteration -> what LoggerHook printed for it.
        reported (list[str]): The guard's records, first lines.
    """

    def __init__(self, say: Callable[[str], None]) -> None:
        self.scalars: Dict[int, Dict[str, float]] = {}
        self.reported: List[str] = []
        self._say = say
        self._held: List[str] = []
        self._in_guard = False

    def hear(self, line: str) -> None:
        """Takes one line of the log."""
        record = RECORD.match(line)
        if record is None:
            if self._in_guard:
                self._held.append(line)
            return
        text = record['text']
        self._in_guard = text.startswith('guard:')
        iteration = ITERATION.match(text)
        if self._in_guard:
            self.reported.append(text)
            self._held.append(text)
        elif iteration:
            self._tell_iteration(iteration, text)

    def finish(self) -> None:
        """Tells what waits for an iteration's losses that did not come (the closing table)."""
        for line in self._held:
            self._say(line)
        self._held = []

    def _tell_iteration(self, iteration: re.Match, text: str) -> None:
        number, total = int(iteration['number']), int(iteration['total'])
        scalars = {name: float(value) for name, value in SCALAR.findall(text)}
        self.scalars[number] = scalars
        parts = '  '.join(
            f'{name[12:]} {value:.2f}' for name, value in scalars.items() if name.startswith('decode.loss_')
        )
        skipped = scalars.get('guard/skipped_pixels', 0)
        clean = '' if skipped or self._held else '   all labels valid'
        width = len(str(total))
        self._say(f'{number:{width}}/{total}  loss {scalars["loss"]:.2f}  ({parts})  {scalars["time"]:.2f} s{clean}')
        for line in self._held:
            self._say(' ' * (2 * width + 3) + line)
        self._held = []
