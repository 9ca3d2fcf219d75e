"""What holds for every format: sound files are clean, faults are named with place and value, damage is no exception."""

from __future__ import annotations

import importlib.util
import json
from dataclasses import asdict
from pathlib import Path
from typing import Dict, Iterator, List, Set, Tuple

import pytest
from format_cases import CASES, FormatCase, Planted

from mmguard.commands.fix.copies import write_copies
from mmguard.errors import CannotRun
from mmguard.formats.detection import find_format
from mmguard.formats.files import FILES
from mmguard.formats.options import FixOptions
from mmguard.scanning.plans import plan_target
from mmguard.scanning.run import SetResult, correct_files, run_plan
from mmguard.text import REPORT_ADVICE

#: Contents that no format has.
JUNK = (b'', b'[' * (1 << 20), b'<a>' * (1 << 18), b'9 9,' * (1 << 18), bytes(range(256)) * (1 << 10))


#: A data set with a planted fault.
Faulty = Tuple[FormatCase, Planted, Path]
#: nibabel is not in the first stack.
MARKS = {case.name: () if 'nibabel' in case.needs else pytest.mark.same_everywhere for case in CASES}


@pytest.fixture(params=[pytest.param(case, id=case.name, marks=MARKS[case.name]) for case in CASES])
def case(request: pytest.FixtureRequest) -> FormatCase:
    for package in request.param.needs:
        pytest.importorskip(package)
    return request.param


def scan(case: FormatCase, target: Path) -> Tuple[List[SetResult], List[str]]:
    """Return the results and what could not be read."""
    try:
        plan = plan_target(str(target), case.options)
        return run_plan(plan), plan.failed
    except CannotRun as error:
        return [], [str(error)]


def reported(results: List[SetResult]) -> Iterator[str]:
    """Yield the findings that are more than information, as text."""
    for result in results:
        yield from (json.dumps(asdict(one), default=str) for one in result.findings if one.severity != 'info')


def test_sound_files_are_clean(case: FormatCase, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    results, failed = scan(case, case.write(tmp_path))
    assert results
    assert not failed
    assert not list(reported(results))
    assert find_format(results[0].facts)


def plant(case: FormatCase, planted: Planted, folder: Path) -> Path:
    target, path = case.write(folder), folder / planted.file
    content = path.read_bytes() if path.exists() else b''
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(planted.change(content))
    return target


FAULTS = [
    pytest.param((case, planted), id=f'{case.name}: {name}', marks=MARKS[case.name])
    for case in CASES
    for name, planted in case.planted.items()
]


@pytest.fixture
def faulty(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Faulty:
    case, planted = request.param
    for package in case.needs:
        pytest.importorskip(package)
    (tmp_path / 'set').mkdir()
    monkeypatch.chdir(tmp_path / 'set')
    return case, planted, plant(case, planted, tmp_path / 'set')


@pytest.mark.parametrize('faulty', FAULTS, indirect=True)
def test_a_fault_is_named_with_place_and_value(faulty: Faulty) -> None:
    case, planted, target = faulty
    results, failed = scan(case, target)
    assert not failed
    found = list(reported(results))
    assert any(all(word in text for word in planted.names) for text in found), found


CORRECTED = [fault for fault in FAULTS if fault.values[0][1].fix is not None]


@pytest.mark.parametrize('faulty', CORRECTED, indirect=True)
def test_a_corrected_fault_is_gone(faulty: Faulty, tmp_path: Path) -> None:
    """What is written is what a trial reads in memory."""
    case, planted, target = faulty
    of_format = plan_target(str(target), case.options).format
    assert of_format is not None
    assert not write_copies(target, tmp_path / 'out', FixOptions(**(planted.fix or {})), of_format).left_out
    copy = tmp_path / 'out' / target.name if target.is_file() else tmp_path / 'out'
    results, failed = scan(case, copy)
    assert results
    assert not failed
    assert not list(reported(results))
    if not of_format.renames:
        contents = correct_files({str(target): planted.fix or {}}, of_format)
        assert contents
        with FILES.replaced(contents):
            again, _ = scan(case, target)
        assert [one.facts.histogram for one in again] == [one.facts.histogram for one in results]


def test_damage_is_reported_and_bounded(case: FormatCase, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    target = case.write(tmp_path)
    path = tmp_path / case.main
    sound = path.read_bytes()
    for content in (sound[: len(sound) // 2], sound[:-1] + b'\0', *JUNK):
        path.write_bytes(content)
        results, failed = scan(case, target)
        assert REPORT_ADVICE not in ''.join(failed)
        assert results or failed
        assert sum(len(json.dumps(asdict(one.facts), default=str)) for one in results) < 1 << 16


@pytest.mark.same_everywhere
def test_the_advice_on_records_is_that_of_their_format(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    advice: Dict[str, Set[str]] = {}
    for index, (case, planted) in enumerate(fault.values[0] for fault in FAULTS):
        if all(importlib.util.find_spec(package) for package in case.needs):
            folder = tmp_path / str(index)
            folder.mkdir()
            monkeypatch.chdir(folder)
            results, _ = scan(case, plant(case, planted, folder))
            found = {one.advice for result in results for one in result.findings if one.code == 'MG176'}
            advice[case.name] = advice.get(case.name, set()) | found
    said = [texts for texts in advice.values() if texts]
    assert len(said) >= 2
    assert all(len(texts) == 1 for texts in said)
    assert len(set.union(*said)) == len(said), 'two formats give the same advice'
