"""``mmguard scan``."""

from __future__ import annotations

import argparse
import os
import sys
from contextlib import ExitStack, redirect_stdout
from typing import TYPE_CHECKING, Any

from mmguard.tools.arguments import add_no_verify, add_run_code, add_verbose, processes
from mmguard.tools.exit_codes import CLEAN, COULD_NOT_RUN, FOUND
from mmguard.tools.scan.arguments import add_labels, add_reading, add_split, options_of

if TYPE_CHECKING:
    from mmguard.tools.scan.engine import Mapper
    from mmguard.tools.scan.journal import Journal


def add_to(commands: Any) -> None:
    parser = commands.add_parser(
        'scan',
        help='read all labels before training: say what is wrong, in which files, why, and what to write',
        description='Reads every label of a data set, compares what is stored with what training will see, and names '
        'the likely cause. TARGET is a config of mmseg or mmdet, a folder of label maps, a COCO or LVIS JSON, a VOC '
        'folder, a data.yaml or folder of YOLO, a folder of Labelme, or a raw data set of nnU-Net '
        '(dataset.json). Label maps, a COCO JSON and YOLO can lie behind a URL (s3://, gs://, az://, https://, '
        'zip://FOLDER::FILE.zip). A config in Python is a program, and is run; what an edit of it touches is built and '
        'called before and after it, in a process without network, for at most 20 s. Exit code: 0 clean, 1 findings, 2 '
        'could not run, or read nothing.',
    )
    parser.add_argument('target', metavar='TARGET')
    add_split(parser)
    labels = parser.add_argument_group('what a config would say')
    add_labels(labels)
    add_reading(labels)
    add_run_code(labels)
    add_no_verify(labels)
    where = parser.add_argument_group('how it is run')
    where.add_argument(
        '--resume',
        action='store_true',
        help='go on where the last scan stopped; files that have not changed are not read again',
    )
    where.add_argument('--journal', metavar='FILE', help='file for the records of the scan; default: in the user cache')
    where.add_argument('--processes', type=processes, metavar='N', help='number of processes; default: one per core')
    where.add_argument('--dask', metavar='ADDRESS', help='run on a dask.distributed cluster, tcp://host:8786')
    out = parser.add_argument_group('output')
    out.add_argument('--json', metavar='FILE', help='write everything as JSON (-: to standard output)')
    out.add_argument('--html', metavar='FILE', help='write one self-contained page with pictures of the worst files')
    add_verbose(parser)
    parser.set_defaults(
        run=run, interrupted='mmguard scan: interrupted; what was read is kept, the same command with --resume goes on'
    )


def run(args: argparse.Namespace) -> int:
    from mmguard.findings.engine import verify_edits
    from mmguard.findings.wording import apply_hint, fix_hint
    from mmguard.properties.builder import verifier_of
    from mmguard.text.console import Console
    from mmguard.tools.outputs import write_json
    from mmguard.tools.scan.nnunet.source import CaseSource
    from mmguard.tools.scan.progress import ScanProgress
    from mmguard.tools.scan.render import show, show_failed
    from mmguard.tools.scan.run import run_plan
    from mmguard.tools.scan.sources.base import MapSource
    from mmguard.tools.scan.target import plan_of
    from mmguard.tools.scan.written import as_json, write_page
    from mmguard.tools.storage.urls import entered

    if args.html:
        import mmguard.tools.report.html  # noqa: F401  what it needs is missed before hours of reading
    args.target = entered(args.target)
    options = options_of(args)
    # Standard output belongs to the JSON where it was asked for.
    console = Console(stderr=args.json == '-', soft_wrap=True, highlight=False)
    with ExitStack() as stack:
        stack.enter_context(redirect_stdout(sys.stderr))  # frameworks print; standard output may be for JSON
        plan = plan_of(args.target, options)
        mapper = _mapper(args, stack)
        journal = None
        if any(isinstance(source, (MapSource, CaseSource)) for source in plan.sources):
            journal = stack.enter_context(_journal(args))
        progress = stack.enter_context(ScanProgress())
        results = run_plan(plan, mapper, journal, progress.start, progress.advance)
        if plan.tree is not None:
            verifier, doubt = stack.enter_context(verifier_of(plan.tree, args.run_code, not args.no_verify))
            for result in results:
                result.findings = verify_edits(result.findings, plan.tree, verifier, doubt)
    if args.json:
        write_json(args.json, as_json(args.target, results, plan.failed))
    if args.html:
        write_page(args.html, args.target, results)
    for result in results:
        show(console, result, args.verbose)
    findings = [finding for result in results for finding in result.findings]
    words = options.words()
    for hint in (apply_hint(args.target, findings, ['--scan', *words]), fix_hint(args.target, findings, words)):
        if hint:
            console.print(f'\n{hint}', markup=False)
    if args.html:
        console.print(f'\npage: {args.html}', markup=False)
    show_failed(console, plan.failed)
    if plan.failed:
        return COULD_NOT_RUN
    return CLEAN if all(result.is_clean for result in results) else FOUND


def _mapper(args: argparse.Namespace, stack: ExitStack) -> Mapper:
    """What reads many files at a time."""
    from mmguard.tools.scan.engine import scan_here
    from mmguard.tools.scan.processes import LocalProcesses, cores

    if args.dask:
        from mmguard.tools.scan.on_dask import DaskCluster

        cluster = DaskCluster(args.dask)
        stack.callback(cluster.close)
        return cluster
    processes = args.processes or cores()
    return scan_here if processes == 1 else LocalProcesses(processes)


def _journal(args: argparse.Namespace) -> Journal:
    from mmguard.tools.scan.journal import Journal, default_journal

    path = args.journal or default_journal(args.target)
    try:
        return Journal(path, args.resume)
    except OSError:
        if args.journal:
            raise
        # No home to write to (a container): the scan is worth more than its journal.
        return Journal(os.devnull, False)
