"""``mmguard report``."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any, Container, Optional

from mmguard.tools.arguments import add_verbose, positive
from mmguard.tools.exit_codes import CLEAN, COULD_NOT_RUN, FOUND

if TYPE_CHECKING:
    from mmguard.tools.explain.explanation import Explanation
    from mmguard.tools.report.run_report import Crash


def add_to(commands: Any) -> None:
    parser = commands.add_parser(
        'report',
        help='show what a training skipped, and how it died: tables and likely causes',
        description='Reads what LabelGuardHook and FlightRecorderHook wrote during a training (of all ranks), and '
        'shows the worst files, what was skipped, and the likely causes; for a training that died also the error, its '
        'last batches, and the command that finds the sample. Exit code: 0 nothing was skipped, 1 something was, or it '
        'died, 2 nothing that can be read, or a damaged record where all others skipped nothing.',
    )
    parser.add_argument(
        'log', type=Path, metavar='LOG', help="label_guard.jsonl, label_guard_flight.jsonl, or a run's folder"
    )
    parser.add_argument(
        '--num-classes', type=positive, metavar='N', help='number of classes; default: as recorded by the run'
    )
    parser.add_argument('--json', metavar='FILE', help='write the numbers as JSON (-: to standard output)')
    add_verbose(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    from mmguard.tools.console import Console
    from mmguard.tools.explain.render import as_text
    from mmguard.tools.outputs import write_json
    from mmguard.tools.report.render import as_json, show
    from mmguard.tools.report.run_report import read_report, run_findings

    console = Console(stderr=args.json == '-')
    report = read_report(args.log, args.num_classes)
    findings = run_findings(report)
    show(console, report, findings, args.verbose)
    end = _explain_end(report.crash, {code for finding in findings for code in finding.supersedes})
    if end is not None:
        console.print(f'{as_text(end, width=min(console.width, 110), verbose=args.verbose)}\n', soft_wrap=True)
    if args.json is not None:
        # File names that are not UTF-8 contain lone surrogates, which JSON can hold only as escapes.
        write_json(args.json, as_json(report, findings, end))
    if not report.is_clean:
        return FOUND
    if report.is_damaged:
        console.print('the readable parts skipped nothing; the others may have', style='yellow')
        return COULD_NOT_RUN
    return CLEAN


def _explain_end(crash: Crash, codes: Container[str]) -> Optional[Explanation]:
    """Explain the exceptions of a crashed run, as `mmguard explain` does; return ``None`` if findings explain them."""
    from mmguard.tools.explain.explanation import explain_text
    from mmguard.tools.explain.sources import mark_rank

    found = explain_text(mark_rank(rank.traceback, rank.flight.rank) for rank in crash.ranks if rank.traceback)
    is_said = found is not None and found.signature is not None and found.signature.code in codes
    return None if is_said else found
