"""``mmguard replay``."""

from __future__ import annotations

import argparse
from typing import Any

from mmguard.tools.arguments import add_run_code, add_verbose, positive


def add_to(commands: Any) -> None:
    parser = commands.add_parser(
        'replay',
        help='find the failing sample in the last batches before a crash, and say why',
        description='Loads the samples of a label_guard_flight.jsonl (FlightRecorderHook) again, newest batch first, '
        'and runs the label checks and the model, forward and backward, on the CPU, one sample at a time. No GPU is '
        'touched. CONFIG in Python is a program, and is run. Exit code: 0 none fails, 1 at least one fails, 2 could '
        'not run, or some were not found.',
    )
    parser.add_argument('config', metavar='CONFIG', help='the config of the run')
    parser.add_argument('record', metavar='RECORD', help='its label_guard_flight.jsonl')
    parser.add_argument(
        '--last',
        type=positive,
        metavar='N',
        help='replay the last N batches; default: back to the first in which a sample fails',
    )
    parser.add_argument(
        '--seeds',
        type=positive,
        default=3,
        metavar='K',
        help='how often a random pipeline is run; default: %(default)s',
    )
    add_run_code(parser)
    parser.add_argument('--json', metavar='FILE', help='write the outcome as JSON (-: to standard output)')
    add_verbose(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    from mmguard.tools.outputs import write_json
    from mmguard.tools.spinner import Spinner

    with Spinner('replay', args.config) as spinner:
        from mmguard.config.classes import suppress_output
        from mmguard.tools.console import Console
        from mmguard.tools.replay.render import as_json, show
        from mmguard.tools.replay.run import hide_gpus, replay

        with hide_gpus(), suppress_output():
            report = replay(spinner, args)
    show(Console(stderr=args.json == '-'), report, args.verbose)
    if args.json is not None:
        write_json(args.json, as_json(report))
    return int(report['exit_code'])
