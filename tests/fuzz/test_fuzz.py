"""Damaged inputs of every kind: whatever a command is given, it keeps its promises.

``FUZZ_INPUTS`` is how many per kind (``make fuzz``: 5,000), ``FUZZ_SEED`` draws others, ``FUZZ_KINDS`` names kinds.
``FUZZ_KEEP`` is where inputs that fail are kept, default: a folder that pytest makes.
"""

from __future__ import annotations

import gc
import json
import os
import random
import shutil
import sys
import time
from collections import Counter
from functools import lru_cache
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Tuple

import annotation_kinds
import argument_kinds
import config_kinds
import label_kinds
import promises
import pytest
import run_kinds
from kinds import Kind
from mutations import any_of, odd_text
from promises import innermost, run, why_unforeseen
from put_file import put

from mmguard import cli

KINDS: Tuple[Kind, ...] = (
    *annotation_kinds.KINDS,
    *label_kinds.KINDS,
    *config_kinds.KINDS,
    *run_kinds.KINDS,
    *argument_kinds.KINDS,
)
INPUTS = int(os.environ.get('FUZZ_INPUTS', '100'))
SEED = os.environ.get('FUZZ_SEED', '1')
KEEP = os.environ.get('FUZZ_KEEP') and os.path.abspath(os.environ['FUZZ_KEEP'])
CHOSEN = os.environ.get('FUZZ_KINDS', '').split(',')
#: Errors of copies that only the user can correct: small images, other sizes, images that are missing, two tasks.
_FOR_THE_USER = {'MG130', 'MG150', 'MG165', 'MG174'}
#: So many different failures are shown.
_SHOWN = 12


class Case(NamedTuple):
    """One damaged input.

    Attributes:
        file (str): The file that is damaged.
        content (bytes): What it holds.
        name (str): Its name, which may be damaged, too.
        argv (list[str]): The command.
    """

    file: str
    content: bytes
    name: str
    argv: List[str]


class Bench:
    """The folders of a kind: its inputs, whole but for the one that is damaged, and what commands write."""

    def __init__(self, kind: Kind, root: Path) -> None:
        self.kind = kind
        self.inputs, self.out = root / 'in', root / 'out'
        self.files = kind.files()
        self.codes: Counter = Counter()
        self._lay_out()

    def _lay_out(self) -> None:
        # The folder itself stays: commands run in it.
        for path in self.inputs.iterdir() if self.inputs.is_dir() else ():
            path.unlink() if path.is_symlink() or path.is_file() else shutil.rmtree(path)
        for name, (content, _) in self.files.items():
            put(self.inputs / name, content)
        self._names = self._listed()

    def _listed(self) -> List[str]:
        return sorted(str(path) for path in self.inputs.rglob('*') if '__pycache__' not in path.parts)

    def drawn(self, number: int) -> Case:
        """The case of a number, the same in every run of a seed."""
        draw = random.Random(f'{SEED}/{self.kind.name}/{number}')
        damageable = sorted(name for name, (_, steps) in self.files.items() if steps) or sorted(self.files)[:1]
        file = draw.choice(damageable)
        content, steps = self.files[file]
        content = any_of(draw, content, steps) if steps else content
        name = file
        if self.kind.renamed and draw.random() < 0.1:
            parent, _, last = file.rpartition('/')
            ending = last[last.index('.') :]
            odd = draw.choice((odd_text(draw).replace('\0', '').replace('/', '')[:60], '-x', 'a b', '._a', ''))
            name = f'{parent}/{odd}{ending}' if parent else f'{odd}{ending}'
            name = name.encode('utf-8', 'surrogatepass').decode('utf-8', 'surrogateescape')
        argv = [word.replace('{out}', str(self.out)) for word in self.kind.drawn_command(draw, name)]
        return Case(file, content, name, argv)

    def whole(self, command: str) -> Case:
        """A command over the inputs as they are."""
        file = next((name for name, (_, steps) in self.files.items() if steps), next(iter(self.files)))
        argv = [word.replace('{file}', file).replace('{out}', str(self.out)) for word in command.split()]
        return Case(file, self.files[file][0], file, argv)

    def broken_by(self, case: Case) -> List[str]:
        shutil.rmtree(self.out, ignore_errors=True)
        self.out.mkdir()
        whole, damaged = self.inputs / case.file, self.inputs / case.name
        whole.unlink()
        damaged.write_bytes(case.content)
        names = self._listed()
        try:
            return self._broken(case, names)
        finally:
            damaged.unlink()
            whole.write_bytes(self.files[case.file][0])
            if self._listed() != self._names:
                self._lay_out()

    def _broken(self, case: Case, names: List[str]) -> List[str]:
        argv = [
            *case.argv,
            *(['--processes', '1'] if case.argv[0] == 'scan' else []),
        ]
        outcome = run(argv, self.out)
        self.codes[outcome.code] += 1
        broken = list(outcome.broken)
        if any(line.startswith('unforeseen') for line in broken):
            broken.insert(0, f'{broken[0]} | {why_unforeseen(argv)}')
        if self._listed() != names and not self.kind.writes_anywhere:
            broken.append(f'changes the folder of its inputs: {sorted(set(self._listed()) ^ set(names))[:3]}')
        if broken:
            return broken
        if case.argv[0] == 'fix' and outcome.code != 2:
            broken += self._broken_by_copies(argv, outcome.code)
        if case.argv[0] == 'scan' and outcome.code == 0:
            broken += self._broken_by_nothing()
        if case.argv[0] == 'scan' and outcome.code == 0 and self.kind.loads is not None:
            try:
                self.kind.loads(self.inputs, case.name, case.argv)
            except Exception as error:
                broken.append(f'scans clean, but its loader raises: {str(error)[:200]} | {_named(error)}')
        return broken

    def _broken_by_nothing(self) -> List[str]:
        """Of a scan that calls its input clean: it read a label."""
        path = self.out / 'scan.json'
        datasets = json.loads(path.read_bytes())['datasets'] if path.is_file() else [dict(facts=dict(total=1))]
        read = [dataset['facts']['total'] for dataset in datasets]
        return [] if any(read) else [f'scans clean, and read nothing: {read}']

    def _broken_by_copies(self, argv: List[str], code: int) -> List[str]:
        """Of what ``fix`` wrote: it can be scanned, and written again."""
        again = run(argv, self.out)
        broken = [f'fix again: {line}' for line in again.broken]
        if again.code != code:
            broken.append(f'fix again: exit code {again.code}, not {code}: {again.err[-200:]}')
        fixed = self.out / 'fixed'
        copies = [path for path in fixed.glob('*.json') if path.name != 'mmguard.manifest']
        written = self.out / 'copies.json'
        words = ['--processes', '1', '--json', str(written)]
        outcome = run(['scan', str(copies[0] if copies else fixed), *words])
        broken += [f'scan of the copies: {line}' for line in outcome.broken]
        if code == 0 and len(argv) == 4 and written.is_file():  # without options that say how they are written
            findings = [one for data in json.loads(written.read_bytes())['datasets'] for one in data['findings']]
            errors = {one['code'] for one in findings if one['severity'] == 'error'} - _FOR_THE_USER
            broken += [f'scan of the copies: {code}' for code in sorted(errors)]
        return broken


@pytest.fixture
def bench(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bench]:
    kind: Kind = request.param
    for package in kind.needs:
        pytest.importorskip(package)
    made = Bench(kind, tmp_path)
    monkeypatch.chdir(made.inputs)
    # Nothing in it depends on what is parsed: to make it anew for every input takes as long as most commands do.
    with_all_commands = lru_cache(maxsize=None)(cli._build_parser)
    monkeypatch.setattr(cli, '_build_parser', lambda argv: with_all_commands())
    modules, path = set(sys.modules), list(sys.path)
    yield made
    sys.path[:] = path
    for name in set(sys.modules) - modules:
        if str(getattr(sys.modules[name], '__file__', '')).startswith(str(tmp_path)):
            del sys.modules[name]


def _kinds() -> List[Any]:
    chosen = [kind for kind in KINDS if CHOSEN == [''] or kind.name in CHOSEN]
    # nibabel is not in the first stack.
    marks = {kind.name: () if 'nibabel' in kind.needs else pytest.mark.same_everywhere for kind in chosen}
    return [pytest.param(kind, id=kind.name, marks=marks[kind.name]) for kind in chosen]


@pytest.mark.slow
@pytest.mark.timeout(0)  # the time of each command is limited on its own
@pytest.mark.parametrize('bench', _kinds(), indirect=True)
def test_every_promise_is_kept(bench: Bench, tmp_path: Path) -> None:
    found: Dict[str, Tuple[int, Case, List[str]]] = {}
    count: Dict[str, int] = {}
    began = time.process_time()
    # What is imported on the way is none of a command's memory.
    assert bench.kind.commands
    for command in bench.kind.commands:
        whole = bench.whole(command)
        assert bench.broken_by(whole) == [], command
        assert 2 not in bench.codes, command
    # mmengine collects garbage for every data set: not among all that was imported.
    gc.collect()
    gc.freeze()
    for number in range(INPUTS):
        case = bench.drawn(number)
        broken = bench.broken_by(case)
        if broken:
            sign = _sign(broken)
            count[sign] = count.get(sign, 0) + 1
            found.setdefault(sign, (number, case, broken))
    if found:
        keep = Path(KEEP or tmp_path / 'failures')
        shown = [
            _keep(bench, keep, *found[sign], count[sign]) for sign in sorted(found, key=lambda s: -count[s])[:_SHOWN]
        ]
        reported = (
            f'{sum(count.values())} of {INPUTS} inputs of {bench.kind.name} (FUZZ_SEED={SEED}), {len(found)} different'
        )
        pytest.fail('\n'.join([reported, *shown]), pytrace=False)
    print(
        f'{bench.kind.name}: {INPUTS:,} inputs (FUZZ_SEED={SEED}), every promise kept; exit codes '
        f'{dict(bench.codes)}; {time.process_time() - began:,.0f} s of the processor'
    )


def _named(error: Exception) -> str:
    return f'{type(error).__name__} in {innermost(error.__traceback__)}'


def _sign(broken: List[str]) -> str:
    """What two failures of one cause have in common."""
    first = broken[0]
    return first.rpartition(' | ')[2] if ' | ' in first else ''.join(char for char in first[:90] if not char.isdigit())


def _keep(bench: Bench, keep: Path, number: int, case: Case, broken: List[str], count: int) -> str:
    """Write an input that fails; return what is said of it."""
    folder = keep / bench.kind.name / str(number)
    path = put(folder / os.path.basename(case.file), case.content)
    argv = [
        os.fsencode(word).decode('utf-8', 'backslashreplace') if '\ud800' not in word else ascii(word)
        for word in case.argv
    ]
    (folder / 'why.json').write_text(
        json.dumps(dict(argv=argv, file=case.file, name=case.name, broken=broken), indent=1)
    )
    return f'{count} times: {broken[0]}\n    mmguard {" ".join(argv)[:300]}\n    {path}'


def _raise() -> int:
    raise KeyError('x')


def _say_traceback() -> int:
    print('KeyError: x\nThis should not happen', file=sys.stderr)
    return 2


def _print_traceback() -> int:
    print('Traceback (most recent call last)\n  File "a.py"\nKeyError: y', file=sys.stderr)
    return 1


def _take_memory() -> int:
    return len(bytearray(600 << 20)) * 0


@pytest.mark.parametrize(
    ('command', 'word'),
    [
        (_raise, 'traceback: KeyError'),
        (_say_traceback, 'unforeseen: KeyError: x'),
        (_print_traceback, 'unforeseen: KeyError: y'),
        (_take_memory, 'memory: '),
        (lambda: 3, 'exit code 3'),
        (lambda: sys.exit(4), 'exit code 4'),
        (lambda: print('\x1b[31m') or 0, "stdout shows '\\x1b'"),
        (lambda: print('\u202e', file=sys.stderr) or 0, "stderr shows '\\u202e'"),
        (lambda: print('\ud800') or 0, 'traceback: UnicodeEncodeError'),
    ],
)
def test_what_a_command_does_wrong(monkeypatch: pytest.MonkeyPatch, command: Callable[[], int], word: str) -> None:
    monkeypatch.setattr(promises, 'main', lambda argv: command())
    (said,) = promises.run([]).broken
    assert said.startswith(word)


def test_a_traceback_that_an_input_holds_is_none_of_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    said = 'a.json: "Traceback (most recent call last)" is not an object'
    monkeypatch.setattr(promises, 'main', lambda argv: print(said, file=sys.stderr) or 2)
    assert promises.run([]).broken == []


def _count_for_ever() -> None:
    while True:
        pass


@pytest.mark.timeout(0)  # which takes the same signal
@pytest.mark.parametrize('command', [_count_for_ever, lambda: time.sleep(10)])
def test_a_command_that_hangs_is_ended(monkeypatch: pytest.MonkeyPatch, command: Callable[[], Any]) -> None:
    monkeypatch.setattr(promises, 'SECONDS', 0.1)
    monkeypatch.setattr(promises, 'main', lambda argv: command())
    (said,) = promises.run([]).broken
    assert said.startswith('hangs')


@pytest.mark.parametrize(
    ('name', 'text', 'word'),
    [
        ('a.json', '{"a": ', 'no JSON'),
        ('a.json.part', '{}', 'left behind'),
        ('a.html', '<html><script>fuzz()</script></html>', 'has a script'),
        ('a.html', '<html><script src="x"></script></html>', 'has <script>'),
        ('a.html', '<html><img src=x onerror=fuzz()></html>', 'has onerror='),
        ('a.html', '<html><a href="javascript:fuzz()">x</a></html>', 'has javascript:'),
        ('a.html', '<html>', 'not whole'),
        ('a.html', '<html>\x1b[31m</html>', 'shows'),
    ],
)
def test_what_is_wrong_with_a_file(tmp_path: Path, name: str, text: str, word: str) -> None:
    (tmp_path / name).write_text(text, encoding='utf-8')
    (said,) = promises.wrong_with(tmp_path / name)
    assert word in said
