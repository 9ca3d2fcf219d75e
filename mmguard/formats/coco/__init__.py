"""Format of COCO, LVIS and panoptic JSON files, with code that finds, reads and corrects these files."""

from __future__ import annotations

import json
import os
import re
from dataclasses import replace
from itertools import islice
from typing import Iterator, List, Match, NamedTuple

from mmguard.facts.labels import AnnotationFacts, LabelFacts
from mmguard.files.containment import find_inside
from mmguard.formats.faults import Faults
from mmguard.formats.files import is_gray, is_image_name, list_names, read_head
from mmguard.formats.format import (
    CannotCorrect,
    CannotScan,
    Corrected,
    Format,
    LabelFiles,
    LabelSet,
    NotCorrected,
    Sets,
)
from mmguard.formats.options import FixOptions, ScanOptions, is_left_out
from mmguard.labels.instances import BOX_REASONS
from mmguard.labels.rules import OTHERS
from mmguard.language import Message


class Coco(Format):
    """The format of a COCO, LVIS or panoptic JSON, or of a folder with such files."""

    name = 'coco'
    also = ('lvis',)
    endings = ('.json',)
    numbered = True
    right_boxes = 'sizes'

    def detect(self, target: str) -> bool:
        return not os.path.isdir(target) or bool(find_coco_files(target))

    def sets(self, target: str, options: ScanOptions) -> Sets:
        if not os.path.isdir(target):
            return Sets([LabelSet(target, lambda: self._read_one(target, options))])
        sets = Sets([])
        for name, file, images in find_coco_files(target):
            if not is_left_out(os.path.dirname(name), options):
                here = replace(options, images=options.images or images or None)
                (source,) = super().sets(file, here).sources
                source.name = name
                source.notes += [Message('images: {images}', images=images)] if images and not options.images else []
                sets.sources.append(source)
        if not sets.sources:
            raise CannotScan(f'{target} has no COCO file of {", ".join(options.splits)}')
        return sets

    def read(self, target: str, options: ScanOptions) -> LabelFacts:
        from mmguard.formats.coco.read import scan_coco
        from mmguard.formats.unsupported_formats import describe_json

        facts = scan_coco(
            target,
            options.num_classes,
            images=options.images,
            labels=options.labels,
            framework=options.framework,
            masks=options.masks,
        )
        found = facts.annotations
        if found is not None and not (found.images or found.annotations or found.categories):
            other = [what for what in found.unreadable if 'COCO JSON' in what]
            damaged = any(not what.startswith('has no') and what not in other for what in found.unreadable)
            looks = '' if damaged else describe_json(target, bool(other))
            if looks:
                raise ValueError(f'nothing was read. {looks}')
        return facts

    def _read_one(self, target: str, options: ScanOptions) -> LabelFacts:
        """Read a file, and the category names of the other splits, whose categories must have the same ids."""
        from mmguard.formats.coco.file import read_coco

        facts = self.read(target, options)
        for path in list_other_splits(target):
            if os.path.getsize(path) <= _LARGEST_BESIDE:
                coco = read_coco(path, path, Faults())
                facts.coco.names_beside[path] = [name for _, name in coco.categories]
        return facts

    def correct(self, data: bytes, options: FixOptions) -> Corrected:
        from mmguard.formats.coco.write import correct_coco

        return correct_coco(data, options)

    def files(self, target: str, options: FixOptions) -> LabelFiles:
        if os.path.isdir(target):
            raise CannotCorrect(f'{target} is a folder: pass the COCO .json itself')
        if OTHERS in options.label_map:
            raise CannotCorrect(
                '--label-map: * (all other values) works only with label maps; for a JSON, list every category id'
            )
        found = super().files(target, options)
        return found._replace(read=self._read_kept) if options.keep_boxes else found

    def _read_kept(self, path: str) -> LabelFacts:
        """Return the facts of a corrected file, without the faults of its boxes, which ``--keep-boxes`` permits."""
        facts = self.read_copy(path)
        facts.reasons = {reason: count for reason, count in facts.reasons.items() if reason not in BOX_REASONS}
        return facts

    def read_copy(self, path: str) -> LabelFacts:
        from mmguard.formats.coco.read import scan_coco

        facts = scan_coco(path)
        found = facts.annotations or AnnotationFacts()
        if found.annotations and found.images_without_target == found.images:
            raise NotCorrected(
                'cannot be corrected: only crowds, ignored objects and boxes thinner than a pixel would be left'
            )
        return facts


SPLITS = ('train', 'val', 'valid', 'validation', 'test')
#: Prefixes of JSON files without annotations, with captions, or with labels of whole images.
_OTHERS = ('image_info', 'captions', 'labels')
#: Maximum numbers of inspected names of a folder, of opened JSON files, and of bytes read of each.
_NAMES, _OPENED, _HEAD = 5000, 20, 1 << 16
#: Maximum number of files of other splits whose category names are read, and of bytes of each file.
_BESIDE, _LARGEST_BESIDE = 4, 64 << 20
#: Number of images of a file that are searched for to find their folder.
_LOOKED_FOR = 20
_KEYS = re.compile(rb'"(images|annotations|categories)"\s*:\s*\[')
_FILE = re.compile(rb'"file_name"\s*:\s*("(?:[^"\\]|\\.)*")')


class FoundFile(NamedTuple):
    """A COCO file in a folder, and the folder of its images."""

    name: str  #: Path relative to the folder.
    path: str  #: Path of the file.
    images: str  #: Folder of the images of the file; empty if not found.


def find_coco_files(root: str) -> List[FoundFile]:
    """Return the COCO files in a folder, its ``annotations`` and split folders, or if none, in its only subfolder.

    A folder that also contains label maps is skipped.
    """
    found = [file for place in ('', 'annotations', *SPLITS) for file in _find_files(root, place)]
    names = list_names(root, _NAMES)
    if found or len(names) != 1:
        return found
    (only,) = names
    return [one._replace(name=os.path.join(only, one.name)) for one in find_coco_files(os.path.join(root, only))]


def list_other_splits(path: str) -> List[str]:
    """Return up to four other COCO files in the folder of a file, or in the split folders next to its folder."""
    folder = os.path.dirname(os.path.abspath(path))
    root = os.path.dirname(folder) if os.path.basename(folder) in SPLITS else folder
    return [one.path for one in find_coco_files(root)[:_BESIDE] if os.path.realpath(one.path) != os.path.realpath(path)]


def _find_files(root: str, place: str) -> Iterator[FoundFile]:
    folder = os.path.join(root, place)
    names = list_names(folder, _NAMES)
    first = next((name for name in names if is_image_name(name)), '')
    if first and is_gray(os.path.join(folder, first)):
        return
    named = [name for name in names if name.lower().endswith('.json') and not name.startswith(_OTHERS)]
    heads = {name: read_head(os.path.join(folder, name), _HEAD) for name in named[:_OPENED]}
    if not any(map(_is_coco, heads.values())):
        return
    for name in named:
        head = heads.pop(name, None) or read_head(os.path.join(folder, name), _HEAD)
        # The format of a damaged file is unknown: include it, the scan reports the damage.
        if _is_coco(head) or head.lstrip()[:1] not in (b'{', b'['):
            path = os.path.join(folder, name)
            yield FoundFile(os.path.join(place, name), path, _find_image_folder(root, path, head))


def _is_coco(head: bytes) -> bool:
    is_object = head.lstrip(b'\xef\xbb\xbf \t\r\n')[:1] == b'{'
    return is_object and _KEYS.search(head) is not None and b'"dm_format_version"' not in head


def _find_image_folder(root: str, path: str, head: bytes) -> str:
    """Return the first usual folder with an image that the JSON lists, or the first with any image, or ''."""
    root = os.path.dirname(os.path.abspath(root)) if os.path.basename(root) == 'annotations' else root
    split = os.path.splitext(os.path.basename(path))[0].rpartition('_')[2]
    beside = os.path.dirname(path)
    ways = (('images', split), (split,), ('images',), (split, 'images'), ())
    places = [beside, os.path.join(beside, 'images'), *(os.path.join(root, *way) for way in ways)]
    named = list(filter(None, map(_read_text, islice(_FILE.finditer(head), _LOOKED_FOR))))
    holding = (one for one in places for image in named if os.path.isfile(find_inside(one, image)))
    usual = (one for one in places[:-1] if any(map(is_image_name, list_names(one, _NAMES))))
    return next(holding, '') or next(usual, '')


def _read_text(match: Match[bytes]) -> str:
    try:
        return str(json.loads(match.group(1).decode('utf-8', 'replace')))
    except ValueError:
        return ''
