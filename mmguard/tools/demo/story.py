"""The complete demo."""

from __future__ import annotations

import math
import shlex
import sys
from pathlib import Path
from typing import List

from mmguard.log.guard_log import read_log
from mmguard.text import quantity
from mmguard.tools.console import Console
from mmguard.tools.demo.dataset import MEANING, NUM_CLASSES, DataSet, write_dataset
from mmguard.tools.demo.folder import BATCH_SIZE, empty_folder, write_stock
from mmguard.tools.demo.training import (
    CUDA,
    Narrator,
    is_label_error,
    last_traceback,
    objections,
    train_in_child,
)
from mmguard.tools.exit_codes import CLEAN, FOUND


class Objection(Exception):
    """An unexpected result of the demo."""


class Story:
    """Runner of the demo, which prints to the console."""

    def __init__(self, folder: Path, iters: int) -> None:
        self.folder, self.iters = folder, iters
        self.console = Console(highlight=False, soft_wrap=True, markup=False)

    def tell(self, only_data: bool) -> None:
        """Run everything, or only write the data set and the stock config; raise :class:`Objection`."""
        self._say('1/4  A small data set in the layout of Cityscapes', 'bold cyan')
        dataset = self._draw()
        write_stock(self.folder, self.iters)
        if only_data:
            self._say(f'Try it there: cd {shlex.quote(str(self.folder))} && mmguard scan stock.py')
            return
        self._say('\n2/4  Stock PIDNet-S from MMSegmentation, in a process of its own', 'bold cyan')
        self._watch_stock_die(dataset)
        self._say(f'\n3/4  The same training with mmguard, {quantity(self.iters, "iteration")}', 'bold cyan')
        self._watch_guarded_live()
        self._say('\n4/4  Do the logged counts fit the label files?', 'bold cyan')
        logged = read_log(self.folder / 'runs' / 'guarded').files()
        found = objections(logged, dataset, self.iters, BATCH_SIZE)
        if found:
            raise Objection('The counts do not match: ' + '; '.join(found[:10]))
        pixels = sum(file['skipped'] for file in logged)
        self._say(f'Yes: {pixels:,} px logged, equal file by file and value by value.', 'bold green')
        from mmguard.tools.demo.pictures import draw_offenders

        draw_offenders(dataset, self.folder / 'offenders.png')
        self._say(
            f'\nIn {self.folder}:\n  offenders.png  the invalid pixels over their images\n'
            f'  guarded.py     the guarded config: `mmguard apply` writes such a one of yours\n'
            f'  runs           the logs of both trainings, and label_guard.jsonl'
        )

    def _draw(self) -> DataSet:
        with self.console.status('drawing street scenes ...'):
            dataset = write_dataset(self.folder / 'cityscapes')
        self._say(f'{len(dataset.labels)} street scenes, with invalid labels planted in {len(dataset.planted)}:')
        for value, meaning in MEANING.items():
            pixels = [values[value] for values in dataset.planted.values() if value in values]
            if pixels:
                self._say(f'  value {value:3}  {meaning:17}  {sum(pixels):7,} px in {quantity(len(pixels), "file")}')
        return dataset

    def _watch_stock_die(self, dataset: DataSet) -> None:
        output: List[str] = []
        with self.console.status('training ...'):
            code = train_in_child('stock.py', self.folder, output.append)
        for line in last_traceback(output) or output[-12:]:
            self._say(f'  | {line}', 'dim')
        if code == 0:
            raise Objection('The stock training survived: it should have died on the planted labels (runs/stock.txt)')
        if not is_label_error(output, dataset.planted):
            raise Objection(f'stock.py ended with code {code}, but not because of a label (runs/stock.txt)')
        self._say(
            f'It dies: a label was looked up among the classes 0..{NUM_CLASSES - 1}. On a GPU this is `{CUDA}`: it '
            f'names neither value nor file, and the process is unusable afterwards.',
            'bold red',
        )

    def _watch_guarded_live(self) -> None:
        from mmguard.tools.apply.command import apply

        apply(str(self.folder / 'stock.py'), self.folder / 'guarded.py', quiet=True)
        narrator = Narrator(self._say)
        code = train_in_child('guarded.py', self.folder, narrator.hear)
        losses = narrator.losses
        if code != 0:
            raise Objection(f'The guarded training ended with code {code} (runs/guarded.txt)')
        if sorted(losses) != list(range(1, self.iters + 1)) or not all(map(math.isfinite, losses.values())):
            raise Objection(f'The guarded training did not log {self.iters} finite losses: {losses} (runs/guarded.txt)')
        self._say(f'It trains to the end: loss {losses[1]:.2f} -> {losses[self.iters]:.2f}.', 'bold green')

    def _say(self, text: str, style: str = '') -> None:
        self.console.print(text, style=style)


def run_demo(folder: Path, iters: int, only_data: bool) -> int:
    """Run the demo, or only write its data. Return the exit code: 0 success, 1 an unexpected result."""
    try:
        empty_folder(folder)
        Story(folder, iters).tell(only_data)
    except Objection as error:
        print(f'mmguard demo: {error}', file=sys.stderr)
        return FOUND
    return CLEAN
