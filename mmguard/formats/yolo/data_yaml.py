"""Reader of a data.yaml with class names and paths, or of a list of class names next to the labels."""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import dataclass, field
from typing import Any, Callable, Dict, List, Mapping, Optional, Tuple

from mmguard.files.containment import OutsideError, check_name
from mmguard.files.plain_data import NotPlain, parse_data
from mmguard.formats.files import FILES, list_names, read_head
from mmguard.formats.options import SPLITS
from mmguard.text import shorten

#: Lists of names, one per line, as written by darknet and labeling tools.
NAME_LISTS = ('classes.txt', 'obj.names', 'data.names', 'predefined_classes.txt', 'names.txt', 'labels.txt')
#: Maximum number of classes with names.
_MOST = 100_000
#: Maximum number of inspected names of a folder; in a larger folder, the data.yaml may not be found.
_LOOKED_AT = 5000
#: Maximum size of a list of names in bytes.
_LARGEST = 8 << 20
#: Keys of other programs' configs, which may have names too. ``_base_`` is ignored: a data.yaml inherits nothing.
_OTHERS = ('model', '__include__', 'DATASET', 'MODEL', '_BASE_', 'backbone')


@dataclass
class DataYaml:
    """Names, classes and paths that a data.yaml sets."""

    file: str = ''  #: The data.yaml, or the list of names; empty if there is neither.
    root: str = ''  #: Folder that the paths in the file are relative to.
    names: List[str] = field(default_factory=list)  #: Names by class id; empty if not given.
    num_classes: Optional[int] = None  #: ``nc``, or the number of names.
    kpt_shape: Optional[Tuple[int, int]] = None  #: Number of keypoints, and of values per keypoint.
    unswapped: int = 0  #: Number of keypoints if ``flip_idx`` swaps none of them, else 0.
    #: Split -> folders and lists of images, as written in the file.
    splits: Dict[str, List[str]] = field(default_factory=dict)
    faults: List[str] = field(default_factory=list)  #: Faults that stop ultralytics.
    #: Folder of label maps, which replaces the last ``images`` in paths; empty if labels are rows of text files.
    masks_dir: str = ''
    label_mapping: Dict[int, int] = field(default_factory=dict)  #: Value in a label map -> class or 255.


def is_data_yaml(path: str) -> bool:
    """Return True if a file is a data.yaml: it has class names (or their number) and paths of images."""
    return declares_names(path) and bool({*SPLITS, 'validation'} & set(_read_data(path)))


def declares_names(path: str) -> bool:
    """Return True if a YAML file sets class names or their number, as a data.yaml or a file next to labels does."""
    data = _read_data(path)
    if not isinstance(data, Mapping) or any(key in data for key in _OTHERS):
        return False
    return bool({'names', 'nc'} & set(data))


def find_data_yaml(folder: str, is_one: Callable[[str], bool] = is_data_yaml) -> str:
    """Return the path of the data.yaml of a folder, or '' if not found. A file named data.yaml is preferred."""
    some = list_names(folder, _LOOKED_AT)  # label maps may be a million files
    names = [name for name in some if name.lower().endswith(('.yaml', '.yml'))]
    paths = [os.path.join(folder, name) for name in sorted(names, key=lambda name: not name.startswith('data.'))]
    return next(filter(is_one, paths[:20]), '')


def _read_data(path: str, faults: Optional[Dict[str, str]] = None) -> Any:
    """Parse a YAML file. Return ``None`` if it cannot be read; if it is not plain data, add a reason to ``faults``."""
    if os.path.splitext(path)[1].lower() not in ('.yaml', '.yml'):
        return None
    try:
        with FILES.open(path) as file:
            data = file.read(_LARGEST + 1)
        if len(data) > _LARGEST:
            raise NotPlain(f'larger than {_LARGEST >> 20} MiB')
        return parse_data(data.decode(), '.yml')
    except (OSError, NotPlain, ValueError, RecursionError, MemoryError, ImportError) as error:
        if faults is not None and isinstance(error, NotPlain):
            faults[path] = f'it is {error}'
        return None


def read_data_yaml(path: str) -> DataYaml:
    """Read a data.yaml that :func:`is_data_yaml` accepts, without running or downloading anything."""
    data = dict(_read_data(path))
    if 'val' not in data and 'validation' in data:  # same as ultralytics
        data['val'] = data['validation']
    said = DataYaml(path, _find_root(data.get('path'), path))
    names, why = _read_names(data.get('names'))
    said.names = names
    said.faults += [why] if why else []
    count = data.get('nc')
    if count is not None and (not isinstance(count, int) or isinstance(count, bool) or not 0 < count <= _MOST):
        said.faults.append(f'nc is {shorten(count)}, which is not a number of classes')
        count = None
    if names and count is not None and count != len(names):
        said.faults.append(f'nc is {count}, but names has {len(names)} entries: ultralytics stops')
    said.num_classes = len(names) or count
    twice = sorted(name for name, times in Counter(names).items() if times > 1)[:5]
    said.faults += [f'several classes have the name {shorten(name)}' for name in twice]
    missing = [split for split in ('train', 'val') if not data.get(split)]
    said.faults += [f'it does not name {split}, which ultralytics requires' for split in missing]
    said.kpt_shape = _read_keypoints(data, said)
    if _is_path(data.get('masks_dir')):
        said.masks_dir = data['masks_dir']
        said.label_mapping = _read_label_mapping(data.get('label_mapping'), said)
    for split in SPLITS:
        paths = data.get(split)
        listed = paths if isinstance(paths, list) else [paths] if paths else []
        said.splits[split] = [one for one in listed if _is_path(one)]
        said.faults += [f'{split} holds {shorten(one)}, not a path' for one in listed if not _is_path(one)]
    return said


def _find_root(value: Any, path: str) -> str:
    """Return the folder that the paths in a data.yaml are relative to, given its ``path`` as ``value``.

    Ultralytics searches the working directory and its data set folder, mmguard the former and the file's folder.
    """
    beside = os.path.dirname(os.path.abspath(path))
    if not _is_path(value):
        return beside
    places = [value, os.path.join(beside, value), os.path.join(beside, os.path.basename(value.rstrip('/\\')))]
    return os.path.abspath(next(filter(os.path.isdir, places), beside))


def _is_path(value: Any) -> bool:
    if not isinstance(value, str) or not value:
        return False
    try:
        check_name(value)
    except OutsideError:
        return False
    return True


def _read_names(value: Any) -> Tuple[List[str], str]:
    """Return the class names in the order of their ids, and the fault of ``names`` in a data.yaml ('' if valid)."""
    if isinstance(value, list):
        return [str(name) for name in value[:_MOST]], ''
    if not isinstance(value, Mapping):
        return [], '' if value is None else f'names is {shorten(value)}, neither a list nor a dict'
    try:
        by_id = {int(key): str(name) for key, name in value.items()}
    except (TypeError, ValueError):
        return [], '`names` has a key that is not a number'
    if sorted(by_id) != list(range(len(by_id))):
        ids = ', '.join(map(str, sorted(by_id)[:8]))
        return [], f'the keys of names are {ids}: they must be 0 to {len(by_id) - 1}'
    return [by_id[number] for number in range(len(by_id))], ''


def _read_keypoints(data: Mapping[Any, Any], result: DataYaml) -> Optional[Tuple[int, int]]:
    shape, flips = data.get('kpt_shape'), data.get('flip_idx')
    if shape is None:
        result.faults += ['flip_idx has no effect without kpt_shape'] if flips else []
        return None
    whole = isinstance(shape, list) and len(shape) == 2 and all(type(number) is int for number in shape)
    if not whole or not 0 < shape[0] < _MOST or shape[1] not in (2, 3):
        result.faults.append(f'kpt_shape is {shorten(shape)}: expected [number of keypoints, 2 or 3]')
        return None
    if flips and (not isinstance(flips, list) or sorted(map(str, flips)) != sorted(map(str, range(shape[0])))):
        result.faults.append(f'flip_idx is {shorten(flips)}: it must hold 0 to {shape[0] - 1}, each once')
    elif flips and any(int(flips[int(other)]) != place for place, other in enumerate(flips)):
        result.faults.append(f'flip_idx is {shorten(flips)}: flipping an image twice does not restore its keypoints')
    result.unswapped = shape[0] * (flips == list(range(shape[0])))
    return shape[0], shape[1]


def _read_label_mapping(value: Any, result: DataYaml) -> Dict[int, int]:
    """Return ``label_mapping`` of a data.yaml as ultralytics reads it: ``ignore_label`` or no value becomes 255."""
    try:
        pairs = {} if value is None else dict(value)
        return {int(raw): 255 if label in ('ignore_label', None) else int(label) for raw, label in pairs.items()}
    except (TypeError, ValueError, OverflowError):
        result.faults.append(f'label_mapping is {shorten(value)}, not a dict of integers')
        return {}


def find_names(folder: str) -> DataYaml:
    """Read the class names of a folder of labels from a list of names or a data.yaml, in the folder or near it."""
    around = os.path.dirname(os.path.abspath(folder))
    for place, known in ((folder, NAME_LISTS), (os.path.join(folder, 'labels'), NAME_LISTS), (around, NAME_LISTS[:3])):
        for name in known:
            path = os.path.join(place, name)
            names = _name_list(path)
            if names:
                return DataYaml(path, folder, names, len(names))
    of_split = os.path.basename(around) == 'labels'
    for place in (folder, around, *([os.path.dirname(around)] if of_split else [])):
        file = find_data_yaml(place, declares_names)
        if file:  # only the names and keypoints: its paths belong to another data set
            said = read_data_yaml(file)
            return DataYaml(file, folder, said.names, said.num_classes, said.kpt_shape)
    return DataYaml(root=folder)


def find_unread(folder: str) -> Dict[str, str]:
    """Return {path: reason} for the lists of names and data.yaml files that cannot be read.

    Search a folder of labels, its subfolder ``labels`` and its parent. A FIFO, a socket or a device is never opened.
    """
    found: Dict[str, str] = {}
    for place in (folder, os.path.join(folder, 'labels'), os.path.dirname(os.path.abspath(folder))):
        for name in (*NAME_LISTS, 'data.yaml', 'data.yml'):
            path = os.path.join(place, name)
            if os.path.isfile(path):
                _read_data(path, found)
            elif os.path.exists(path) and not os.path.isdir(path):
                found[path] = 'it is not a regular file'
    return found


def _name_list(path: str) -> List[str]:
    try:
        lines = read_head(path, _LARGEST).decode('utf-8-sig').splitlines()
    except ValueError:
        return []
    while lines and not lines[-1].strip():
        lines.pop()
    return [line.strip() for line in lines[:_MOST]]
