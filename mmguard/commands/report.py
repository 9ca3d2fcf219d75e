"""``mmguard report``."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from mmguard.commands.arguments import positive


def add_to(commands: Any) -> None:
    parser = commands.add_parser(
        'report',
        help='what a training skipped, and how it died: tables, plots and likely causes',
        description='Reads what LabelGuardHook and FlightRecorderHook wrote during a training (of all ranks), and '
        'shows the worst files, what was skipped over the iterations, and the likely causes; of one that died the '
        'error, its last batches, and the command that finds the sample. Exit code: 0 nothing was skipped, 1 something '
        'was, or it died, 2 nothing that can be read.',
    )
    parser.add_argument(
        'log', type=Path, metavar='LOG', help="label_guard.jsonl, label_guard_flight.jsonl, or a run's folder"
    )
    parser.add_argument('--num-classes', type=positive, metavar='N', help='default: what the run says')
    parser.add_argument('--ignore-index', type=int, metavar='N', help='default: what the run says, or 255')
    parser.add_argument('--top', type=positive, default=20, metavar='N', help='files per table, default: %(default)s')
    parser.add_argument('--html', type=Path, metavar='FILE', help='write one self-contained page')
    parser.add_argument('--json', metavar='FILE', help="write the numbers as JSON ('-': standard output)")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    from mmguard.report.log_report import report

    return report(args.log, args.num_classes, args.ignore_index, args.html, args.json, args.top)
