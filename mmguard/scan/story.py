"""One scan from the command line: plan, run, tell."""

from __future__ import annotations

import os
import sys
from contextlib import ExitStack, redirect_stdout
from typing import Any, Optional

from mmguard.console import Console, Text
from mmguard.files import write_or_print
from mmguard.scan.engine import Mapper, scan_here
from mmguard.scan.journal import Journal, default_journal
from mmguard.scan.names import printable
from mmguard.scan.nnunet.source import CaseSource
from mmguard.scan.options import ScanOptions
from mmguard.scan.processes import LocalProcesses, cores
from mmguard.scan.progress import ScanProgress
from mmguard.scan.run import run_plan
from mmguard.scan.screen import show
from mmguard.scan.sources.base import MapSource
from mmguard.scan.target import plan_of
from mmguard.scan.written import as_json, write_page

CLEAN, FOUND, FAILED = 0, 1, 2


def scan_and_tell(args: Any, options: ScanOptions) -> int:
    """Runs ``mmguard scan``.

    Args:
        args (argparse.Namespace): ``target``, ``journal``, ``resume``, ``processes``, ``dask``, ``json``, ``html``.
        options (ScanOptions): What the user says about the labels.

    Returns:
        int: 0 clean, 1 findings, 2 a data set could not be opened.

    Raises:
        CannotScan: There is nothing to scan.
        OSError: The journal or a report cannot be written, or no scheduler answers.
        CannotRun: ``--dask`` without dask.distributed.
    """
    # Standard output belongs to the JSON where it was asked for.
    console = Console(stderr=args.json == '-', soft_wrap=True, highlight=False)
    with ExitStack() as stack:
        stack.enter_context(redirect_stdout(sys.stderr))  # frameworks print; standard output may be for JSON
        plan = plan_of(args.target, options)
        mapper = _mapper(args.dask, args.processes or cores(), stack)
        journal: Optional[Journal] = None
        if any(isinstance(source, (MapSource, CaseSource)) for source in plan.sources):
            journal = stack.enter_context(_journal(args))
        progress = stack.enter_context(ScanProgress())
        results = run_plan(plan, mapper, journal, progress.start, progress.advance)
    if args.json:
        write_or_print(args.json, as_json(args.target, results, plan.failed))
    if args.html:
        write_page(args.html, args.target, results)
    for result in results:
        show(console, result)
    if args.html:
        console.print(f'\npage: {args.html}', markup=False)
    for failure in plan.failed:
        console.print(Text(f'could not run: {printable(failure)}', style='bold red'))
    if plan.failed:
        return FAILED
    return CLEAN if all(result.is_clean for result in results) else FOUND


def _mapper(dask: Optional[str], processes: int, stack: ExitStack) -> Mapper:
    if dask:
        from mmguard.scan.on_dask import DaskCluster

        cluster = DaskCluster(dask)
        stack.callback(cluster.close)
        return cluster
    return scan_here if processes == 1 else LocalProcesses(processes)


def _journal(args: Any) -> Journal:
    try:
        return Journal(args.journal or default_journal(args.target), args.resume)
    except OSError:
        if args.journal:
            raise
        # No home to write to (a container): the scan is worth more than its journal.
        return Journal(os.devnull, False)
