"""Edits that write corrected copies of label files with `mmguard fix`, or map their values with a ``label_map``."""

from __future__ import annotations

import os
import shlex
from dataclasses import replace
from typing import Any, Dict, Iterator, List, Mapping, Optional, Sequence, Set, Tuple

from mmguard.config.changes import Changes
from mmguard.config.parts import find_datasets
from mmguard.config.read import ReadConfig
from mmguard.facts.labels import LabelFacts
from mmguard.facts.yolo import DECLARED
from mmguard.findings.config_edits import (
    combine_pair,
    map_labels,
    reduce_zero_label,
    set_classes,
    set_ignore_index,
    set_num_classes,
)
from mmguard.findings.edits import Edit
from mmguard.findings.rule import Facts, Rule
from mmguard.findings.views import VOID, count_stored, get_annotations, has_num_classes, join_items
from mmguard.labels.instances import BOX_REASONS
from mmguard.language import Message, as_message, join

#: Option that keeps faulty boxes, which other findings correct, and the options of edits that may set it.
KEEP_BOXES, _OF_CATEGORIES = 'keep_boxes', {'renumber', 'rename', 'classes', 'label_map'}


def rewrite(rule: Rule, facts: Facts, title: str, question: str = '', **options: Any) -> Iterator[Edit]:
    """Yield an edit that runs `mmguard fix` on the annotation files of all splits in which a rule has findings.

    Args:
        title (str): Title of the edit, e.g. 'Leave these boxes out.'
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
    listed = {tuple(get_annotations(labels).categories.values()) for labels in showing}
    listed |= {tuple(names) for labels in showing for names in labels.coco.names_beside.values()}
    if together and len(listed) > 1:
        return  # the files list the names in different orders
    files = list(dict.fromkeys(path for labels in showing for path in get_annotations(labels).sources))
    if not files:
        return
    if options and set(options) <= _OF_CATEGORIES and any(map(_has_faulty_boxes, showing)):
        options[KEEP_BOXES] = True
    commands = tuple(
        build_fix_command(path, 'fixed' if len(files) == 1 else f'fixed/{number}', options)
        for number, path in enumerate(files, 1)
    )
    notes = ['Then train with the copies instead of the originals.']
    if together and len(files) == 1:
        notes.append('Number the files of the other splits in the same way.')
    yield Edit(title, question, files=dict.fromkeys(files, options), commands=commands, notes=tuple(notes))


def _has_faulty_boxes(labels: LabelFacts) -> bool:
    """True if `mmguard fix` would drop objects of a file with categories because of their boxes."""
    return get_annotations(labels).names_from == 'categories' and any(map(labels.reasons.get, BOX_REASONS))


def drop_rows(rule: Rule, facts: Facts, question: str = '') -> Iterator[Edit]:
    """Yield an edit that removes rows with a nonexistent class from YOLO files, unless data.yaml has faults."""
    labels = facts.labels
    if labels is not None and labels.yolo is not None and not labels.yolo.counts.get(DECLARED):
        question = question or Message(
            'Can the objects of class {values} be dropped?', values=join_items(sorted(labels.values))
        )
        yield from rewrite(rule, facts, 'Leave these rows out.', question, num_classes=labels.num_classes)


def number_rows(rule: Rule, facts: Facts) -> Iterator[Edit]:
    """Yield an edit that renumbers the class ids in YOLO label files from 0, if there are as many ids as names."""
    labels = facts.labels
    ids = sorted(label for label, count in labels.histogram.items() if count) if labels is not None else []
    if labels is not None and labels.yolo is not None and 0 < len(ids) == labels.num_classes:
        question = Message('Are {ids} the classes, in the order of your class list?', ids=join_items(ids))
        table = {value: label for label, value in enumerate(ids) if value != label}
        yield from rewrite(rule, facts, 'Number the classes from 0.', question, label_map=table)


def subtract_one(rule: Rule, facts: Facts) -> Iterator[Edit]:
    """Yield an edit that subtracts one from every class id of YOLO label files."""
    labels = facts.labels
    if labels is not None and labels.yolo is not None:
        table = {label: label - 1 for label in sorted(labels.histogram) if label > 0}
        question = 'Is label 1 the first class in your list of names?'
        yield from rewrite(rule, facts, 'Subtract 1 from every class id.', question, label_map=table)


def build_fix_command(path: str, out: str, options: Mapping[str, Any]) -> str:
    """Return the command line of `mmguard fix` for a file or folder, quoted for a shell.

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


#: Option -> maximum number of table entries in a command; a longer table is written to a JSON file.
_IN_COMMANDS = {'label_map': 64, 'colors': 24}


def list_splits(facts: Facts) -> List[LabelFacts]:
    """Return the facts about labels of all splits that were read, the current split first."""
    return [split.labels for split in (facts, *facts.others) if split.labels is not None]


def list_stored_values(facts: Facts) -> Set[int]:
    """Return the values stored in the files of all splits."""
    return {value for labels in list_splits(facts) for value in count_stored(labels)}


def renumber(
    facts: Facts,
    table: Mapping[int, int],
    question: str = '',
    unlabelled: Sequence[int] = (),
) -> Iterator[Edit]:
    """Yield an edit that maps labels in all splits that were read, then an edit that maps only the current split.

    Args:
        table (dict[int, int]): Value -> label.
        unlabelled (list[int]): Current labels that are not classes if the question is answered "yes".
    """
    if facts.config is not None and facts.config.is_old:  # mmcv 1.x has no guards
        yield from convert_files(facts, 'Rewrite the files.', question, label_map=dict(table))
        return
    outside = facts
    if len(set(table.values())) > 1 and _find_ignored_class(facts) in table.values():
        outside = _ignore_void(facts)
    for splits in _choose_splits(facts):
        edit = map_labels(outside, table, question, splits, unlabelled)
        label_map = _map_of_files(outside, dict(edit.options['label_map']))
        edit = replace(edit, notes=_advise_without_openmmlab(outside, label_map))
        yield edit if outside is facts else _add_void(facts, edit)


def shift_down(facts: Facts, question: str = '', unlabelled: Sequence[int] = ()) -> Iterator[Edit]:
    """Yield edits that set ``reduce_zero_label=True`` in all splits that were read, then in the current split only."""
    for splits in _choose_splits(facts):
        edit = reduce_zero_label(facts, True, question, splits, unlabelled)
        if facts.config is None:
            table = {value: value - 1 for value in list_stored_values(facts) if 0 < value < 255}
            edit = replace(edit, notes=_advise_without_openmmlab(_ignore_void(facts), {0: VOID, **table}))
        yield edit if _find_ignored_class(facts) is None else _add_void(facts, edit)


def _add_void(facts: Facts, edit: Edit) -> Edit:
    """Return ``edit``, extended to set 255 as the ignored label."""
    return combine_pair(
        edit, set_ignore_index(facts, VOID), join(' ', (as_message(edit.title), Message('Ignore {void}.', void=VOID)))
    )


def _map_of_files(facts: Facts, label_map: Mapping[int, int]) -> Dict[int, int]:
    """Return a label map for values as stored; ``label_map`` is for the values after ``reduce_zero_label``."""
    if not facts.options.get('reduce_zero_label'):
        return dict(label_map)
    shifted_ids = {value: VOID if value in (0, VOID) else value - 1 for value in list_stored_values(facts)}
    return {value: label_map.get(label, label) for value, label in sorted(shifted_ids.items())}


def _find_ignored_class(facts: Facts) -> Optional[int]:
    """Return the ignored label if it is in the range of classes, where it would hide a class; else ``None``."""
    ignored = None if facts.labels is None else facts.labels.ignore_index
    return ignored if ignored is not None and facts.labels and 0 <= ignored < facts.labels.num_classes else None


def _ignore_void(facts: Facts) -> Facts:
    return facts if facts.labels is None else facts._replace(labels=replace(facts.labels, ignore_index=VOID))


def _choose_splits(facts: Facts) -> List[Tuple[str, ...]]:
    """Return the groups of splits to change: all splits that were read, then only the current split."""
    named = [tuple(labels.split.split(', ')) for labels in list_splits(facts)]
    if facts.config is None or ('',) in named:
        return [()]
    read = tuple(split for split in ('train', 'val', 'test') if any(split in names for names in named))
    return [read] if len(named) == 1 else [read, named[0]]


def _advise_without_openmmlab(facts: Facts, table: Mapping[int, int]) -> Tuple[str, ...]:
    """Return advice on how to map labels without OpenMMLab, or () if there is an OpenMMLab config."""
    folders = _list_folders(facts)
    if facts.config is not None or facts.labels is None or not folders:
        return ()
    if len(table) > _IN_COMMANDS['label_map']:
        if facts.options.get('reduce_zero_label'):
            return ()  # the displayed map applies after reduce_zero_label, so it does not fit the files
        size = max(VOID, *table) + 1
        return (
            Message(
                'Without OpenMMLab, turn label_map into a table: `table = np.arange({size})` and `for value, label in '
                'label_map.items(): table[value] = label`, then apply `label = table[label]`.',
                size=size,
            ),
        )
    options = {'label_map': table, **_build_suffix_option(facts.labels)}
    typed = _build_command(folders[0], facts.labels, facts.labels.num_classes, options)
    return (Message('Without OpenMMLab, rewrite the files: `{typed}`.', typed=typed),)


def propose_more_classes(facts: Facts, number: int, question: str, first: Sequence[str] = ()) -> Edit:
    """Return an edit that sets ``num_classes`` and the class list: ``first``, the known names, then placeholders."""
    edit = set_num_classes(facts, number, question)
    names = [] if facts.labels is None else facts.labels.class_names
    if facts.config is None or not names or len(names) >= number:
        return edit
    names = [*first, *names]
    listed = set_classes(facts, [*names, *(f'class {label}' for label in range(len(names), number))])
    return combine_pair(
        edit, listed, Message('Set num_classes={number} in every head and guard, and add class names.', number=number)
    )


def convert_files(facts: Facts, title: str, question: str = '', **options: Any) -> Iterator[Edit]:
    """Yield an edit that rewrites the label maps of all splits with `mmguard fix`, if their folders are known.

    Args:
        title (str): Title of the edit.
        options: Options of `mmguard fix`: ``label_map``, ``colors``, ``threshold``.
    """
    labels, folders = facts.labels, _list_folders(facts)
    if labels is None or not folders:
        return
    classes = labels.num_classes if has_num_classes(labels) else 1 + max(_list_labels(labels, options), default=1)
    options.update(_build_suffix_option(labels))
    written = dict(sorted({'num_classes': classes, 'ignore_index': _choose_void(labels), **options}.items()))
    commands = tuple(_build_command(folder, labels, classes, options) for folder in folders)
    if facts.config is None:
        notes: List[str] = ['Then train with the new folder, whose files are PNG.']
    else:
        where = 'ann_dir' if facts.config.is_old else 'data_prefix'
        notes = [Message('Then enter the new folder in {where}, or replace the originals by the copies.', where=where)]
    long = [name for name, most in _IN_COMMANDS.items() if len(options.get(name, ())) > most]
    if long:
        notes.append(
            Message(
                'Copy the whole table of this edit from the output of `mmguard scan --json` to {name}.json.',
                name=long[0],
            )
        )
    endings, files = _find_suffix_changes(facts.config, folders), dict.fromkeys(folders, written)
    yield Edit(title, question, endings, files=files, commands=commands, notes=tuple(notes))


def _find_suffix_changes(config: Optional[ReadConfig], folders: Sequence[str]) -> Changes:
    """Return changes that set ``seg_map_suffix`` of data sets in ``folders`` to .png, since `fix` writes PNG files."""
    if config is None:
        return ()
    found = []
    for dataset in find_datasets(config):
        prefix, suffix = dataset.config.get('data_prefix'), dataset.get('seg_map_suffix', SUFFIX)
        place = prefix.get('seg_map_path') if isinstance(prefix, dict) else dataset.config.get('ann_dir')
        if not isinstance(place, str) or not isinstance(suffix, str):
            continue
        read = os.path.abspath(os.path.join(str(dataset.config.get('data_root') or ''), place))
        stem, ending = os.path.splitext(f'_{suffix}')  # '.jpg' alone would be the name of a hidden file
        if ending.lower() not in ('', SUFFIX) and any(
            f'{one}{os.sep}'.startswith(f'{read}{os.sep}') for one in folders
        ):
            found.append((dataset.place('seg_map_suffix'), f'{stem[1:]}{SUFFIX}'))
    return tuple(found)


def _build_suffix_option(labels: LabelFacts) -> Dict[str, str]:
    """Return ``{'suffix': ...}`` if the scan selected label maps by the end of their names, else {}."""
    return {'suffix': labels.maps.suffix} if labels.maps is not None and labels.maps.suffix else {}


def _choose_void(labels: LabelFacts) -> int:
    """Return the ignored label if an 8-bit file can store it, else 255."""
    ignored = labels.ignore_index
    return VOID if ignored is None or not 0 <= ignored <= VOID else ignored


def _list_labels(labels: LabelFacts, options: Mapping[str, Any]) -> List[int]:
    made = [*options.get('label_map', {}).values(), *options.get('colors', {}).values()]
    return [label for label in made or labels.histogram if label != VOID]


def _list_folders(facts: Facts) -> List[str]:
    found = [folder for labels in list_splits(facts) if labels.maps is not None for folder in labels.maps.sources]
    return list(dict.fromkeys(folder for folder in found if folder))


def _build_command(folder: str, labels: LabelFacts, classes: int, options: Mapping[str, Any]) -> str:
    """Return the `mmguard fix` command of a folder. A long table is replaced by the name of a JSON file."""
    said: Dict[str, Any] = {'num_classes': classes}
    if _choose_void(labels) != VOID:
        said['ignore_index'] = _choose_void(labels)
    for name, value in options.items():
        is_long = len(value) > _IN_COMMANDS[name] if name in _IN_COMMANDS else False
        said[name] = f'{name}.json' if is_long else dict(sorted(value.items())) if name == 'label_map' else value
    return build_fix_command(folder, f'{folder}_fixed', said)


#: Default ``seg_map_suffix`` of mmseg's data sets.
SUFFIX = '.png'
