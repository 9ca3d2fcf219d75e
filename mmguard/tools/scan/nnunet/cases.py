"""Which files make a case: as nnU-Net lists them, and what that leaves out.

(nnunetv2/utilities/utils.py, ``get_filenames_of_train_images_and_targets``)
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from typing import Any, Dict, List, Mapping, NamedTuple, Set, Tuple

from mmguard.files.inside import OutsideError, check_name
from mmguard.findings.volumes import CHANNELS, NO_IMAGE, NO_LABEL, STRANGER, CaseFault
from mmguard.tools.scan.nnunet.spec import KEYS, MSD, V1, DatasetSpec

_CHANNEL = re.compile(r'(?P<case>.+)_(?P<channel>\d{4})')
#: macOS writes a file of this name beside each that it copies to a disk of another system (AppleDouble).
_APPLE_DOUBLE = '._'
_OF_MACOS = 'macOS left it beside a file that it copied'


class CaseItem(NamedTuple):
    """A case to read.

    Attributes:
        path (str): Its label file, which also is its key in the journal.
        case (str): Its name.
        images (tuple[str]): Its image files that exist, one per channel, in order.
        has_label (bool): Whether the label file exists.
    """

    path: str
    case: str
    images: Tuple[str, ...]
    has_label: bool = True


@dataclass
class Listing:
    """What lies in a data set.

    Args:
        cases (list[CaseItem]): All cases, by name; also those that lack a file.
        found (int): How many of them nnU-Net counts.
        faults (list[tuple]): Kind and fault of what is missing or left over.
    """

    cases: List[CaseItem] = field(default_factory=list)
    found: int = 0
    faults: List[Tuple[str, CaseFault]] = field(default_factory=list)


def list_cases(root: str, spec: DatasetSpec) -> Listing:
    """Lists the cases of a data set.

    Args:
        root (str): Its folder.
        spec (DatasetSpec): Its dataset.json; folders that are missing are listed in its faults.
    """
    if spec.layout == V1 and _is_of_decathlon(root, spec):
        spec.layout = MSD
    named = spec.content.get('dataset') if spec.layout not in (V1, MSD) else None
    if isinstance(named, Mapping):
        return _listed_in_json(root, named, spec)
    if named is not None:
        spec.add(KEYS, f'dataset must map cases to {{"images": [...], "label": ...}}, got a {type(named).__name__}')
    return _listed_in_folders(root, spec)


def _is_of_decathlon(root: str, spec: DatasetSpec) -> bool:
    """Whether images lie under the names that dataset.json has; nnU-Net v1 adds the channel, the Decathlon does not."""
    listed = spec.content.get('training')
    first = listed[0] if isinstance(listed, list) and listed else None
    image = first.get('image') if isinstance(first, Mapping) else None
    try:
        return isinstance(image, str) and os.path.isfile(_absolute(root, image))
    except OutsideError:
        return False


def _listed_in_json(root: str, named: Mapping[str, Any], spec: DatasetSpec) -> Listing:
    listing = Listing(found=len(named))
    for case in sorted(named):
        entry = named[case]
        images = entry.get('images') if isinstance(entry, Mapping) else None
        label = entry.get('label') if isinstance(entry, Mapping) else None
        if not isinstance(label, str) or not isinstance(images, list) or not all(isinstance(i, str) for i in images):
            spec.add(KEYS, f'dataset["{case}"] must be {{"images": [...], "label": ...}}')
            continue
        try:
            places = [_absolute(root, image) for image in images]
            item = CaseItem(_absolute(root, label), case, tuple(filter(os.path.isfile, places)))
        except OutsideError as error:
            spec.add(KEYS, f'dataset["{case}"]: {error}')
            continue
        for place in places:
            if not os.path.isfile(place):
                listing.faults.append((NO_IMAGE, CaseFault(case, _relative(root, place), 'listed, but not there')))
        listing.cases.append(_checked_label(root, item, listing))
    return listing


def _absolute(root: str, path: str) -> str:
    # An absolute path replaces what stands before it.
    path = os.path.expandvars(path)  # as nnU-Net does
    check_name(path)
    return os.path.abspath(os.path.join(root, path))


def _relative(root: str, path: str) -> str:
    inside = path.startswith(root.rstrip(os.sep) + os.sep)
    return os.path.relpath(path, root) if inside else path


def _checked_label(root: str, item: CaseItem, listing: Listing) -> CaseItem:
    if os.path.isfile(item.path):
        return item
    detail = 'the image has no label file' if item.images else 'listed, but not there'
    listing.faults.append((NO_LABEL, CaseFault(item.case, _relative(root, item.path), detail)))
    return item._replace(has_label=False)


def _names_in(root: str, folder: str, spec: DatasetSpec, listing: Listing) -> List[str]:
    try:
        with os.scandir(os.path.join(root, folder)) as entries:
            listed = sorted((entry.name, entry.is_file(), entry.is_symlink()) for entry in entries)
    except OSError as error:
        spec.add(KEYS, f'the folder {folder} cannot be read: {(error.strerror or str(error)).lower()}')
        return []
    for name, is_file, is_link in listed:
        if is_link and not is_file and not os.path.isdir(os.path.join(root, folder, name)):
            fault = CaseFault(name.split('.')[0], f'{folder}/{name}', 'a link that leads nowhere: fetch the file')
            listing.faults.append((STRANGER, fault))
    return [name for name, is_file, _ in listed if is_file]


def _listed_in_folders(root: str, spec: DatasetSpec) -> Listing:
    listing = Listing()
    images, labels = (_names_in(root, folder, spec, listing) for folder in ('imagesTr', 'labelsTr'))
    ending = spec.file_ending
    if not ending:
        return listing
    by_case: Dict[str, Dict[int, str]] = {}
    strangers: List[str] = []
    counted: Set[str] = set()
    for name in images:
        if name.startswith(_APPLE_DOUBLE):
            if name.endswith(ending):
                fault = CaseFault(
                    name[: -len(ending)], f'imagesTr/{name}', f'{_OF_MACOS}: nnU-Net takes it for an image'
                )
                listing.faults.append((CHANNELS, fault))
            continue
        if not name.endswith(ending):
            strangers.append(f'imagesTr/{name}')
            continue
        if spec.layout == MSD:
            counted.add(name[: -len(ending)])
            by_case[name[: -len(ending)]] = {0: name}
            continue
        counted.add(name[: -len(ending) - 5])  # nnU-Net cuts _0000 off, whatever stands there
        match = _CHANNEL.fullmatch(name[: -len(ending)])
        if match is None:
            fault = CaseFault(name[: -len(ending)], f'imagesTr/{name}', f'images are named CASE_0000{ending}')
            listing.faults.append((CHANNELS, fault))
        else:
            by_case.setdefault(match['case'], {})[int(match['channel'])] = name
    for case in sorted(by_case):
        channels = by_case[case]
        files = tuple(os.path.join(root, 'imagesTr', channels[number]) for number in sorted(channels))
        item = CaseItem(os.path.join(root, 'labelsTr', case + ending), case, files)
        listing.cases.append(_checked_label(root, item, listing))
        if sorted(channels) != list(range(len(channels))) or (spec.channels or 0) > len(channels) > 1:
            _tell_channels(listing, case, channels, spec)
    for name in labels:
        if name.startswith(_APPLE_DOUBLE):
            continue  # of labels nnU-Net opens those of the images alone
        if not name.endswith(ending):
            strangers.append(f'labelsTr/{name}')
        elif name[: -len(ending)] not in by_case:
            case = name[: -len(ending)]
            detail = f'the label has no image: imagesTr/{case}_0000{ending} is missing'
            listing.faults.append((NO_IMAGE, CaseFault(case, f'labelsTr/{name}', detail)))
            listing.cases.append(CaseItem(os.path.join(root, 'labelsTr', name), case, ()))
    listing.found = len(counted)
    _tell_strangers(listing, strangers, spec)
    return listing


def _tell_channels(listing: Listing, case: str, channels: Mapping[int, str], spec: DatasetSpec) -> None:
    wanted = range(max(spec.channels or 0, max(channels) + 1))
    missing = [f'imagesTr/{case}_{number:04d}{spec.file_ending}' for number in wanted if number not in channels]
    for file in missing:
        listing.faults.append((CHANNELS, CaseFault(case, file, 'this channel is missing')))


def _tell_strangers(listing: Listing, names: List[str], spec: DatasetSpec) -> None:
    """Files that nnU-Net does not see."""
    for name in names:
        stem = os.path.basename(name)
        if stem.startswith('.'):
            continue
        detail = f'does not end with file_ending "{spec.file_ending}": nnU-Net does not see it'
        listing.faults.append((STRANGER, CaseFault(stem.split('.')[0], name, detail)))
