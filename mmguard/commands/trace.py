"""``mmguard trace``."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from mmguard.commands.arguments import positive


def add_to(commands: Any) -> None:
    parser = commands.add_parser(
        'trace',
        help='after which step of the pipeline a label value or a box appears, changes or vanishes',
        description="Builds a config's data set, runs its pipeline step by step on one sample, and shows what each "
        'step did to label values and instances, and why. Exit code: 0 all valid (or the value was not found), 1 '
        'invalid values at some step, 2 could not run.',
    )
    parser.add_argument('config', type=Path, metavar='CONFIG', help='a config of MMSegmentation or MMDetection')
    parser.add_argument('--sample', metavar='N|PATH', help='number, or image or label file, default: the first')
    parser.add_argument(
        '--value',
        type=int,
        metavar='V',
        help='count it at each step; without --sample: of the first sample that shows it',
    )
    parser.add_argument('--split', choices=('train', 'val', 'test'), default='train', help='default: %(default)s')
    parser.add_argument('--seed', type=int, default=0, metavar='N', help='of random transforms, default: %(default)s')
    parser.add_argument('--num-classes', type=positive, metavar='N', help='default: what guards or heads say')
    parser.add_argument('--json', metavar='FILE', help="write the story as JSON ('-': standard output)")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    from mmguard.trace.run import trace

    return trace(args.config, args.sample, args.value, args.split, args.seed, args.num_classes, args.json)
