"""``mmguard report``: a training's log as tables, plots, likely causes, JSON and a page."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any, Dict, List, Optional

from mmguard.diagnosis import CAUSES, Finding, LabelFacts, diagnose
from mmguard.hooks.ledger import KINDS
from mmguard.report.log_config import LoggedSpace, has_hook, logged_space, read_config
from mmguard.report.log_lines import NotALog, Unread, find_logs, newest_config, read_lines
from mmguard.report.log_totals import ModeTotals, totals_of
from mmguard.report.page import Section, WorstFile, write_scan_page, write_whole
from mmguard.report.terminal import print_findings, print_mode

CLEAN, FINDINGS, COULD_NOT_RUN = 0, 1, 2


def report(
    target: Path,
    num_classes: Optional[int] = None,
    ignore_index: Optional[int] = None,
    html: Optional[Path] = None,
    json_file: Optional[str] = None,
    top_k: int = 20,
) -> int:
    """Reports on a log; returns the exit code.

    Args:
        target (Path): The log, or the folder of a run.
        num_classes (int, optional): Where neither the log nor the config beside it says so.
        ignore_index (int, optional): Of label maps; ``None``: as the config says, or 255.
        html (Path, optional): Where to write the page.
        json_file (str, optional): Where to write the numbers; ``'-'``: standard output, and nothing else there.
        top_k (int): Files per table.
    """
    from rich.console import Console

    console = Console(stderr=json_file == '-', markup=False, emoji=False, highlight=False)
    try:
        logs, others = find_logs(target)
        unread = Unread()
        totals = totals_of(read_lines(logs, unread))
    except NotALog as error:
        return _without_log(console, target, str(error))
    for folder in others:
        console.print(f'another run, not shown: {folder}')
    told = _told(unread)
    for line in told:
        console.print(line, style='yellow')
    config = _config_beside(logs[0])
    if not totals:
        console.print(f'{logs[0]}: no line that LabelGuardHook wrote: nothing to report', style='bold red')
        return COULD_NOT_RUN
    spaces = {(mode, kind): _space(config, mode, kind, num_classes, ignore_index) for mode in totals for kind in KINDS}
    sections = [
        section
        for mode, of_mode in totals.items()
        for section in _sections(mode, of_mode, {kind: spaces[mode, kind] for kind in KINDS}, told)
    ]
    found: Dict[str, List[Finding]] = {section.name: section.findings for section in sections}
    for mode, of_mode in totals.items():
        print_mode(console, mode, of_mode, top_k)
        for kind in KINDS:
            print_findings(console, mode, kind, found.get(_name(mode, kind), []))
            if of_mode.files[kind] and spaces[mode, kind] is None:
                console.print(
                    f'{mode}, {kind}: neither the log nor a config beside it says how many classes there are; '
                    f'with --num-classes N the likely cause is named'
                )
    if json_file is not None:
        _write_json(json_file, _as_json(logs, unread, totals, spaces, found))
    if html is not None:
        write_scan_page(html, str(target), sections)
        console.print(f'page: {html}')
    return FINDINGS


def _without_log(console: Any, target: Path, why: str) -> int:
    """A run that the hook watched and that has no log skipped nothing."""
    if target.is_dir():
        for path in sorted(target.rglob('config.py')):
            try:
                watched = has_hook(read_config(path))
            except (OSError, ValueError):
                continue
            if watched:
                console.print(f'{path.parent.parent}: LabelGuardHook watched this run and skipped nothing')
                return CLEAN
    console.print(f'mmguard report: {why}', style='bold red')
    return COULD_NOT_RUN


def _told(unread: Unread) -> List[str]:
    told = [
        f'{path}: the last line ends in the middle (killed, or still running); it is left out'
        for path in unread.cut_off
    ]
    if unread.lines:
        told.append(f'{unread.lines:,} lines are not understood and left out; the first: {unread.first}')
    return told


def _config_beside(log: Path) -> Dict[str, Any]:
    path = newest_config(log.parent)
    try:
        return {} if path is None else read_config(path)
    except (OSError, ValueError):
        return {}


def _space(
    config: Dict[str, Any], mode: str, kind: str, num_classes: Optional[int], ignore_index: Optional[int]
) -> Optional[LoggedSpace]:
    space = logged_space(config, mode, kind)
    if num_classes is not None:
        space = space or LoggedSpace(num_classes, 255 if kind == 'pixels' else None)
        space.num_classes = num_classes
    if space is not None and ignore_index is not None and kind == 'pixels':
        space.ignore_index = ignore_index
    return space


def _name(mode: str, kind: str) -> str:
    return f'{mode}, {kind}'


def _sections(
    mode: str, totals: ModeTotals, spaces: Dict[str, Optional[LoggedSpace]], told: List[str]
) -> List[Section]:
    sections = []
    for kind in KINDS:
        if not totals.files[kind] and (kind == 'instances' or any(totals.files.values())):
            continue  # a mode of which only losses told something has a section, too
        space = spaces[kind]
        seen, total = totals.over_all_files(kind), totals.kinds[kind]
        facts = LabelFacts(
            # What a label_map names is no surprise to the user.
            values={v: n for v, n in seen.values.items() if space is None or v not in space.label_map},
            total=total.total,
            offending_files=len(totals.files[kind]),
            kind=kind,
            reasons=seen.reasons,
        )
        if space is not None:
            facts.num_classes, facts.ignore_index = space.num_classes, space.ignore_index
            facts.class_names = space.class_names
        root = '' if space is None else space.data_root
        sections.append(
            Section(
                name=_name(mode, kind),
                facts=facts,
                findings=[] if space is None else diagnose(facts, CAUSES),
                worst=[_worst_file(t, kind, root) for t in totals.worst(kind)],
                notes=[
                    f'{total.skipped:,} {kind} skipped and {total.remapped:,} remapped, '
                    f'in {totals.iterations:,} iterations.',
                    'A file counts each time that it was trained on.',
                    *told,
                ],
                history={
                    what: dict(counts) for what, counts in totals.history.items() if kind in what or 'loss' in what
                },
            )
        )
    return sections


def _worst_file(tally: Any, kind: str, root: str) -> WorstFile:
    path = os.path.join(root, str(tally.source))
    there = path if os.path.isfile(path) else None
    return WorstFile(
        source=str(tally.source),
        image_path=there if kind == 'instances' else None,
        label_path=there if kind == 'pixels' else None,
        values=tally.values,
        skipped=tally.skipped + tally.remapped,
        reasons=tally.reasons,
    )


def _as_json(
    logs: List[Path],
    unread: Unread,
    totals: Dict[str, ModeTotals],
    spaces: Dict[Any, Optional[LoggedSpace]],
    found: Dict[str, List[Finding]],
) -> Dict[str, Any]:
    modes: Dict[str, Any] = {}
    for mode, of_mode in totals.items():
        modes[mode] = {
            'iterations': of_mode.iterations,
            'empty_images': of_mode.empty_images,
            'losses': {n: {'skipped': c.skipped, 'remapped': c.remapped} for n, c in of_mode.losses.items()},
            'history': {what: {str(i): n for i, n in sorted(c.items())} for what, c in of_mode.history.items()},
        }
        for kind in KINDS:
            total, space = of_mode.kinds[kind], spaces[mode, kind]
            modes[mode][kind] = {
                'total': total.total,
                'skipped': total.skipped,
                'remapped': total.remapped,
                'num_classes': None if space is None else space.num_classes,
                'files': [tally.to_json() for tally in of_mode.worst(kind)],
                'findings': [
                    {
                        'code': f.code,
                        'severity': f.severity,
                        'cause': f.cause,
                        'evidence': f.evidence,
                        'advice': f.advice,
                    }
                    for f in found.get(_name(mode, kind), [])
                ],
            }
            for record in modes[mode][kind]['files']:
                del record['total']  # the log holds it per iteration alone
    return {
        'logs': [str(path) for path in logs],
        'unread': {'lines': unread.lines, 'first': unread.first, 'cut_off': unread.cut_off},
        'modes': modes,
    }


def _write_json(target: str, record: Dict[str, Any]) -> None:
    # File names that are no UTF-8 are lone surrogates, which JSON can hold as escapes alone.
    text = json.dumps(record, indent=1) + '\n'
    if target == '-':
        sys.stdout.write(text)
        sys.stdout.flush()
    else:
        write_whole(Path(target), text.encode('utf-8'))
