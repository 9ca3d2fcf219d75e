"""Command ``mmguard scan``, and the options that it shares with other commands."""

from __future__ import annotations

import argparse
import sys
from contextlib import ExitStack, nullcontext, redirect_stdout
from dataclasses import fields
from functools import partial
from typing import TYPE_CHECKING, Any, Dict

from mmguard.commands import COULD_NOT_RUN
from mmguard.commands.arguments import (
    NO_VERIFY,
    RUN_CODE,
    VERBOSE,
    add_arguments,
    class_names,
    label,
    label_map,
    positive,
    processes,
)
from mmguard.commands.selection import add_selection, read_selection
from mmguard.errors import collect_failures
from mmguard.labels.numbering import FRAMEWORKS, NUMBERINGS
from mmguard.language import translate

if TYPE_CHECKING:
    from mmguard.formats.options import ScanOptions

_SPLITS = ('train', 'val', 'test')
_VALID = """\
--num-classes N  valid labels are 0..N-1
--ignore-index V  label that is excluded from training; default: 255
--label-map 7:0,8:1  first map values in files to classes (*:255 maps all others); or a .json file of {"7": 0, "8": 1}
"""
_LABELS = """\
--classes cat,dog  for VOC and class folders: the names of the classes, in their order, or a file with one name per line
--images DIR  folder of the images, whose names and sizes are compared with the labels
"""
_READING = f"""\
--reduce-zero-label  as in mmseg: 0 is ignored, and 1 is the first class
--framework NAME  for a COCO JSON: the framework that trains on it: {', '.join(FRAMEWORKS)}
--labels  for a COCO JSON: the label of a category is its position (positions: mmdet, detectron2, YOLOX), its id (ids:
  DETR and similar models, torchvision), or the index of its id among the 80 ids of COCO (coco: remap_mscoco_category).
  Default: as in --framework. Without --labels and --framework, positions and ids are checked
--masks  for a COCO JSON: check the masks, too (with a config, they are checked if it uses masks)
--suffix END  read only label maps whose names end with END
"""
_WORKERS = """\
--processes N  number of processes; default: one per core
--dask HOST:PORT  read label maps, YOLO and nnU-Net in the workers of this dask scheduler, which must find the files at
  the same paths; needs mmguard[dask]
"""
_OUTPUT = """\
--json FILE  write everything as JSON (-: to standard output)
--html FILE  write one self-contained page with pictures of the worst files
"""


def add_split(parser: Any) -> None:
    splits = dict(dest='splits', nargs='+', choices=_SPLITS, default=list(_SPLITS))
    add_arguments(parser, '--split  the splits to read; default: all three', split=splits)


def add_valid(group: Any) -> None:
    """Add the options that define the valid labels."""
    mapped = dict(type=label_map, default={})
    add_arguments(group, _VALID, num_classes=positive, ignore_index=label, label_map=mapped)


def add_labels(group: Any) -> None:
    """Add the options that describe the labels."""
    add_valid(group)
    add_arguments(group, _LABELS, classes=class_names)


def add_reading(group: Any) -> None:
    """Add the options that control how labels are read."""
    add_arguments(group, _READING, framework=list(FRAMEWORKS), labels=NUMBERINGS)


def build_options(args: argparse.Namespace) -> ScanOptions:
    """Build the options of a scan from a parsed command line."""
    from mmguard.formats.options import ScanOptions, as_pairs

    given: Dict[str, Any] = {option.name: getattr(args, option.name, option.default) for option in fields(ScanOptions)}
    given.update(label_map=as_pairs(args.label_map), splits=tuple(args.splits))
    return ScanOptions(**given)


def add_to(commands: Any) -> None:
    parser = commands.add_parser(
        'scan',
        help='read all labels before training: find invalid labels, their files and causes, and say what to write',
        description='Reads every label of a data set, finds labels that are invalid in training, and names the '
        'likely cause. TARGET is a config of mmseg or mmdet, a folder of label maps, a COCO or LVIS JSON, a VOC '
        'folder, a data.yaml or folder of YOLO, folders of classes, or a raw data set of nnU-Net '
        '(dataset.json). A config in Python is executed. The parts of a config that an edit changes are built '
        'and called before and after the edit, in a process without network, for at most 20 s. Exit code: 0 clean, 1 '
        'findings, 2 could not run, or nothing could be read.',
    )
    parser.add_argument('target', metavar='TARGET')
    add_split(parser)
    labels = parser.add_argument_group('options in place of a config')
    add_labels(labels)
    add_reading(labels)
    add_arguments(labels, RUN_CODE + NO_VERIFY)
    where = parser.add_argument_group('how the scan runs')
    add_arguments(where.add_mutually_exclusive_group(), _WORKERS, processes=processes)
    out = parser.add_argument_group('output')
    add_arguments(out, _OUTPUT)
    add_selection(out)
    add_arguments(out, VERBOSE)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    from mmguard.commands.outputs import write_json, write_output
    from mmguard.commands.spinner import Spinner

    with ExitStack() as stack:
        spinner = stack.enter_context(Spinner('scan', args.target))
        from mmguard.commands.console import Console
        from mmguard.commands.scan.output import ScanProgress, as_json, as_page, name_from_here, show, show_failed
        from mmguard.findings.messages import apply_hint, fix_hint
        from mmguard.scanning.executors import connect_dask, scan_in_processes
        from mmguard.scanning.plans import plan_target
        from mmguard.scanning.run import run_plan, verify_results

        if args.html:
            import mmguard.commands.page.html  # noqa: F401  fail before hours of reading if a dependency is missing
        options = build_options(args)
        selection = read_selection(args)
        stack.enter_context(redirect_stdout(sys.stderr))  # frameworks print; standard output may be for JSON
        plan = plan_target(args.target, options)
        progress = ScanProgress(spinner)
        local = nullcontext(partial(scan_in_processes, processes=args.processes))
        with collect_failures() as failures, local if args.dask is None else connect_dask(args.dask) as mapper:
            results = run_plan(plan, mapper, progress.start, progress.advance)
        plan.failed += selection.choose_failures(failures)
        for result in results:
            result.findings, result.hidden, notes = selection.split(result.findings)
            result.notes += [f'{note}: {", ".join(dict.fromkeys(one.code for one in result.hidden))}' for note in notes]
        spinner.text = f'{args.target}: edits'
        verify_results(results, plan, not args.no_verify)
    entries = [
        entry for one in results for entry in selection.build_entries(args.target, one.findings, one.hidden, one.roots)
    ]
    name_from_here(results)
    console = Console(stderr=not selection.for_people, soft_wrap=True)
    if args.json:
        write_json(args.json, as_json(args.target, results, plan.failed))
    if args.html:
        write_output(args.html, as_page(args.target, results).encode('utf-8'))
    for result in results:
        show(console, result, args.verbose)
    findings = [finding for result in results for finding in result.findings]
    words = options.build_arguments()
    for hint in (apply_hint(args.target, findings, ['--scan', *words]), fix_hint(args.target, findings, words)):
        if hint:
            console.print(f'\n{hint}')
    if args.html:
        console.print('\n' + translate('page: {file}', file=args.html))
    show_failed(console, plan.failed)
    selection.write('scan', args.target, entries, plan.failed)
    if plan.failed:
        return COULD_NOT_RUN
    return selection.choose_exit_code([finding.severity for finding in findings])
