"""The demo from beginning to end."""

from __future__ import annotations

import io
import math
import sys
import time
from pathlib import Path
from typing import Dict, List, Optional

from rich.console import Console

from mmguard.text.words import counted
from mmguard.tools.demo.child import train_in_child
from mmguard.tools.demo.configs import BATCH_SIZE, write_configs
from mmguard.tools.demo.dataset import MEANING, TRAIN, VAL, DataSet, write_dataset
from mmguard.tools.demo.death import Death, read_death, values_of
from mmguard.tools.demo.folder import make_anew
from mmguard.tools.demo.narrator import Narrator
from mmguard.tools.demo.verification import Verdict, read_log, verify
from mmguard.tools.exit_codes import CLEAN, COULD_NOT_RUN, FOUND

STEPS = 5


class Objection(Exception):
    """Something did not come out as it must."""


class Story:
    """Tells the demo on the console.

    Args:
        folder (Path): The output folder, made anew.
        iters (int): Iterations of the guarded training.
    """

    def __init__(self, folder: Path, iters: int) -> None:
        self.folder = folder
        self.iters = iters
        self.console = Console(highlight=False, soft_wrap=True)
        self.started = time.monotonic()

    def tell(self) -> None:
        """Runs everything.

        Raises:
            Objection: A step did not come out as it must.
        """
        self._step(1, 'A small data set in the layout of Cityscapes')
        dataset = self._draw()
        self._step(2, 'Stock PIDNet-S from MMSegmentation, in a process of its own')
        self._watch_stock_die(dataset)
        self._step(3, f'The same training with mmguard, {counted(self.iters, "iteration")}')
        losses = self._watch_guarded_live()
        self._step(4, 'Do the logged counts fit the label files?')
        records = read_log(self._log_file())
        self._report(verify(records, dataset, self.iters, BATCH_SIZE), dataset)
        self._step(5, 'Pictures')
        from mmguard.tools.demo.pictures import draw_history, draw_offenders

        totals = values_of(dataset.planted)
        values = sorted(totals, key=lambda value: -totals[value])
        draw_offenders(dataset, values, self.folder / 'offenders.png')
        draw_history(records, losses, values, self.folder / 'skipped.png')
        self._say_where()

    # ---- the steps

    def _draw(self) -> DataSet:
        number = sum(map(len, (*TRAIN.values(), *VAL.values())))
        done = 0
        with self.console.status(f'drawing {number} street scenes ...') as status:

            def written() -> None:
                nonlocal done
                done += 1
                status.update(f'drawing street scenes ... {done} of {number}')

            dataset = write_dataset(self.folder / 'cityscapes', written=written)
        write_configs(self.folder, self.iters)
        self._say(
            f'{number} street scenes drawn. Of {len(dataset.labels)} training label maps {len(dataset.clean)} are '
            f'clean; planted in the other {len(dataset.planted)}:'
        )
        for value, count in values_of(dataset.planted).items():
            files = sum(value in values for values in dataset.planted.values())
            self._say(f'  value {value:3}  {MEANING[value]:21}  {count:7,} px in {counted(files, "file")}')
        return dataset

    def _watch_stock_die(self, dataset: DataSet) -> None:
        death = self._train_stock('stock.py', dataset.planted)
        if death is None:
            raise Objection('The stock training survived: it should have died on the planted labels (runs/stock.txt)')
        self._say_death(death, 'stock')
        self._say('And without a single invalid label, on the clean files alone?')
        death = self._train_stock('stock_clean.py', {})
        if death is None:
            self._say('There it trains: this MMSegmentation copes with class_weight and ignored pixels.', 'green')
        else:
            self._say_death(death, 'stock_clean')

    def _train_stock(self, config: str, planted: Dict[str, Dict[int, int]]) -> Optional[Death]:
        output: List[str] = []
        with self.console.status(f'training with {config} ...'):
            code = train_in_child(config, self.folder, output.append)
        if code == 0:
            return None
        death = read_death(output, planted)
        if death is None or not death.by_label:
            self._quote(death.excerpt if death else output[-12:])
            raise Objection(
                f'{config} ended with code {code}, but not because of a label (runs/{Path(config).stem}.txt)'
            )
        return death

    def _say_death(self, death: Death, name: str) -> None:
        self._say(f'It dies. The end of what it printed (whole: runs/{name}.txt):', 'bold red')
        self._quote(death.excerpt)
        self._say(f'Died at {death.place}. {death.explanation}\n')

    def _watch_guarded_live(self) -> Dict[int, float]:
        narrator = Narrator(self._say)
        output: List[str] = []

        def heard(line: str) -> None:
            output.append(line)
            narrator.hear(line)

        code = train_in_child('guarded.py', self.folder, heard)
        narrator.finish()
        losses = {number: scalars['loss'] for number, scalars in narrator.scalars.items()}
        if code != 0:
            self._quote(output[-12:])
            raise Objection(f'The guarded training ended with code {code} (runs/guarded.txt)')
        if sorted(losses) != list(range(1, self.iters + 1)) or not all(map(math.isfinite, losses.values())):
            raise Objection(f'The guarded training did not log {self.iters} finite losses: {losses} (runs/guarded.txt)')
        self._say(f'It trains to the end: loss {losses[1]:.2f} -> {losses[self.iters]:.2f}.', 'bold green')
        return losses

    def _log_file(self) -> Path:
        files = sorted((self.folder / 'runs' / 'guarded').glob('*/label_guard.jsonl'))
        if len(files) != 1:
            raise Objection(f'one label_guard.jsonl was expected below runs/guarded, there are {len(files)}')
        return files[0]

    def _report(self, verdict: Verdict, dataset: DataSet) -> None:
        for objection in verdict.objections[:10]:
            self._say(f'  {objection}', 'red')
        if verdict.objections:
            raise Objection(f'The counts do not fit in {counted(len(verdict.objections), "place")}')
        for file, reads in verdict.reads.items():
            pixels = sum(dataset.planted[file].values())
            self._say(f'  {pixels:6,} px x {reads} reads = {pixels * reads:7,}  {file}')
        self._say(
            f'Yes: {verdict.pixels:,} px logged = planted pixels x reads, equal file by file and value by value; and '
            f'the losses, behind the sanitized labels, had nothing left to skip.',
            'bold green',
        )

    def _say_where(self) -> None:
        shown = {
            'offenders.png': 'the invalid pixels over their images',
            'skipped.png': 'loss and skipped pixels per iteration',
            'guarded.py': 'the guarded config: copy its lines into yours',
            str(self._log_file().relative_to(self.folder)): 'one JSON line per iteration that skipped any',
        }
        width = max(map(len, shown))
        self._say(f'In {self.folder}:')
        for name, what in shown.items():
            self._say(f'  {name:{width}}  {what}')
        self._say(f'Done in {time.monotonic() - self.started:.0f} s.')

    # ---- the console

    def _step(self, number: int, title: str) -> None:
        self.console.print(f'\n{number}/{STEPS}  {title}', style='bold cyan', markup=False)

    def _say(self, text: str, style: Optional[str] = None) -> None:
        self.console.print(text, style=style, markup=False)

    def _quote(self, lines: List[str]) -> None:
        for line in lines:
            self.console.print('  | ' + line, style='dim', markup=False)


def run_demo(folder: Path, iters: int) -> int:
    """Tells the demo. Returns the exit code: 0 well, 1 something did not come out as it must, 2 it cannot run here."""
    from mmguard.tools.demo.environment import what_is_missing

    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors='replace')  # a console that knows no box-drawing signs
    missing = what_is_missing()
    if missing:
        print(missing, file=sys.stderr)
        return COULD_NOT_RUN
    try:
        make_anew(folder)
        Story(folder, iters).tell()
    except Objection as error:
        print(f'mmguard demo: {error}', file=sys.stderr)
        return FOUND
    return CLEAN
