"""The words of a command line that say what is to be scanned: the same of every command that scans."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from mmguard.labels.numbering import FRAMEWORKS, NUMBERINGS
from mmguard.tools.arguments import class_names, label, label_map, positive

if TYPE_CHECKING:
    from mmguard.tools.scan.settings import ScanOptions

_SPLITS = ('train', 'val', 'test')


def add_split(parser: Any) -> None:
    parser.add_argument(
        '--split',
        nargs='+',
        choices=_SPLITS,
        default=list(_SPLITS),
        help='the splits of a config to read; default: all three',
    )


def add_labels(group: Any) -> None:
    """What `mmguard fix` says of the labels that it writes, too."""
    group.add_argument('--num-classes', type=positive, metavar='N', help='valid labels are 0..N-1')
    group.add_argument('--ignore-index', type=label, metavar='V', help='the label that is not trained on; default: 255')
    group.add_argument(
        '--label-map',
        type=label_map,
        default={},
        metavar='7:0,8:1',
        help='value in the file:class, ...; *:255 for all other values',
    )
    group.add_argument(
        '--classes',
        type=class_names,
        metavar='cat,dog',
        help='for Labelme and VOC: the names of the classes, in their order, or a file with one name per line',
    )
    group.add_argument('--images', metavar='DIR', help='folder of the images, to compare names and sizes')


def add_reading(group: Any) -> None:
    """The rest."""
    group.add_argument(
        '--reduce-zero-label', action='store_true', help='as in mmseg: 0 is ignored, and 1 is the first class'
    )
    group.add_argument(
        '--framework',
        choices=list(FRAMEWORKS),
        metavar='NAME',
        help=f'for a COCO JSON: what trains on it: {", ".join(FRAMEWORKS)}',
    )
    group.add_argument(
        '--labels',
        choices=NUMBERINGS,
        help='for a COCO JSON: what a label is, the position of its category (mmdet, detectron2, YOLOX) or its id '
        '(DETR and similar models, torchvision); default: as --framework does. Without either, both are checked',
    )
    group.add_argument(
        '--masks',
        action='store_true',
        help='for a COCO JSON: check the masks, too (a config says whether it needs them)',
    )
    group.add_argument('--suffix', metavar='END', help='read only label maps whose names end with END')


def options_of(args: argparse.Namespace) -> ScanOptions:
    """What a command line says."""
    from mmguard.tools.scan.settings import ScanOptions, as_pairs
    from mmguard.tools.storage.urls import entered

    return ScanOptions(
        num_classes=args.num_classes,
        ignore_index=args.ignore_index,
        reduce_zero_label=args.reduce_zero_label,
        label_map=as_pairs(args.label_map),
        images=None if args.images is None else entered(args.images),
        suffix=args.suffix,
        splits=tuple(args.split),
        labels=args.labels,
        framework=args.framework,
        masks=args.masks,
        classes=args.classes,
        run_code=getattr(args, 'run_code', False),
    )
