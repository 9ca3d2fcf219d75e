"""Reader of dataset.json that finds faults by the rules of nnU-Net's LabelManager and integrity check.

Sources: utilities/label_handling/label_handling.py and experiment_planning/verify_dataset_integrity.py of nnunetv2.
"""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from dataclasses import dataclass, field
from typing import Any, Dict, List, Mapping, Optional, Tuple

from mmguard.files.plain_data import is_nested
from mmguard.files.regular import read_regular
from mmguard.formats.files import list_names
from mmguard.text import plural, quantity, shorten

#: Kinds of faults of dataset.json; ``VolumeFacts.declared`` contains their texts.
KEYS, LABELS, REGIONS, COUNT = 'keys', 'labels', 'regions', 'count'

#: Layouts of a data set; the Decathlon's variant of v1 keeps all channels of a case in one file.
V1, V2, MSD = 'v1', 'v2', 'msd'

_REQUIRED = {
    V2: ('labels', 'channel_names', 'numTraining', 'file_ending'),
    V1: ('labels', 'modality', 'numTraining'),
}
#: Maximum nesting of lists and objects; files of nnU-Net have two levels.
_DEEPEST = 20


@dataclass
class DatasetSpec:
    """Declarations of a dataset.json, as far as they are valid."""

    content: Dict[str, Any] = field(default_factory=dict)  #: Whole content of dataset.json.
    expected: Tuple[int, ...] = ()  #: Valid values including the ignored one; empty if no labels are declared.
    ignore: Optional[int] = None  #: Value of the ignore label.
    names: Dict[int, str] = field(default_factory=dict)  #: Value -> its class, or all regions that contain it.
    channels: Optional[int] = None  #: Number of channels.
    file_ending: str = ''  #: Ending of the files, e.g. ``'.nii.gz'``.
    reader: Optional[str] = None  #: Value of ``overwrite_image_reader_writer``.
    faults: Dict[str, List[str]] = field(default_factory=dict)  #: Kind -> descriptions of faults.
    layout: str = V2  #: ``'v2'``, ``'v1'`` or ``'msd'`` (Decathlon), which names images without channel.

    def add(self, kind: str, fault: str) -> None:
        self.faults.setdefault(kind, []).append(fault)


def read_spec(path: str) -> DatasetSpec:
    """Read a dataset.json; ``faults`` of the result lists what is wrong in the file."""
    spec = DatasetSpec()
    twice: List[str] = []

    def keep(pairs: List[Tuple[str, Any]]) -> Dict[str, Any]:
        seen = Counter(key for key, _ in pairs)
        twice.extend(sorted(key for key, times in seen.items() if times > 1))
        return dict(pairs)

    try:
        content = json.loads(read_regular(path).decode('utf-8-sig'), object_pairs_hook=keep)
        if is_nested(content, _DEEPEST):
            raise ValueError(f'nested more than {_DEEPEST} levels deep')
    except (OSError, ValueError, RecursionError) as error:
        spec.add(KEYS, f'it cannot be read: {_describe_error(error)}')
        return spec
    if not isinstance(content, dict):
        spec.add(KEYS, f'it holds a {type(content).__name__}, not an object {{...}}')
        return spec
    spec = build_spec(content, os.path.dirname(path))
    for name in twice:
        spec.add(KEYS, f'the name "{name}" occurs twice: the first entry is never read')
    return spec


def build_spec(content: Dict[str, Any], root: str) -> DatasetSpec:
    """Return the declarations in a dataset.json, which always counts as v2 if ``root`` is named ``DatasetXXX_NAME``."""
    is_for_v2 = _DATASET_V2.match(os.path.basename(os.path.abspath(root)))
    spec = DatasetSpec(content, layout=V1 if is_written_for_v1(content) and not is_for_v2 else V2)
    _read_keys(spec)
    _read_labels(spec)
    return spec


def is_written_for_v1(content: Mapping[str, Any]) -> bool:
    """Return True if the content of a dataset.json is written for nnU-Net v1."""
    return 'modality' in content and not {'channel_names', 'file_ending'} & set(content)


def _describe_error(error: Exception) -> str:
    if isinstance(error, OSError):
        return (error.strerror or str(error)).lower()
    return f'{type(error).__name__}: {error}'


def _read_keys(spec: DatasetSpec) -> None:
    content = spec.content
    missing = [key for key in _REQUIRED[spec.layout] if key not in content]
    if missing:
        first = ' (found "modality", as in nnU-Net v1)' if 'channel_names' in missing and 'modality' in content else ''
        spec.add(KEYS, f'{", ".join(missing)} {plural(len(missing), "is", "are")} missing{first}')
    channels = content.get('channel_names', content.get('modality'))
    if isinstance(channels, Mapping) and channels:
        spec.channels = len(channels)
        wanted = [str(number) for number in range(len(channels))]
        if sorted(channels) != sorted(wanted):
            spec.add(KEYS, f'channel_names must map {", ".join(wanted)} to names, got {shorten(channels)}')
        elif not all(isinstance(name, str) for name in channels.values()):
            spec.add(KEYS, f'channel_names must map numbers to names, got {shorten(channels)}')
    elif 'channel_names' in content:
        spec.add(KEYS, f'channel_names must be an object such as {{"0": "CT"}}, got {shorten(channels)}')
    ending = content.get('file_ending') if spec.layout == V2 and not is_written_for_v1(content) else '.nii.gz'
    if isinstance(ending, str) and ending:
        spec.file_ending = ending
        if not ending.startswith('.'):
            spec.add(KEYS, f'file_ending must begin with a dot, got "{ending}"')
    elif 'file_ending' in content:
        spec.add(KEYS, f'file_ending must be a string such as ".nii.gz", got {shorten(ending)}')
    reader = content.get('overwrite_image_reader_writer')
    if isinstance(reader, str) and reader != 'None':
        spec.reader = reader


def judge_count(spec: DatasetSpec, num_cases: int) -> None:
    """Add a fault to ``spec`` if numTraining differs from the number of cases that nnU-Net finds."""
    said = spec.content.get('numTraining')
    if said is None:
        return
    if isinstance(said, bool) or not isinstance(said, int):
        spec.add(
            COUNT,
            f'numTraining must be an int, got {shorten(said)}; {quantity(num_cases, "case was", "cases were")} found',
        )
    elif said != num_cases:
        spec.add(COUNT, f'numTraining is {said:,}, but {quantity(num_cases, "case was", "cases were")} found')


def _read_labels(spec: DatasetSpec) -> None:
    labels = spec.content.get('labels')
    if labels is None:
        return
    if not isinstance(labels, Mapping) or not labels:
        example = '{"background": 0, "liver": 1}' if spec.layout == V2 else '{"0": "background", "1": "liver"}'
        spec.add(LABELS, f'labels must be an object such as {example}, got {shorten(labels)}')
        return
    if all(_as_int(name) is not None for name in labels) and all(isinstance(v, str) for v in labels.values()):
        if spec.layout == V2:
            spec.add(
                LABELS,
                'labels maps values to names, {"0": "background"}, as in nnU-Net v1; v2 expects {"background": 0}',
            )
        labels = _swap_names(labels)
    declared: Dict[str, Tuple[int, ...]] = {}
    for name, value in labels.items():
        members = value if isinstance(value, list) else [value]
        numbers = [_as_int(member) for member in members]
        if None in numbers or not numbers:
            spec.add(LABELS, f'the label of "{name}" is {shorten(value)}, not an integer')
            continue
        if not all(isinstance(member, int) and not isinstance(member, bool) for member in members):
            spec.add(LABELS, f'the label of "{name}" is {shorten(value)}: write the integer {numbers[0]}')
        if name == 'ignore' and isinstance(value, list):
            spec.add(LABELS, f'the ignore label must be one integer, got {shorten(value)}')
        if name == 'background' and value == [0]:
            spec.add(LABELS, 'background must be 0, not a list, got [0]')
        declared[name] = tuple(number for number in numbers if number is not None)
    _judge_values(spec, declared)
    _judge_regions(spec, labels, declared)


def _swap_names(labels: Mapping[Any, str]) -> Dict[str, Optional[int]]:
    """Convert labels from {value: name} to {name: value}, and append the value to a name that occurs again."""
    names: Dict[str, Optional[int]] = {}
    for value, name in labels.items():
        names[f'{name} ({value})' if name in names else name] = _as_int(value)
    return names


def _judge_values(spec: DatasetSpec, declared: Mapping[str, Tuple[int, ...]]) -> None:
    classes = sorted({value for name, values in declared.items() if name != 'ignore' for value in values})
    if 'background' not in declared and not (spec.layout == V1 and (0,) in declared.values()):
        classes = sorted({0, *classes})  # its absence is reported below, so 0 must not count as a gap, too
        called = [name for name, values in declared.items() if values == (0,)]
        spec.add(LABELS, '"background": 0 is missing' + (f'; 0 is called "{called[0]}"' if called else ''))
    elif declared.get('background', (0,)) != (0,):
        spec.add(LABELS, f'background must be 0, got {shorten(list(declared["background"]))}')
    if classes and classes != list(range(len(classes))):
        listed = ', '.join(map(str, classes[:12])) + (', ...' if len(classes) > 12 else '')
        spec.add(LABELS, f'labels must be 0, 1, 2, ... without a gap, got {listed}')
    ignored = declared.get('ignore', ())
    if ignored:
        spec.ignore = ignored[0]
        highest = max(classes, default=-1)
        if spec.ignore != highest + 1:
            spec.add(LABELS, f'the ignore label must be the highest label + 1 = {highest + 1}, got {spec.ignore}')
    by_value: Dict[int, List[str]] = {}
    for name, values in declared.items():
        for value in values:
            by_value.setdefault(value, []).append(name)
    spec.expected = tuple(sorted(by_value))
    spec.names = {value: ', '.join(names) for value, names in sorted(by_value.items())}
    if not any(len(values) > 1 for values in declared.values()):
        for value, names in sorted(by_value.items()):
            if len(names) > 1:
                spec.add(LABELS, f'label {value} has {len(names)} names: {", ".join(names)}')


def _judge_regions(spec: DatasetSpec, labels: Mapping[str, Any], declared: Mapping[str, Tuple[int, ...]]) -> None:
    regions = {name: set(values) for name, values in declared.items() if name != 'ignore' and set(values) != {0}}
    if not any(isinstance(labels.get(name), list) and len(labels[name]) > 1 for name in regions):
        return
    order = spec.content.get('regions_class_order')
    if order is None:
        spec.add(REGIONS, 'labels declare regions, but regions_class_order is missing')
        return
    if not isinstance(order, list) or any(isinstance(v, bool) or not isinstance(v, int) for v in order):
        spec.add(REGIONS, f'regions_class_order must be a list of integers, got {shorten(order)}')
        return
    if len(order) != len(regions):
        spec.add(
            REGIONS,
            f'regions_class_order has {quantity(len(order), "entry")}, but labels declare '
            f'{quantity(len(regions), "region")}',
        )
    for number, (name, values) in zip(order, regions.items()):
        if number not in values:
            listed = sorted(values)
            spec.add(REGIONS, f'regions_class_order has {number} for the region "{name}", whose labels are {listed}')


def _as_int(value: Any) -> Optional[int]:
    """Return ``int(value)``, which nnU-Net uses, or ``None`` if the conversion fails or truncates."""
    try:
        number = int(value)
        return number if isinstance(value, str) or number == value else None
    except (TypeError, ValueError, OverflowError):
        return None


def is_raw_dataset(folder: str) -> bool:
    """Return True if a folder has a dataset.json that has keys of nnU-Net or is next to imagesTr or labelsTr."""
    path = os.path.join(folder, 'dataset.json')
    if not os.path.isfile(path):
        return False
    if any(os.path.isdir(os.path.join(folder, name)) for name in ('imagesTr', 'labelsTr')):
        return True
    return bool(set(read_spec(path).content) & {'channel_names', 'numTraining', 'regions_class_order'})


_DATASET = re.compile(r'(?:Dataset\d{3}|Task\d{2,3})_.+')
_DATASET_V2 = re.compile(r'Dataset\d{3}_')
_LOOKED_AT = 5000


def find_raw_datasets(target: str) -> List[str]:
    """Return the data set folders of a target (a data set folder, its dataset.json, or a folder like nnUNet_raw)."""
    if os.path.basename(target) == 'dataset.json':
        target = os.path.dirname(target) or '.'
    if not os.path.isdir(target):
        return []
    if is_raw_dataset(target):
        return [target]
    # A folder of label maps may have a million files.
    names = filter(_DATASET.fullmatch, list_names(target, _LOOKED_AT))
    return [folder for folder in (os.path.join(target, name) for name in names) if is_raw_dataset(folder)]
