"""Reader of the cases of a raw data set: lists their files as nnU-Net does, and reads the files."""

from __future__ import annotations

import os
import re
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any, Dict, List, Mapping, NamedTuple, Set, Tuple

from mmguard.facts.volumes import CHANNELS, NO_IMAGE, NO_LABEL, STRANGER, CaseFault
from mmguard.files.containment import OutsideError, check_name
from mmguard.formats.faults import CRASHES, describe_fault
from mmguard.formats.volumes import CannotRead
from mmguard.formats.volumes.nifti import open_volume
from mmguard.formats.volumes.record import CaseRecord, FileRecord, count_labels, count_not_finite
from mmguard.nnunet.format.spec import KEYS, MSD, V1, DatasetSpec, is_written_for_v1

_CHANNEL = re.compile(r'(?P<case>.+)_(?P<channel>\d{4})')
#: Prefix of the files that macOS writes next to each file copied to a foreign file system (AppleDouble).
_APPLE_DOUBLE = '._'
_MACOS_NOTE = 'macOS created this file next to a copied file'


class CaseItem(NamedTuple):
    """Files of one case; the same worker process reads all of them."""

    path: str  #: Path of the label file of the case.
    case: str  #: Name of the case.
    images: Tuple[str, ...]  #: Existing image files of the case, in the order of the channels.
    has_label: bool = True  #: True if the label file exists.


@dataclass
class CaseListing:
    """Cases of a data set, with missing, unused and misnamed files as faults."""

    cases: List[CaseItem] = field(default_factory=list)  #: All cases, sorted by name, including those that lack a file.
    found: int = 0  #: Number of cases that nnU-Net counts.
    #: Kind and fault of missing and unused files.
    faults: List[Tuple[str, CaseFault]] = field(default_factory=list)

    def add_fault(self, kind: str, case: str, file: str, detail: str) -> None:
        self.faults.append((kind, CaseFault(case, file, detail)))


def list_cases(root: str, spec: DatasetSpec) -> CaseListing:
    """List the cases of a data set; add faults of its folders and of the key ``dataset`` to ``spec``."""
    if is_written_for_v1(spec.content) and _is_of_decathlon(root, spec):
        spec.layout = MSD
    named = spec.content.get('dataset') if spec.layout not in (V1, MSD) else None
    if isinstance(named, Mapping):
        return _list_in_json(root, named, spec)
    if named is not None:
        spec.add(KEYS, f'dataset must map cases to {{"images": [...], "label": ...}}, got a {type(named).__name__}')
    return _list_in_folders(root, spec)


def _is_of_decathlon(root: str, spec: DatasetSpec) -> bool:
    """Return True if the first image exists as named in dataset.json; in v1, the file's name ends with the channel."""
    listed = spec.content.get('training')
    first = listed[0] if isinstance(listed, list) and listed else None
    image = first.get('image') if isinstance(first, Mapping) else None
    try:
        return isinstance(image, str) and os.path.isfile(_make_absolute(root, image))
    except OutsideError:
        return False


def _list_in_json(root: str, entries: Mapping[str, Any], spec: DatasetSpec) -> CaseListing:
    listing = CaseListing(found=len(entries))
    for case in sorted(entries):
        entry = entries[case]
        images = entry.get('images') if isinstance(entry, Mapping) else None
        label = entry.get('label') if isinstance(entry, Mapping) else None
        if not isinstance(label, str) or not isinstance(images, list) or not all(isinstance(i, str) for i in images):
            spec.add(KEYS, f'dataset["{case}"] must be {{"images": [...], "label": ...}}')
            continue
        try:
            places = [_make_absolute(root, image) for image in images]
            item = CaseItem(_make_absolute(root, label), case, tuple(filter(os.path.isfile, places)))
        except OutsideError as error:
            spec.add(KEYS, f'dataset["{case}"]: {error}')
            continue
        for place in places:
            if not os.path.isfile(place):
                listing.add_fault(NO_IMAGE, case, _make_relative(root, place), 'listed, but missing')
        listing.cases.append(_check_label(root, item, listing))
    return listing


def _make_absolute(root: str, path: str) -> str:
    # An absolute path replaces everything before it.
    path = os.path.expandvars(path)  # same as nnU-Net
    check_name(path)
    return os.path.abspath(os.path.join(root, path))


def _make_relative(root: str, path: str) -> str:
    inside = path.startswith(root.rstrip(os.sep) + os.sep)
    return os.path.relpath(path, root) if inside else path


def _check_label(root: str, item: CaseItem, listing: CaseListing) -> CaseItem:
    if os.path.isfile(item.path):
        return item
    detail = 'the image has no label file' if item.images else 'listed, but missing'
    listing.add_fault(NO_LABEL, item.case, _make_relative(root, item.path), detail)
    return item._replace(has_label=False)


def _list_names(root: str, folder: str, spec: DatasetSpec, listing: CaseListing) -> List[str]:
    try:
        with os.scandir(os.path.join(root, folder)) as entries:
            listed = sorted((entry.name, entry.is_file(), entry.is_symlink()) for entry in entries)
    except OSError as error:
        spec.add(KEYS, f'the folder {folder} cannot be read: {(error.strerror or str(error)).lower()}')
        return []
    for name, is_file, is_link in listed:
        if is_link and not is_file and not os.path.isdir(os.path.join(root, folder, name)):
            listing.add_fault(STRANGER, name.split('.')[0], f'{folder}/{name}', 'the link is broken: fetch its target')
    return [name for name, is_file, _ in listed if is_file]


def _list_in_folders(root: str, spec: DatasetSpec) -> CaseListing:
    listing = CaseListing()
    images, labels = (_list_names(root, folder, spec, listing) for folder in ('imagesTr', 'labelsTr'))
    ending = spec.file_ending
    if not ending:
        return listing
    by_case: Dict[str, Dict[int, str]] = {}
    strangers: List[str] = []
    counted: Set[str] = set()
    for name in images:
        place, stem = f'imagesTr/{name}', name[: -len(ending)]
        if name.startswith(_APPLE_DOUBLE):
            if name.endswith(ending):
                listing.add_fault(CHANNELS, stem, place, f'{_MACOS_NOTE}: nnU-Net reads it as an image')
        elif not name.endswith(ending):
            strangers.append(place)
        elif spec.layout == MSD:
            counted.add(stem)
            by_case[stem] = {0: name}
        else:
            counted.add(stem[:-5])  # nnU-Net cuts off the length of _0000, whatever the characters are
            match = _CHANNEL.fullmatch(stem)
            if match is None:
                listing.add_fault(CHANNELS, stem, place, f'images are named CASE_0000{ending}')
            else:
                by_case.setdefault(match['case'], {})[int(match['channel'])] = name
    for case in sorted(by_case):
        channels = by_case[case]
        files = tuple(os.path.join(root, 'imagesTr', channels[number]) for number in sorted(channels))
        item = CaseItem(os.path.join(root, 'labelsTr', case + ending), case, files)
        listing.cases.append(_check_label(root, item, listing))
        if sorted(channels) != list(range(len(channels))) or (spec.channels or 0) > len(channels) > 1:
            for number in range(max(spec.channels or 0, max(channels) + 1)):
                if number not in channels:
                    file = f'imagesTr/{case}_{number:04d}{ending}'
                    listing.add_fault(CHANNELS, case, file, 'this channel is missing')
    for name in labels:
        case = name[: -len(ending)]
        if name.startswith(_APPLE_DOUBLE):
            continue  # nnU-Net opens only the labels of listed images
        if not name.endswith(ending):
            strangers.append(f'labelsTr/{name}')
        elif case not in by_case:
            detail = f'the label has no image: imagesTr/{case}_0000{ending} is missing'
            listing.add_fault(NO_IMAGE, case, f'labelsTr/{name}', detail)
            listing.cases.append(CaseItem(os.path.join(root, 'labelsTr', name), case, ()))
    listing.found = len(counted)
    for name in strangers:
        stem = os.path.basename(name)
        if not stem.startswith('.'):
            detail = f'does not end with file_ending "{ending}": nnU-Net ignores this file'
            listing.add_fault(STRANGER, stem.split('.')[0], name, detail)
    return listing


def read_case(item: CaseItem, reader: str, expected: Tuple[int, ...]) -> CaseRecord:
    """Read the label and the images of a case. Faults are stored in the record."""
    record = CaseRecord(item.path, item.case, reader)
    if item.has_label:
        record.label = _read(item.path, reader, True, expected)
    record.images = [_read(path, reader, False, expected) for path in item.images]
    return record


def _read(path: str, reader: str, is_label: bool, expected: Tuple[int, ...]) -> FileRecord:
    record = FileRecord(path)
    itemsize = 1
    try:
        with ExitStack() as stack:
            volume = open_volume(path, reader, stack)
            itemsize, record.geometry = volume.dtype.itemsize, volume.geometry
            record.dtype, record.shape = str(volume.dtype), list(volume.shape)
            record.dimension, record.form = volume.dimension, volume.form
            if volume.is_scaled:
                record.scaling = [volume.slope, volume.inter]
            if volume.dtype.kind not in 'iuf':
                volume.check()  # colors: reported as a form
            elif is_label:
                count_labels(volume, record, expected)
            else:
                count_not_finite(volume, record)
            if volume.refusal is not None:
                raise volume.refusal
    except CannotRead as error:
        record.fault, record.detail = error.fault, error.detail
        if error.missing and record.dtype:
            _count_missing(record, -(-error.missing // itemsize))
    except Exception as error:  # decoders raise many types for a damaged file
        record.fault, record.detail = describe_fault(error), str(error)[:200]
    return record


def _count_missing(record: FileRecord, voxels: int) -> None:
    record.missing = voxels
    depth = record.shape[0] * record.shape[1]
    first = (record.voxels - record.missing) * depth // max(1, record.voxels)
    said = f'{record.missing:,} of {record.voxels:,} voxels are missing'
    if record.has_slices:
        said += f', from slice {first % record.shape[1]} on'
    record.detail = f'{said}; {record.detail}' if record.detail else said


@dataclass(frozen=True)
class CaseTask:
    """Task of a worker process: reads cases with the same reader and the same valid values."""

    reader: str  #: Name of the nnU-Net class that reads the files.
    expected: Tuple[int, ...]  #: Valid values; empty if unknown.

    def scan(self, items: List[CaseItem]) -> List[CaseRecord]:
        """Read cases, and return their records."""
        return [read_case(item, self.reader, self.expected) for item in items]

    def report_crash(self, item: CaseItem) -> List[CaseRecord]:
        """Return one record that reports a crash for every file of a case, because the responsible file is unknown."""
        record = CaseRecord(item.path, item.case, self.reader)
        detail = 'a file of this case crashed the process that read it (out of memory, or a bug of the decoder)'
        if item.has_label:
            record.label = FileRecord(item.path, CRASHES, detail)
        record.images = [FileRecord(path, CRASHES, detail) for path in item.images]
        return [record]
