"""Commands that write, ended at any moment, and run again."""

from __future__ import annotations

import multiprocessing
import os
import random
import re
import shutil
import signal
import sys
import tempfile
import time
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Dict, Iterator, List, Sequence, Tuple

import coco_cases
import label_files
import numpy as np
import pytest
from pictures import picture
from put_file import put
from voc_cases import obj, xml
from warm import is_group_alive

from mmguard.cli import main
from mmguard.commands import INTERRUPTED
from mmguard.files.regular import is_draft

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGKILL)
#: Of each signal. `make interrupted` asks for more.
MOMENTS = int(os.environ.get('INTERRUPTED_MOMENTS', 2))
#: When a page was written stands in it.
_WHEN = re.compile(rb'\d{4}-\d\d-\d\d \d\d:\d\d')
#: A fork has imported everything, so what is interrupted is the work.
_FORK: Any = multiprocessing.get_context('fork')


@pytest.fixture
def maps(tmp_path: Path) -> Path:
    """Label maps of three classes, with 3 among them."""
    folder = tmp_path / 'labels'
    numbers = np.random.default_rng(0)
    for number in range(24):
        label_files.write(folder / f'city_{number % 3}' / f'{number}.png', numbers.integers(0, 4, (64, 64), np.uint8))
    return folder


def check(words: Sequence[Any], place: Path, begun: Sequence[str] = ()) -> None:
    """Interrupts a command at random moments and runs it again: the result is that of one that nobody disturbed.

    After each interruption every file is whole, and no process is left. After the second run there is nothing else
    than what the undisturbed run leaves. A moment is a number of calls and returns, not a time: a busy machine
    interrupts at the same places.

    Args:
        words (list): The words of the command.
        place (Path): Everything that it writes lies below: it is removed before each run.
        begun (list[str]): Files, relative to ``place``, of which an interrupted run may leave another version.
    """
    command = [str(word) for word in words]
    clear(place)
    main(command)  # imports what it needs
    clear(place)
    code, calls = run(command, place)
    whole = contents(place)
    chance = random.Random(0)
    for number in SIGNALS:
        codes = set()
        for moment in sorted(chance.randrange(calls) for _ in range(MOMENTS)):
            case = f'{signal.Signals(number).name} after {moment} of {calls} calls'
            clear(place)
            codes.add(run(command, place, number, moment)[0])
            left = contents(place)
            other = {
                name
                for name, content in left.items()
                if not (is_draft(name.split('/')[-1]) or name.startswith('tmp/') or whole.get(name) == content)
            }
            assert other <= {*begun}, f'{case}: {sorted(other)} are not whole'
            assert run(command, place)[0] == code, case
            again = contents(place)
            assert again.keys() == whole.keys(), f'{case}: {sorted(again.keys() ^ whole.keys())}'
            differing = [name for name in whole if again[name] != whole[name]]
            assert not differing, f'{case}: {differing} differ: {_first_difference(again, whole, differing[0])}'
        # Python ignores Ctrl-C in what it calls by itself, as `__del__`: the command goes on then.
        ends = {INTERRUPTED, code} if number == signal.SIGINT else {-number}
        assert codes <= ends, codes


def _first_difference(one: Dict[str, bytes], other: Dict[str, bytes], name: str) -> Any:
    lines = zip(one[name].splitlines(), other[name].splitlines())
    return next((pair for pair in lines if pair[0] != pair[1]), 'one is longer')


def run(command: List[str], place: Path, number: int = 0, moment: int = 0) -> Tuple[int, int]:
    """The exit code of a command, below 0 where a signal ended it, and its calls; checked: no process is left."""
    result, to_result = _FORK.Pipe(duplex=False)
    process = _FORK.Process(target=_run, args=(command, place, number, moment, to_result))
    process.start()
    to_result.close()
    try:
        calls = result.recv()
    except EOFError:  # it was ended
        calls = 0
    process.join(60)
    assert process.exitcode is not None, 'it does not end'
    deadline = time.monotonic() + 60
    while is_group_alive(process.pid):
        assert time.monotonic() < deadline, 'processes are left'
        time.sleep(0.01)
    return int(process.exitcode), calls


def clear(place: Path) -> None:
    shutil.rmtree(place, ignore_errors=True)
    (place / 'tmp').mkdir(parents=True)


def contents(place: Path) -> Dict[str, bytes]:
    """All files below a folder, and folders that are left in that of temporary files."""
    return dict(_contents(place))


def _contents(place: Path) -> Iterator[Any]:
    for path in sorted(place.rglob('*')):
        name = path.relative_to(place).as_posix()
        if path.is_file():
            yield name, _WHEN.sub(b'', path.read_bytes())
        elif name.startswith('tmp/'):
            yield name, b''


def _run(command: List[str], place: Path, number: int, moment: int, to_result: Connection) -> None:
    os.setsid()
    os.environ['TMPDIR'] = str(place / 'tmp')
    tempfile.tempdir = None
    nowhere = os.open(os.devnull, os.O_RDWR)
    for descriptor in (1, 2):
        os.dup2(nowhere, descriptor)
    sys.stdout, sys.stderr = open(1, 'w', closefd=False), open(2, 'w', closefd=False)  # noqa: SIM115
    calls, group = 0, os.getpid()

    def count(*_: Any) -> None:
        nonlocal calls
        calls += 1
        if number and calls > moment:
            sys.setprofile(None)
            # Ctrl-C goes to all processes of a terminal, `kill` to one; a worker counts on where it was forked.
            (os.killpg if number == signal.SIGINT else os.kill)(group, number)

    try:
        sys.setprofile(count)
        code = main(command)
    except KeyboardInterrupt:  # before it runs; Python itself ends so
        code = INTERRUPTED
    sys.setprofile(None)
    to_result.send(calls)
    sys.exit(code)


@pytest.fixture
def voc(tmp_path: Path) -> Path:
    root = tmp_path / 'VOC2007'
    put(root / 'ImageSets' / 'Main' / 'train.txt', '\n'.join(map(str, range(16))))
    for number in range(16):
        put(root / 'Annotations' / f'{number}.xml', xml(obj(box=(1, 2, 110, 30))))
        put(root / 'JPEGImages' / f'{number}.jpg', picture(100, 80))
    return root


@pytest.fixture
def coco(tmp_path: Path) -> Path:
    boxes = [coco_cases.ann(n, n % 200, box=(50, 50, 60, 9)) for n in range(2000)]
    return Path(coco_cases.write(tmp_path / 'in', coco_cases.coco(boxes, 200, ['cat'])))


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize('kind', ['maps', 'voc', 'coco'])
def test_an_interrupted_fix_goes_on(kind: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    target = request.getfixturevalue(kind)
    options: List[Any] = ['--num-classes', 3] if kind == 'maps' else []
    place = tmp_path / 'place'
    check(['fix', target, '--out', place / 'out', *options], place, begun=['out/mmguard.manifest'])


@pytest.mark.parametrize(
    'left', [['.mmguard.manifest.part'], ['.mmguard.manifest.ab12cd34.part', '.0.png.12ab34cd.part']]
)
def test_a_folder_that_holds_nothing_but_what_was_begun_is_taken_over(
    left: List[str], maps: Path, tmp_path: Path
) -> None:
    out = tmp_path / 'out'
    for name in left:
        put(out / name, b'half')
    assert main(['fix', str(maps), '--out', str(out), '--num-classes', '3']) == 0
    assert sorted(os.listdir(out)) == ['city_0', 'city_1', 'city_2', 'mmguard.manifest']


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize('processes', [1, 2])
def test_an_interrupted_scan_of_maps(processes: int, maps: Path, tmp_path: Path) -> None:
    place = tmp_path / 'place'
    out = ['--json', place / 'a.json', '--html', place / 'a.html']
    check(['scan', maps, '--num-classes', 3, '--processes', processes, *out], place)
