"""``mmguard report``: what a run left as tables, plots, likely causes, JSON and a page; and how it died."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Dict, List, Optional

from mmguard.files import write_or_print
from mmguard.log.totals import KINDS
from mmguard.log.wording import all_valid, filled_losses
from mmguard.report.crash import read_crash
from mmguard.report.html import visible
from mmguard.report.log_config import has_hook, read_config
from mmguard.report.log_json import as_json
from mmguard.report.log_lines import Unread, read_lines
from mmguard.report.log_totals import totals_of
from mmguard.report.logged_run import LoggedRun, read_run
from mmguard.report.mode_report import ModeReport, mode_reports, sections_of
from mmguard.report.page import write_scan_page
from mmguard.report.run_files import NotALog, RunFiles, config_of, find_run
from mmguard.report.terminal import print_crash, print_findings, print_mode
from mmguard.visible import visible_name
from mmguard.words import counted

CLEAN, FINDINGS = 0, 1


def report(
    target: Path,
    num_classes: Optional[int] = None,
    ignore_index: Optional[int] = None,
    html: Optional[Path] = None,
    json_file: Optional[str] = None,
    top_k: int = 20,
) -> int:
    """Reports on a run; returns the exit code.

    Args:
        target (Path): Its log, its ``label_guard.json``, its flight record, or its folder.
        num_classes (int, optional): Where nothing beside the log says so.
        ignore_index (int, optional): Of label maps; ``None``: as the run says, or 255.
        html (Path, optional): Where to write the page.
        json_file (str, optional): Where to write the numbers; ``'-'``: standard output, and nothing else there.
        top_k (int): Files per table.
    """
    from mmguard.console import Console

    console = Console(stderr=json_file == '-', markup=False, emoji=False, highlight=False)
    try:
        files = find_run(target)
        unread = Unread()
        lines = totals_of(read_lines(files.logs, unread))
    except NotALog as error:
        return _without_log(console, target, error)
    run = read_run(files.records)
    crash = read_crash(files.crashes, run.world_size)
    for folder in files.others:
        console.print(f'another run, not shown: {visible(str(folder))}')
    told = _told(unread) + run.problems + crash.problems
    for line in told:
        console.print(visible(line), style='yellow')
    known = LoggedRun() if files.crash_alone else run
    modes = mode_reports(lines, known, _config_beside(files.folder), num_classes, ignore_index)
    if not modes and not crash.ranks:
        raise NotALog(f'{visible(str(target))}: nothing that a hook of mmguard wrote: nothing to report')
    if crash.ranks:
        print_crash(console, crash)
    for mode in modes:
        _print(console, mode, max(1, known.ranks), top_k)
    if json_file is not None:
        _write_json(json_file, as_json(_files(files), unread, modes, crash))
    if html is not None:
        # Where no label was counted there is nothing to call fine.
        sections = [section for mode in modes if mode.in_all.counted for section in sections_of(mode, told)]
        write_scan_page(html, str(target), sections, crash if crash.ranks else None)
        console.print(f'page: {html}')
    return FINDINGS if crash.ranks or any(not mode.skipped_nothing for mode in modes) else CLEAN


def _print(console: Any, report: ModeReport, ranks: int, top_k: int) -> None:
    if report.skipped_nothing:
        console.print(all_valid(report.mode, report.in_all) or f'{report.mode}: {_without_labels(report)}')
        for line in filled_losses(report.in_all.filled):
            console.print(line)
    else:
        print_mode(console, report.mode, report.lines, report.in_all, ranks, top_k)
    for rank, (place, samples) in sorted(report.lines.first_filled.items()):
        named = ', '.join(map(visible_name, samples)) or 'unknown'
        console.print(f'rank {rank} lacked a loss first in iteration {place:,} (samples: {named})')
    if report.note:
        console.print(report.note, style='yellow')
    for kind in KINDS:
        print_findings(console, report.mode, kind, report.findings[kind])
        if report.lines.files[kind] and report.spaces[kind] is None:
            console.print(
                f'{report.mode}, {kind}: nothing beside the log says how many classes there are; with --num-classes N '
                f'the likely cause is named'
            )


def _without_labels(report: ModeReport) -> str:
    empty = report.in_all.empty_images
    return f'{counted(empty, "image")} seen without any instance, no other label' if empty else 'no label was counted'


def _without_log(console: Any, target: Path, why: NotALog) -> int:
    """A run that the hook of an older mmguard watched and that has no log skipped nothing."""
    if target.is_dir():
        for path in sorted(target.rglob('config.py')):
            try:
                watched = has_hook(read_config(path))
            except (OSError, ValueError):
                continue
            if watched:
                console.print(f'{path.parent.parent}: LabelGuardHook watched this run and skipped nothing')
                return CLEAN
    raise why


def _told(unread: Unread) -> List[str]:
    told = [
        f'{path}: the last line ends in the middle (killed, or still running); it is left out'
        for path in unread.cut_off
    ]
    if unread.lines:
        told.append(
            f'{counted(unread.lines, "line is", "lines are")} not understood and left out; the first: {unread.first}'
        )
    return told


def _config_beside(folder: Path) -> Dict[str, Any]:
    path = config_of(folder)
    try:
        return {} if path is None else read_config(path)
    except (OSError, ValueError):
        return {}


def _files(files: RunFiles) -> List[Path]:
    return [*files.logs, *files.crashes] if files.crash_alone else [*files.logs, *files.records, *files.crashes]


def _write_json(target: str, record: Dict[str, Any]) -> None:
    # File names that are no UTF-8 are lone surrogates, which JSON can hold as escapes alone.
    write_or_print(target, json.dumps(record, indent=1))
