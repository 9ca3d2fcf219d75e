"""``mmguard scan``."""

from __future__ import annotations

import argparse
from typing import Any

from mmguard.commands.arguments import positive

_SPLITS = ('train', 'val', 'test')


def add_to(commands: Any) -> None:
    parser = commands.add_parser(
        'scan',
        help='read all labels before training: what is wrong, in which files, why, and what to write',
        description='Reads every label of a data set, compares what is stored with what training will see, and names '
        'the likely cause. TARGET is a config of mmseg or mmdet, a folder of label maps, a COCO or LVIS JSON, a VOC '
        'folder, or a raw data set of nnU-Net (dataset.json). Exit code: 0 clean, 1 findings, 2 could not run.',
    )
    parser.add_argument('target', metavar='TARGET')
    parser.add_argument(
        '--split', nargs='+', choices=_SPLITS, default=list(_SPLITS), help='of a config, default: all three'
    )
    labels = parser.add_argument_group('what no config says')
    labels.add_argument('--num-classes', type=positive, metavar='N', help='valid labels are 0..N-1')
    labels.add_argument('--ignore-index', type=int, metavar='V', help='the label that is not trained on, default: 255')
    labels.add_argument('--label-map', type=_label_map, default=(), metavar='7:0,8:1', help='value in the file:class')
    labels.add_argument('--reduce-zero-label', action='store_true', help='0 is ignored, 1 is the first class')
    labels.add_argument('--images', metavar='DIR', help='folder of the images: pairs and sizes are compared')
    labels.add_argument('--suffix', metavar='END', help='read only label maps whose names end so')
    where = parser.add_argument_group('how it is run')
    where.add_argument('--resume', action='store_true', help='go on: files unchanged since the last scan are not read')
    where.add_argument('--journal', metavar='FILE', help='the records of the scan; default: in the user cache')
    where.add_argument('--processes', type=positive, metavar='N', help='default: one per core')
    where.add_argument('--dask', metavar='ADDRESS', help='run on a dask.distributed cluster, tcp://host:8786')
    out = parser.add_argument_group('output')
    out.add_argument('--json', metavar='FILE', help='write everything as JSON; -: standard output')
    out.add_argument('--html', metavar='FILE', help='write one self-contained page with pictures of the worst files')
    parser.set_defaults(
        run=run, interrupted='mmguard scan: interrupted; what was read is kept, the same command with --resume goes on'
    )


def _label_map(text: str) -> Any:
    from mmguard.scan.options import parse_label_map

    try:
        return parse_label_map(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def run(args: argparse.Namespace) -> int:
    from mmguard.scan.options import ScanOptions
    from mmguard.scan.story import scan_and_tell

    options = ScanOptions(
        num_classes=args.num_classes,
        ignore_index=args.ignore_index,
        reduce_zero_label=args.reduce_zero_label,
        label_map=args.label_map,
        images=args.images,
        suffix=args.suffix,
        splits=tuple(args.split),
    )
    return scan_and_tell(args, options)
