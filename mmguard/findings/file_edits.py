"""Edits of label files by `mmguard fix`, tried on copies, including conversions of box formats."""

from __future__ import annotations

import shlex
from typing import Any, Iterator, List, Mapping

from mmguard.facts.labels import LabelFacts
from mmguard.facts.yolo import DECLARED
from mmguard.findings.edits import Edit
from mmguard.findings.rule import Facts, Rule
from mmguard.findings.views import compute_share, get_annotations, join_items
from mmguard.labels.instances import BOX_REASONS
from mmguard.language import Message, join

#: Option of edits that leave boxes to their own finding, and options of such edits.
KEEP_BOXES, _OF_CATEGORIES = 'keep_boxes', {'renumber', 'rename', 'classes', 'label_map'}


def rewrite(rule: Rule, facts: Facts, title: str, question: str = '', **options: Any) -> Iterator[Edit]:
    """Yield an edit that runs `mmguard fix` on the annotation files in which a rule finds something, in all splits.

    Args:
        title (str): Title of the edit: 'Leave these boxes out.'
        options: Options of the command, named as in ``FixOptions``.
    """
    if facts.options.get('suffix'):
        options['suffix'] = facts.options['suffix']
    together = 'renumber' in options  # ids mean the same in all splits
    showing = [
        split.labels
        for split in (facts, *facts.others, *(facts.siblings if together else ()))
        if split.labels is not None and (together or any(True for _ in rule.find(split)))
    ]
    if together and len({tuple(get_annotations(labels).categories.values()) for labels in showing}) > 1:
        return  # the places of the names differ
    files = list(dict.fromkeys(path for labels in showing for path in get_annotations(labels).sources))
    if not files:
        return
    if options and set(options) <= _OF_CATEGORIES and any(map(_has_faulty_boxes, showing)):
        options[KEEP_BOXES] = True
    written = tuple((name, freeze(value)) for name, value in options.items())
    commands = tuple(
        build_fix_command(path, 'fixed' if len(files) == 1 else f'fixed/{number}', options)
        for number, path in enumerate(files, 1)
    )
    changes = tuple((path, written) for path in files)
    notes = ['Then train with the copies instead of the originals.']
    if together and len(files) == 1:
        notes.append('Number the files of the other splits in the same way.')
    yield Edit(title, question, files=changes, commands=commands, notes=tuple(notes))


def _has_faulty_boxes(labels: LabelFacts) -> bool:
    """True if `mmguard fix` would drop objects of a file with categories because of their boxes."""
    return get_annotations(labels).names_from == 'categories' and any(map(labels.reasons.get, BOX_REASONS))


def drop_rows(rule: Rule, facts: Facts, question: str = '') -> Iterator[Edit]:
    """Yield an edit that leaves out the rows of a nonexistent class, unless a data.yaml contradicts."""
    labels = facts.labels
    if labels is not None and labels.yolo is not None and not labels.yolo.counts.get(DECLARED):
        question = question or Message(
            'Can the objects of class {values} be dropped?', values=join_items(sorted(labels.values))
        )
        yield from rewrite(rule, facts, 'Leave these rows out.', question, num_classes=labels.num_classes)


def number_rows(rule: Rule, facts: Facts) -> Iterator[Edit]:
    """Yield an edit that numbers the classes of YOLO label files from 0, if there are as many as names."""
    labels = facts.labels
    ids = sorted(label for label, count in labels.histogram.items() if count) if labels is not None else []
    if labels is not None and labels.yolo is not None and 0 < len(ids) == labels.num_classes:
        question = Message('Are {ids} the classes, in the order of the names?', ids=join_items(ids))
        table = {value: label for label, value in enumerate(ids) if value != label}
        yield from rewrite(rule, facts, 'Number the classes from 0.', question, label_map=table)


def subtract_one(rule: Rule, facts: Facts) -> Iterator[Edit]:
    """Yield an edit that subtracts one from every class id of YOLO label files."""
    labels = facts.labels
    if labels is not None and labels.yolo is not None:
        table = {label: label - 1 for label in sorted(labels.histogram) if label > 0}
        question = 'Is the first name that of label 1?'
        yield from rewrite(rule, facts, 'Subtract 1 from every class.', question, label_map=table)


def build_fix_command(path: str, out: str, options: Mapping[str, Any]) -> str:
    """Return a command of `mmguard fix`.

    Example:
        >>> build_fix_command('my set/train.json', 'fixed', {'label_map': {1: 0, 2: 1}, 'no_crowds': True})
        "mmguard fix 'my set/train.json' --out fixed --label-map 1:0,2:1 --no-crowds"
    """
    words = ['mmguard', 'fix', path, '--out', out]
    for name, value in options.items():
        flag, text = f'--{name.replace("_", "-")}', _as_word(value)
        # A value that begins with a dash must be joined with its option.
        words += [flag] if value is True else [f'{flag}={text}'] if text.startswith('-') else [flag, text]
    return ' '.join(map(shlex.quote, words))


def _as_word(value: Any) -> str:
    if isinstance(value, Mapping):
        has_colors = any(isinstance(key, tuple) for key in value)
        return str(dict(value)) if has_colors else ','.join(f'{old}:{new}' for old, new in value.items())
    return ','.join(map(str, value)) if isinstance(value, (list, tuple)) else str(value)


def freeze(value: Any) -> Any:
    """Return an option's value in the immutable form that edits hold."""
    if isinstance(value, Mapping):
        return tuple(value.items())
    return tuple(value) if isinstance(value, list) else value


#: Share of the boxes that are inside their images if read in the right format.
NEARLY_ALL_INSIDE = 0.98
#: Minimum share of boxes for a convention rather than slips, and minimum number of boxes.
MANY_FAULTY_BOXES, ENOUGH_BOXES = 0.2, 10

#: Formats that no edit converts, as the evidence names them.
_OTHER_FORMATS = {
    'rows': 'nearly all boxes fit their images when read as y1, x1, y2, x2 (TensorFlow)',
    'centres': 'nearly all boxes fit their images when read as center, width, height',
    'sizes': 'nearly all boxes fit their images when xmax and ymax are read as width and height',
    'swapped': 'nearly all boxes fit their images when width and height of the images are swapped',
    'turned': 'some boxes have a negative width or height',
    'off axis': 'boxes end outside in one direction only',
}


def find_fitting_formats(labels: LabelFacts) -> List[str]:
    """List the box formats in which nearly all boxes, and more than now, are inside their images."""
    # On square images both orders fit; then x first is assumed, as most tools write it.
    boxes = labels.boxes
    square = boxes.inside_as.get('rows', 0) <= boxes.inside_as.get('corners', 0)
    return [
        name
        for name, inside in sorted(boxes.inside_as.items(), key=lambda item: -item[1])
        if inside > boxes.inside_now
        and (name != 'sizes' or boxes.turned_boxes)
        and not (name == 'rows' and square)
        and compute_share(inside, get_annotations(labels).annotations) >= NEARLY_ALL_INSIDE
    ]


def are_many(boxes: int, labels: LabelFacts) -> bool:
    number = get_annotations(labels).annotations
    return number >= ENOUGH_BOXES and compute_share(boxes, number) >= MANY_FAULTY_BOXES


def describe_format(labels: LabelFacts) -> str:
    """Return the format that the boxes seem to have if no edit converts it; else nothing."""
    ways = [*find_fitting_formats(labels), *(['turned'] if labels.boxes.turned_boxes else [])]
    ways += ['off axis'] if labels.boxes.off_axis else []
    return join('; ', (Message(_OTHER_FORMATS[way]) for way in ways if way in _OTHER_FORMATS))


def propose_corrections(rule: Rule, facts: Facts, boxes: int, title: str) -> Iterator[Edit]:
    """Yield edits of boxes: another format if all of them fit it, else edits of single boxes.

    Args:
        boxes (int): Number of wrong boxes.
        title (str): Title of the edit of single boxes.
    """
    labels = facts.labels or LabelFacts()
    ways = find_fitting_formats(labels)
    if 'corners' in ways:
        question = 'Are all boxes x1, y1, x2, y2 (compare one with its image)?'
        yield from rewrite(rule, facts, 'Convert the boxes.', question, boxes='corners')
    if ways or labels.boxes.turned_boxes or labels.boxes.off_axis:
        return
    if not are_many(boxes, labels):
        yield from rewrite(rule, facts, title)
    elif boxes == labels.boxes.all_zero:
        question = 'Do the boxes 0, 0, 0, 0 mean that the image has no object?'
        yield from rewrite(rule, facts, title, question)
