"""``mmguard fix``."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any, Dict

from mmguard.commands.arguments import positive


def add_to(commands: Any) -> None:
    parser = commands.add_parser(
        'fix',
        help='write mended copies of label files, with a manifest of what changed',
        description='Writes mended copies of TARGET to DIR: a folder of label maps (to 8-bit index PNG), '
        'a COCO or LVIS JSON, or a VOC folder (its .xml and ImageSets; images are hard-linked). Originals are never '
        'touched; label files that need no change are copied. Boxes are clamped into their image, instances that no '
        'training can use are dropped. DIR/manifest.json says what was changed. Exit code: 0 all files '
        ' are in DIR, 1 some were left out (they are named), 2 could not run.',
    )
    parser.add_argument('target', type=Path, metavar='TARGET')
    parser.add_argument('--out', type=Path, required=True, metavar='DIR', help='a new folder, outside of TARGET')
    parser.add_argument('--num-classes', type=positive, metavar='N', help='valid labels are 0..N-1')
    parser.add_argument('--ignore-index', type=int, default=255, metavar='V', help='default: %(default)s')
    parser.add_argument(
        '--label-map', type=_label_map, default={}, metavar='7:0,8:1', help='value in the file:class, applied first'
    )
    parser.add_argument(
        '--on-invalid',
        choices=('ignore', 'clip'),
        default='ignore',
        help='of pixels: set them to the ignored label, or clamp them into the classes (default: %(default)s)',
    )
    parser.add_argument('--classes', type=_names, metavar='cat,dog', help='names that VOC objects may have')
    parser.set_defaults(run=run, interrupted='mmguard fix: interrupted; what is in DIR is whole, run it again')


def _label_map(text: str) -> Dict[int, int]:
    try:
        return {int(raw): int(label) for raw, label in (pair.split(':') for pair in text.split(','))}
    except ValueError as error:
        raise argparse.ArgumentTypeError(f'must be pairs as in 7:0,8:1, got {text!r}') from error


def _names(text: str) -> Any:
    return tuple(name.strip() for name in text.split(',') if name.strip())


def run(args: argparse.Namespace) -> int:
    from mmguard.fix.command import fix
    from mmguard.fix.options import FixOptions

    options = FixOptions(args.num_classes, args.ignore_index, args.label_map, args.on_invalid, args.classes)
    return fix(args.target, args.out, options)
