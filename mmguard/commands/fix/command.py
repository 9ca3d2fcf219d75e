"""Command ``mmguard fix``, which writes corrected copies of label files and prints the changes."""

from __future__ import annotations

import argparse
import ast
import os
import sys
from contextlib import redirect_stdout
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Dict, Sequence

from mmguard.commands import CLEAN, FOUND
from mmguard.commands.arguments import add_arguments, class_names, label
from mmguard.commands.scan.command import add_reading, add_split, add_valid, build_options
from mmguard.files.regular import read_regular
from mmguard.text import quantity, visible_name

if TYPE_CHECKING:
    from mmguard.commands.fix.copies import Copies
    from mmguard.formats.options import Color

#: Maximum number of files named per kind.
_SHOWN = 10

_PLACES = '-o, --out DIR  a new folder, outside of TARGET'
_OPTIONS = """\
--on-invalid  for pixels: set invalid values to the ignored label, or clip them to the classes (default: %(default)s)
--classes cat,dog  allowed names of VOC objects, or a file with one name per line. For COCO, the categories of the
  corrected file, in this order: annotations of other classes are dropped, and missing categories are added
--rename Cat:cat  rename categories: old name:new name, ...
--renumber N  for a COCO JSON: give its categories, in their order, the ids N, N + 1, ...
--boxes  convert the boxes in TARGET from this format: in COCO, from corners (x1, y1, x2, y2) or fractions of the image;
  in VOC, from fractions. COCO boxes that are sizes (x, y, width, height) and VOC boxes that are corners are not changed
--keep-boxes  for a COCO JSON: do not clamp boxes, and do not drop objects because of their boxes
--scale F  multiply the values of label maps by F, such as 255 if they were divided by 255
--no-crowds  turn crowds (VOC: difficult objects) into ordinary objects
--images FOLDER  for a COCO JSON: write file names of images as they are in FOLDER, and leave out images missing there
--drop-empty  for a COCO JSON: leave out images without an object
--colors TABLE  for label maps that are stored as colors: the label of each color, "{(128, 0, 0): 1, ...}", or a .json
  file of {"128,0,0": 1, ...}
"""
_THRESHOLD = '--threshold V  for label maps of two classes: values above V become 1, the others 0'
_EDIT = """\
--edit, --edits N  write edit [N] of the scan, or all edits that need no answer (N = safe); can be repeated. Several
  label files or folders are copied to DIR/1, DIR/2. A TARGET that is a config in Python is executed
"""


def add_to(commands: Any) -> None:
    parser = commands.add_parser(
        'fix',
        help='write corrected copies of label files, and a manifest of the changes',
        description='Writes corrected copies of TARGET to DIR: a folder of label maps (to 8-bit index PNG), a COCO or '
        'LVIS JSON, a VOC folder (its .xml and ImageSets; images are hard-linked), or a folder or data.yaml of YOLO. '
        'Originals are never modified; label files that need no change are copied. Boxes are clamped to their image, '
        'and instances that training cannot use are dropped. DIR/mmguard.manifest (JSON) lists the changes. Exit code: '
        '0 all files are in DIR, 1 some files were left out or keep invalid labels, 2 could not run. With --edit, '
        'TARGET is scanned again, and only the chosen edits of label files that the scan offers are written.',
    )
    parser.add_argument('target', metavar='TARGET')
    add_arguments(parser, _PLACES, out=dict(type=Path, required=True))
    add_valid(parser)
    settings: Dict[str, Any] = dict(
        on_invalid=dict(choices=('ignore', 'clip'), default='ignore'),
        classes=class_names,
        rename=dict(type=_name_pairs, default={}),
        renumber=label,
        boxes=dict(choices=('corners', 'sizes', 'fractions'), default=''),
        scale=_factor,
        colors=dict(type=_parse_colors, default={}),
    )
    add_arguments(parser, _OPTIONS, **settings)
    parser.add_argument('--colours', dest='colors', type=_parse_colors, help=argparse.SUPPRESS)  # its name until 0.2
    add_arguments(parser, _THRESHOLD, threshold=float)
    edit = parser.add_argument_group(
        'edits that `mmguard scan TARGET` offers',
        'If --edit is given, the options --num-classes, --ignore-index, --label-map, --images and those below mean '
        'what they mean for `mmguard scan`. Repeat the options of the scan, so that edits have the same numbers.',
    )
    add_arguments(edit, _EDIT, edits=dict(action='append', default=[]))
    add_split(edit)
    add_reading(edit)
    parser.set_defaults(run=run, interrupted='mmguard fix: interrupted; the files in DIR are complete, run it again')


def _parse_colors(text: str) -> Dict[Color, int]:
    try:
        written = read_regular(text).decode() if text.endswith('.json') else text
        table: Dict[Color, int] = {}
        for color, value in ast.literal_eval(written).items():  # JSON has no tuples as keys: "128,0,0"
            red, green, blue = bytes(map(int, color.split(',') if isinstance(color, str) else color))
            table[red, green, blue] = int(value)
            if abs(int(value)) >> 31:
                raise ValueError(f'{value} is not a label')
        return table
    except (OSError, ValueError, TypeError, AttributeError, SyntaxError, RecursionError, MemoryError) as error:
        raise argparse.ArgumentTypeError(f'must be {{(R, G, B): label, ...}}, or a .json file: {error}') from error


def _factor(text: str) -> float:
    factor = float(text)
    if not 0 < factor < float('inf'):
        raise argparse.ArgumentTypeError(f'must be above 0, got {text}')
    return factor


def _name_pairs(text: str) -> Dict[str, str]:
    pairs = [pair.split(':') for pair in text.split(',')]
    if any(len(pair) != 2 or not pair[1].strip() for pair in pairs):
        raise argparse.ArgumentTypeError(f'must be pairs as in Cat:cat,Dog:dog, got {text!r}')
    return {old: new.strip() for old, new in pairs}  # a blank after a name may be the fault


def run(args: argparse.Namespace) -> int:
    from mmguard.commands.fix.copies import detect_correctable, write_copies
    from mmguard.commands.fix.edits import ChosenEdits, check_boxes, choose, scan, scan_again
    from mmguard.commands.spinner import Spinner
    from mmguard.formats.files import check_local
    from mmguard.formats.options import FixOptions

    check_local(args.target)
    target = args.target = str(Path(args.target))
    with Spinner('fix', target):
        if args.edit:
            with redirect_stdout(sys.stderr):  # frameworks print
                offered = scan(target, build_options(args))
            chosen = choose(offered, args.edit)
        else:
            given = {option.name: getattr(args, option.name) for option in fields(FixOptions)}
            options = FixOptions(**{name: value for name, value in given.items() if value is not None})
            found = detect_correctable(target, options.suffix)
            chosen = ChosenEdits({target: options}, {target: found}, [], '', False)
        places = {
            path: args.out / str(n) if len(chosen.files) > 1 else args.out for n, path in enumerate(chosen.files, 1)
        }
        for path, options in chosen.files.items():
            check_boxes(path, chosen.formats[path], options)
        written = {
            path: write_copies(path, places[path], options, chosen.formats[path])
            for path, options in chosen.files.items()
        }
    for path, copies in written.items():
        _show(places[path], copies)
    for line in chosen.excluded:
        print(line)
    code = _choose_exit_code(list(written.values()))
    if not args.edit or any(copies.left_out for copies in written.values()):
        return code
    places = {path: place / os.path.basename(path) if os.path.isfile(path) else place for path, place in places.items()}
    with Spinner('fix', target), redirect_stdout(sys.stderr):
        again = scan_again(offered.plan, places, written, chosen.guesses)
    if again:
        print(again)
    is_config = offered.plan.tree is not None
    print('train with the copies in place of the originals' + (', or name them in the config:' if is_config else ''))
    for path, place in places.items() if is_config else ():
        print(f'  {visible_name(path)} -> {visible_name(str(place))}')
    if is_config and chosen.config:
        print(f'also change the config: `{chosen.config}`')
    return code


def _choose_exit_code(copies: Sequence[Copies]) -> int:
    """Return the exit code, or raise the first unexpected failure."""
    for failure in (failure for copies in copies for failure in copies.failures):
        raise failure
    return FOUND if any(copies.left_out or copies.invalid for copies in copies) else CLEAN


def _show(out: Path, copies: Copies) -> None:
    """Print the number of copies in ``out``, and the first ``_SHOWN`` of the changed, left-out and invalid files."""
    from mmguard.formats.format import MANIFEST

    def list_first(lines: Sequence[str]) -> None:
        for line in lines[:_SHOWN]:
            print(f'  {visible_name(line)}')
        if len(lines) > _SHOWN:
            print(f'  and {len(lines) - _SHOWN:,} more, see {visible_name(str(out / MANIFEST))}')

    changed = [f'{one["file"]}: {"; ".join(one["changes"])}' for one in copies.done if one['changes']]
    left_out = [f'{one["file"]}: {one["reason"]}' for one in copies.left_out]
    files, unchanged = quantity(len(copies.done), 'file'), len(copies.done) - len(changed)
    print(f'{files} in {visible_name(str(out))}: {len(changed):,} corrected, {unchanged:,} copied unchanged')
    if copies.linked:
        print(f'{quantity(copies.linked, "image")} linked instead of copied, to save disk space')
    list_first(changed)
    if left_out:
        print(f'{len(left_out):,} left out:')
        list_first(left_out[:_SHOWN])
    invalid = copies.invalid
    if invalid:
        number = sum(sum(record['invalid'].values()) for record in invalid)
        where = f'{quantity(number, "label")} in {quantity(len(invalid), "file")}'
        print(f'{where} stay invalid (`mmguard scan TARGET` says what to do):')
        list_first([f'{one["written"]}: {", ".join(one["invalid"])}' for one in invalid])
    if not changed and not left_out and not invalid:
        print('nothing to change')
