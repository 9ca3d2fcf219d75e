"""``mmguard env``."""

from __future__ import annotations

import argparse
from typing import Any

from mmguard.commands.arguments import add_verbose
from mmguard.commands.exit_codes import CLEAN, FOUND

#: Width at which no line is broken: a terminal wraps long lines itself.
_UNBROKEN = 1 << 20

_NEW_ENVIRONMENT = 'mmsegmentation and mmdetection for this machine, in a new environment'
_EXECUTED = 'executed for this Python and torch, without a GPU'
_NOT_EXECUTED = 'not executed for this Python, torch and GPU: see docs/stacks.md'


def add_to(commands: Any) -> None:
    parser = commands.add_parser(
        'env',
        help='say what is installed, whether it works together, and what to do if not',
        description='Prints one line each for Python, the stack (OpenMMLab, onedl), torch and its CUDA, NumPy, OpenCV, '
        'mmengine, mmcv and its ops, mmsegmentation and mmdetection; then what is wrong (MG5xx) and what to do, and '
        'the line that installs mmsegmentation and mmdetection for this Python, torch and GPU. Exit code: 1 if there '
        'is an error, else 0. Packages are imported in a child process; --no-import only reads files.',
    )
    parser.add_argument('--json', metavar='FILE', help='write the lines and findings as JSON (-: to standard output)')
    parser.add_argument('--no-import', action='store_true', help='do not try the imports: faster, but finds less')
    add_verbose(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    from mmguard.commands.env.facts import describe_environment, gather
    from mmguard.commands.env.install import build_install_line
    from mmguard.commands.outputs import write_json
    from mmguard.findings.engine import diagnose
    from mmguard.findings.finding import ERROR
    from mmguard.findings.messages import format_finding, unpack
    from mmguard.text import visible

    environment = gather(try_imports=not args.no_import)
    findings, lines = diagnose(environment=environment), describe_environment(environment)
    install = build_install_line(environment)
    if args.json != '-':
        width = max(map(len, lines))
        for name, found in lines.items():
            print(visible(f'{name:<{width}}  {found}'))
        for finding in findings:
            print(visible(f'\n{format_finding(finding, _UNBROKEN, args.verbose)}'))
        if install is not None:
            print(
                visible(f'\n{_NEW_ENVIRONMENT} ({_EXECUTED if install.executed else _NOT_EXECUTED}):\n  {install.line}')
            )
    if args.json is not None:
        record = {'lines': lines, 'findings': [unpack(finding) for finding in findings]}
        write_json(args.json, {**record, 'install': install and install._asdict()})
    return FOUND if any(finding.severity == ERROR for finding in findings) else CLEAN
