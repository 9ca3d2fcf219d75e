"""Command ``mmguard replay``, which runs the samples of a flight record again, and prints those that raise."""

from __future__ import annotations

import argparse
from typing import Any

from mmguard.commands import CLEAN, COULD_NOT_RUN, FOUND
from mmguard.commands.arguments import RUN_CODE, VERBOSE, add_arguments, positive

_ARGUMENTS = f"""\
config CONFIG  the config of the run
record RECORD  the label_guard_flight.jsonl of the run
--last N  replay the last N batches; default: the last one, and earlier ones until a sample raises
--seeds K  number of runs of a random pipeline, each with another seed; default: %(default)s
{RUN_CODE}--json FILE  write the outcome as JSON (-: to standard output)
"""


def add_to(commands: Any) -> None:
    parser = commands.add_parser(
        'replay',
        help='find the sample that raises an exception, in the last batches before a crash',
        description='Loads the samples of a label_guard_flight.jsonl (FlightRecorderHook) again, newest batch first, '
        'and runs pipeline and model, forward and backward, on the CPU, one sample at a time. '
        'A CONFIG in Python is executed. Exit code: 0 no sample raises, 1 a sample raises or has a loss that is not '
        'finite, 2 could not run, or a sample was not found.',
    )
    add_arguments(parser, _ARGUMENTS + VERBOSE, last=positive, seeds=dict(type=positive, default=3))
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    from mmguard.commands.outputs import write_json
    from mmguard.commands.spinner import Spinner
    from mmguard.text import visible_name

    with Spinner('replay', args.config) as spinner:
        from mmguard.commands.console import Console, render_finding
        from mmguard.commands.replay.run import NOT_FOUND, RAISES, replay
        from mmguard.config.classes import suppress_output

        with suppress_output():
            replayed = replay(spinner, args)
    console = Console(stderr=args.json == '-')
    for line in replayed.list_lines():
        console.print(visible_name(line), soft_wrap=True)
    for finding in replayed.findings:
        console.print(render_finding(finding, 'likely cause: ', args.verbose), soft_wrap=True)
    if args.json is not None:
        write_json(args.json, replayed.to_json())
    if replayed.select(RAISES):
        return FOUND
    return COULD_NOT_RUN if replayed.select(NOT_FOUND) else CLEAN
