"""Targets of a scan, and what they become when an edit is written."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any, Callable, Dict, Iterable, List, Mapping, NamedTuple

import pytest
from put_file import put_config

from mmguard.commands.fix.copies import MANIFEST, write_copies
from mmguard.config.changes import change_config
from mmguard.config.read import read_config
from mmguard.facts.labels import LabelFacts
from mmguard.findings.edits import Edit
from mmguard.findings.finding import Finding
from mmguard.formats.format import scan_here
from mmguard.formats.options import FixOptions, ScanOptions
from mmguard.scanning.plans import plan_target
from mmguard.scanning.run import SetResult, run_plan

pytest.importorskip('mmseg')

Build = Callable[[Path], Any]


class Target(NamedTuple):
    path: Path
    options: Dict[str, Any]

    @property
    def is_config(self) -> bool:
        return self.path.suffix == '.py'


def target_of(build: Build, root: Path) -> Target:
    """Make a target in a folder."""
    root.mkdir(exist_ok=True)
    built = build(root)
    return Target(*built) if isinstance(built, tuple) else Target(built, {})


def scan_sets(path: Path, options: Mapping[str, Any]) -> List[SetResult]:
    """Scan each data set of a target."""
    plan = plan_target(str(path), ScanOptions(**options))
    assert not plan.failed, plan.failed
    return run_plan(plan, scan_here)


def write_edit(target: Target, edit: Edit, root: Path) -> Target:
    """Write an edit where it was found; ``root`` holds rewritten files for a moment."""
    for file, changes in edit.files.items():
        _rewrite(Path(file), changes, root / 'fixed')
    if target.is_config:
        return Target(write_edited(target.path, edit.config), target.options)
    return Target(target.path, {**target.options, **edit.options})


def write_edited(path: Path, changes: Any) -> Path:
    """Write the config with changes next to it."""
    tree = change_config(read_config(str(path)), changes)
    return put_config(path.with_name(f'{path.stem}_edited.py'), **tree.data)


def _rewrite(place: Path, options: Mapping[str, Any], out: Path) -> None:
    """Put what `mmguard fix` writes in the place of the files."""
    write_copies(place, out, FixOptions(**options))
    (out / MANIFEST).unlink()
    if place.is_dir():
        shutil.rmtree(place)
        shutil.copytree(out, place)
    else:
        shutil.copyfile(out / place.name, place)
    shutil.rmtree(out)


def values_of(edit: Edit) -> Dict[str, List[Any]]:
    """Return each name that an edit writes, in a config, an option or a file -> its values."""
    found: Dict[str, List[Any]] = {}
    written = (*edit.config, *edit.options.items(), *(pair for one in edit.files.values() for pair in one.items()))
    _add_values(found, written)
    return found


def find_unwritten(edit: Edit, expected: Mapping[str, Any]) -> Dict[str, Any]:
    """Find what an edit was to write, name -> value (``...``: any), and does not."""
    written = values_of(edit)
    return {
        name: value
        for name, value in expected.items()
        if name not in written or (value is not ... and value not in written[name])
    }


def _add_values(found: Dict[str, List[Any]], pairs: Iterable[Any]) -> None:
    for path, value in pairs:
        table = _as_table(value)
        if isinstance(path, str):
            found.setdefault(path.rpartition('.')[2], []).append(table)
        for one in table if isinstance(table, (list, tuple)) else [table]:
            _add_values(found, one.items() if isinstance(one, dict) else ())


def _as_table(value: Any) -> Any:
    """Return the dict that edits hold as a tuple of pairs."""
    is_table = isinstance(value, tuple) and value and all(isinstance(pair, tuple) and len(pair) == 2 for pair in value)
    return dict(value) if is_table else value


class Scan(NamedTuple):
    target: Target
    results: List[SetResult]

    @property
    def first(self) -> Finding:
        return self.results[0].findings[0]

    @property
    def labels(self) -> LabelFacts:
        return self.results[0].facts


def scan(build: Build, root: Path) -> Scan:
    return scan_target(target_of(build, root))


def scan_target(target: Target) -> Scan:
    return Scan(target, scan_sets(*target))
