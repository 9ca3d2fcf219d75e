"""``mmguard env``."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from typing import Any

from mmguard.tools.arguments import add_verbose
from mmguard.tools.exit_codes import CLEAN, FOUND


def add_to(commands: Any) -> None:
    parser = commands.add_parser(
        'env',
        help='say what is installed, whether it works together, and what to do if not',
        description='Prints one line each for Python, the stack (OpenMMLab, onedl), torch and its CUDA, NumPy, OpenCV, '
        'mmengine, mmcv and its ops, mmsegmentation and mmdetection: ok, warning or error; then what is wrong (MG5xx) '
        'and what to do. Exit code: 1 if there is an error, else 0. '
        'Packages are imported in a child process; --no-import only reads files.',
    )
    parser.add_argument('--json', metavar='FILE', help='write the verdicts as JSON, too (-: to standard output)')
    parser.add_argument('--no-import', action='store_true', help='do not try the imports: faster, but finds less')
    add_verbose(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    from mmguard.findings.engine import diagnose
    from mmguard.findings.finding import ERROR
    from mmguard.findings.messages import unpack
    from mmguard.tools.env.facts import build_table, find_worst, gather, show
    from mmguard.tools.outputs import write_json

    environment = gather(try_imports=not args.no_import)
    findings = diagnose(environment=environment)
    lines = build_table(environment, findings)
    if args.json != '-':
        show(lines, findings, args.verbose)
    if args.json is not None:
        record = {
            'worst': find_worst(findings),
            'lines': [asdict(line) for line in lines],
            'findings': [unpack(finding) for finding in findings],
        }
        write_json(args.json, record)
    return FOUND if find_worst(findings) == ERROR else CLEAN
