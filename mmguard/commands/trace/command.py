"""Command ``mmguard trace``, which chooses samples, traces them through the pipeline, and prints the steps."""

from __future__ import annotations

import argparse
import sys
from contextlib import redirect_stdout
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any, Dict, List

from mmguard.commands import CLEAN, COULD_NOT_RUN, FOUND
from mmguard.commands.arguments import RUN_CODE, add_arguments, label, positive
from mmguard.errors import CannotRun

if TYPE_CHECKING:
    from mmguard.commands.trace.tracer import SampleTrace, Tracer

_ARGUMENTS = f"""\
config CONFIG  a config of MMSegmentation or MMDetection
--sample N|PATH  number of a sample, or its image or label file; default: the first
--value V  count this value at each step; without --sample, in the first sample that has the value
--samples N  trace N samples (with --sample, one sample N times), each with another seed, and show the first sample with
  an invalid value; default: %(default)s
--split  split to read; default: %(default)s
--seed N  seed of random transforms; default: %(default)s
--num-classes N  number of classes; default: num_classes of guards or heads
--pictures N  trace N samples, and write an HTML page with their labels before and after the pipeline
--html FILE  name of the HTML page; default: trace.html
{RUN_CODE}--json FILE  write all steps as JSON (-: to standard output)
"""


def add_to(commands: Any) -> None:
    parser = commands.add_parser(
        'trace',
        help='show after which step of the pipeline a label value or a box appears, changes or vanishes',
        description="Builds a config's data set, runs its pipeline step by step on one sample, and shows how each step "
        'changed the number of pixels and boxes of each label, and why. Checks that labels are valid and that boxes '
        'are finite, have an area and are inside the image; names annotations that are not checked. '
        'A CONFIG in Python is executed. Exit code: 0 all checked annotations are valid, or the value was not found, '
        '1 an annotation is invalid at some step, 2 could not run.',
    )
    settings: Dict[str, Any] = dict(
        value=label,
        samples=dict(type=positive, default=1),
        split=dict(choices=('train', 'val', 'test'), default='train'),
        seed=dict(type=label, default=0),
        num_classes=positive,
        pictures=positive,
    )
    add_arguments(parser, _ARGUMENTS, **settings)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    from mmguard.commands.outputs import check_outputs, write_json, write_output
    from mmguard.commands.spinner import Spinner
    from mmguard.text import quantity, visible_name

    if args.pictures or args.html:
        from mmguard.commands.page.html import build_page
        from mmguard.commands.trace.pictures import MOST_SAMPLES, draw_sample

        args.html, args.samples = args.html or 'trace.html', args.pictures or args.samples
        if args.samples > MOST_SAMPLES:
            raise CannotRun(f'a page shows at most {MOST_SAMPLES} samples, got {args.samples}: write --pictures N')
        check_outputs(args)
    # Configs and pycocotools print; standard output may be for JSON.
    with Spinner('trace', args.config) as spinner, redirect_stdout(sys.stderr):
        from mmguard.commands.console import Console
        from mmguard.commands.samples import load_config
        from mmguard.commands.trace.render import as_json, find_mistakes, print_trace, print_verdict
        from mmguard.commands.trace.tracer import Tracer
        from mmguard.config.parts import from_config
        from mmguard.config.read import from_mmengine
        from mmguard.labels.spaces import from_options

        config = load_config(args.config, args.run_code)
        spaces = from_options(args.num_classes, None, from_config(from_mmengine(config), args.split))
        tracer = Tracer(config, args.split, args.seed, partial(draw_sample, spaces) if args.html else None)
        if args.sample is None and args.value is not None:
            spinner.text = f'{args.config}: {args.value} in {quantity(len(tracer), "sample")}'
        traces = _choose(tracer, args)
    console = Console(stderr=args.json == '-')
    # Show step by step a sample with a mistake, if there is one.
    traces.sort(key=lambda story: (not find_mistakes(story, spaces), not story.error))
    if not traces:
        where = f'{quantity(len(tracer), "sample")} of {args.split} (seed {args.seed})'
        console.print(f'{args.value} does not appear at any step of {where}')
        record: Dict[str, Any] = {'found': False, 'value': args.value, 'samples': len(tracer)}
    else:
        print_trace(console, traces[0], spaces, args.value)
        record = as_json(traces, spaces)
    if args.json is not None:
        write_json(args.json, record)
    if args.html is not None:
        drawn = [(f'{one.index}: {one.image}', find_mistakes(one, spaces), one.panels) for one in traces]
        write_output(args.html, build_page(f'Samples of {args.config}', samples=drawn).encode())
        console.print(f'page: {visible_name(args.html)}')
    if any(story.error for story in traces):
        return COULD_NOT_RUN
    if not traces:
        return CLEAN
    print_verdict(console, traces, spaces)
    return FOUND if find_mistakes(traces[0], spaces) else CLEAN


def _choose(tracer: Tracer, args: argparse.Namespace) -> List[SampleTrace]:
    """Return traces of the requested samples; if only a value is given, of the first samples that have this value."""
    if args.sample is not None or args.value is None:
        number = None if args.sample is None else tracer.find(args.sample)
        return tracer.repeat(args.samples, number)
    traces = map(tracer.trace, range(len(tracer)))
    return list(islice((story for story in traces if story.holds(args.value)), args.samples))
