"""Command ``mmguard dry-run``, which tests the training of a config in a child process."""

from __future__ import annotations

import argparse
import sys
import time
from contextlib import redirect_stdout
from typing import TYPE_CHECKING, Any, Iterator, Sequence

from mmguard.commands import CLEAN, COULD_NOT_RUN
from mmguard.commands.arguments import RUN_CODE, add_arguments, positive
from mmguard.commands.selection import add_outcome, read_selection

if TYPE_CHECKING:
    from mmguard.properties.suite import PropertyRecord

_ARGUMENTS = """\
config CONFIG  a file, or a shipped config: mmseg::pidnet/NAME.py
--samples N  number of samples per data set; default: %(default)s
--only NAME  test only these properties
--no-data  do not read the data: test on made-up images only
--seconds N  time limit for all properties together; default: %(default)s
--device NAME  device of the model; default: %(default)s
--json FILE  write the results as JSON (-: to standard output)
"""


def add_to(commands: Any) -> None:
    from mmguard.properties.suite import PROPERTIES

    listed = '; '.join(f'{name} ({one.summary})' for name, one in PROPERTIES.items())
    parser = commands.add_parser(
        'dry-run',
        help='run the first batches of a training and a validation, then test properties that a run does not show',
        description='Builds the training of a config of MMSegmentation or MMDetection in a process of its own, without '
        'network. Runs the first batches of your loader and the first images of your validation. Then tests, on your '
        f'data and on small made-up images: {listed}. Pretrained weights that are not on this disk are left out, '
        'SyncBN becomes BN, and nothing is written into the work_dir. A CONFIG in Python is executed. '
        'Exit code: 1 if a property is broken, else 2 if a property could not run, else 0.',
    )
    samples, seconds = dict(type=positive, default=8), dict(type=positive, default=120)
    only = dict(nargs='+', choices=list(PROPERTIES), default=[])
    add_arguments(parser, _ARGUMENTS, samples=samples, only=only, seconds=seconds, device=dict(default='cpu'))
    add_outcome(parser)
    add_arguments(parser, RUN_CODE)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    from mmguard.commands.outputs import write_json
    from mmguard.commands.spinner import Spinner

    selection = read_selection(args)
    began = time.monotonic()
    with Spinner('dry-run', f'{args.config}, at most {args.seconds} s') as spinner:
        import mmengine  # noqa: F401  if it is missing, the command line says how to install it

        from mmguard.commands.console import Console
        from mmguard.commands.dry_run.render import as_json, build_findings, list_reasons, show

        tested = []
        samples = 0 if args.no_data else args.samples
        for one in check_program(args.config, args.only, samples, args.seconds, args.device, args.run_code):
            tested.append(one)
            spinner.text = f'{args.config}, after {one.name}, at most {args.seconds} s'
    seconds = time.monotonic() - began
    show(Console(stderr=not selection.for_people), tested, seconds)
    if args.json is not None:
        write_json(args.json, as_json(args.config, tested, seconds))
    findings, reasons = build_findings(tested), list_reasons(tested)
    selection.write('dry-run', args.config, selection.build_entries(args.config, findings), reasons)
    return selection.choose_exit_code([one.severity for one in findings]) or (COULD_NOT_RUN if reasons else CLEAN)


def check_program(
    config: str, only: Sequence[str], samples: int, seconds: float, device: str, run_code: bool
) -> Iterator[PropertyRecord]:
    """Yield the record of each property once it is tested; without ``only``, add the findings of `mmguard check`.

    If ``samples`` is 0, no data are read, and properties of data are skipped unless ``only`` names them.
    """
    from mmguard.config.read import check_may_build, read_config
    from mmguard.errors import CannotRun
    from mmguard.findings.engine import diagnose, select_rules
    from mmguard.findings.finding import INFO
    from mmguard.properties.result import note
    from mmguard.properties.suite import MADE_UP, PROPERTIES, PropertyRecord, run_properties
    from mmguard.properties.worker import Worker

    with redirect_stdout(sys.stderr):  # configs and frameworks print; standard output may be for JSON
        read = read_config(config, run_code)
        check_may_build(config, run_code)
    if read.is_old or not read.part('model'):
        raise CannotRun(f'{config}: only configs of MMEngine with a model can be built')
    names = [name for name in PROPERTIES if name in (only or (PROPERTIES if samples else MADE_UP))]
    with Worker() as worker:
        yield from run_properties(worker, read.written, names, seconds, samples, device)
    findings = [] if only else diagnose(config=read, rules=[one for one in select_rules() if 'config' in one.looks_at])
    found = [note(one.code, str(one.title), dict(code=one.code)) for one in findings if one.severity != INFO]
    if found:
        summary = 'findings of `mmguard check` in the config'
        yield PropertyRecord('check', summary, 'note', found, 0.0, f'`mmguard check {config}` shows what to write.')
