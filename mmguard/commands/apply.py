"""``mmguard apply``."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any


def add_to(commands: Any) -> None:
    parser = commands.add_parser(
        'apply',
        help='write the guarded config: hook, guards in every pipeline, guarded losses',
        description='Writes a config that inherits from CONFIG and guards it: the import, the hook, GuardSegLabels or '
        'GuardInstanceLabels in every pipeline, guarded losses, assigners that heed ignored instances. CONFIG itself '
        'is never changed; a config that is guarded already stays as it is.',
    )
    parser.add_argument('config', metavar='CONFIG', help='a file, or a shipped one as mmseg::pidnet/NAME.py')
    parser.add_argument(
        '-o', '--out', type=Path, required=True, metavar='OUT', help='the file to write; OUT must end with .py'
    )
    parser.add_argument('--force', action='store_true', help='overwrite OUT where it exists and says something else')
    parser.add_argument('--quiet', action='store_true', help='do not show the diff')
    parser.set_defaults(run=run, interrupted='mmguard apply: interrupted; nothing was written')


def run(args: argparse.Namespace) -> int:
    import mmengine  # noqa: F401  where it is missing, the command line says how to install it

    from mmguard.apply.command import apply

    return apply(args.config, args.out, force=args.force, quiet=args.quiet)
