"""``mmguard report``."""

from __future__ import annotations

import argparse
import shlex
from dataclasses import asdict
from pathlib import Path
from typing import Any

from mmguard.commands.arguments import add_verbose
from mmguard.commands.exit_codes import CLEAN, COULD_NOT_RUN, FOUND


def add_to(commands: Any) -> None:
    parser = commands.add_parser(
        'report',
        help='show what a training skipped, and how it died: tables and likely causes',
        description='Shows what LabelGuardHook and FlightRecorderHook wrote during a training, on all ranks: how each '
        'rank ended, the worst files, what was skipped, and the likely causes. Exit code: 0 nothing was skipped, 1 '
        'something was, or the training died, 2 nothing could be read, or only a part, which skipped nothing.',
    )
    parser.add_argument(
        'log', type=Path, metavar='LOG', help="label_guard.jsonl, label_guard_flight.jsonl, or a run's folder"
    )
    parser.add_argument('--json', metavar='FILE', help='write the numbers as JSON (-: to standard output)')
    add_verbose(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    from mmguard.commands.console import Console, render_finding
    from mmguard.commands.explain.sources import find_config
    from mmguard.commands.outputs import write_json
    from mmguard.commands.report.causes import find_causes, find_rank_causes, read_ends
    from mmguard.findings.messages import unpack
    from mmguard.log.guard_log import GuardLog
    from mmguard.log.run_files import NotALog, find_run

    files = find_run(args.log)
    log = GuardLog(files)
    ranks, silent, unread = read_ends(files.crashes, log.run.world_size)
    problems = log.problems + unread
    if not (log.modes or ranks):
        raise NotALog(
            '; '.join([f'{args.log}: no output of an mmguard hook, so there is nothing to report', *problems])
        )
    causes = {'ranks': find_rank_causes(log, ranks, silent), **find_causes(log)}
    console = Console(stderr=args.json == '-')
    for line in (*(rank.words for rank in ranks), *unread, str(log)):
        console.print(line, soft_wrap=True)
    for place, findings in causes.items():
        for finding in findings[: None if args.verbose or place == 'ranks' else 1]:
            console.print(render_finding(finding, f'\n{place}: ', args.verbose), soft_wrap=True)
    if ranks:
        config = str(find_config(log.folder) or 'CONFIG')
        for words in (['explain', str(log.folder)], ['replay', config, ranks[0].record]):
            console.print(shlex.join(['mmguard', *words]), style='bold cyan', soft_wrap=True)
    if args.json is not None:
        record = dict(
            folder=str(log.folder),
            problems=problems,
            modes={mode: log.totals(mode).to_json() for mode in log.modes},
            files=log.files(),
            findings=[{'of': place, **unpack(finding)} for place, found in causes.items() for finding in found],
            ranks=list(map(asdict, ranks)),
        )
        write_json(args.json, record)
    if ranks or any(map(log.totals, log.modes)):
        return FOUND
    return COULD_NOT_RUN if problems else CLEAN
