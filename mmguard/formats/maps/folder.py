"""A folder of label maps, and the corresponding images."""

from __future__ import annotations

import os
from itertools import islice
from typing import Dict, Iterator, List, Optional, Set, Tuple

from mmguard.formats.faults import describe_fault
from mmguard.formats.files import (
    SAMPLE,
    TRAINED_ENDINGS,
    find_label_and_image_folders,
    is_image_name,
    list_names,
    walk,
)
from mmguard.formats.maps.forms import ARRAY_ENDING, VOLUME_ENDINGS, is_array_name, is_volume_name
from mmguard.formats.maps.record import MapItem
from mmguard.formats.maps.source import MapSource
from mmguard.formats.options import MapSettings
from mmguard.formats.unsupported_formats import ENOUGH, looks_like_yolo
from mmguard.language import Message

#: Ends of the stems of label files that their images lack or replace; the longest come first.
LABEL_TAILS = (
    '_gtFine_labelTrainIds', '_gtFine_labelIds', '_gtFine_color', '_gtCoarse_labelTrainIds', '_gtCoarse_labelIds',
    '_instance_color_RGB', '_segmentation', '_labelTrainIds', '_train_id', '_manual1', '_labels', '_label', '_mask',
    '_masks', '_seg', '_gt', '_L', '-label', '-mask', '.label', '.mask',
)  # fmt: skip
IMAGE_TAILS = ('_leftImg8bit', '_image', '_img', '_rgb', '_sat', '_0000')


def _get_stem(name: str) -> str:
    return os.path.splitext(name[:-3] if name.lower().endswith('.nii.gz') else name)[0]


def _strip_tail(stem: str, tails: Tuple[str, ...]) -> str:
    """Return the part of a stem that a label file shares with its image."""
    tail = next((tail for tail in tails if stem.endswith(tail) and len(stem) > len(tail)), '')
    return stem[: len(stem) - len(tail)]


class Partners:
    """The images of one folder, found by label stems."""

    def __init__(self, names: List[str]) -> None:
        self._by_stem: Dict[str, str] = {}
        self._by_key: Dict[str, str] = {}
        for name in names:
            stem = _get_stem(name)
            self._by_stem.setdefault(stem, name)
            self._by_key.setdefault(_strip_tail(stem, IMAGE_TAILS), name)
        self._found = set()  # type: ignore[var-annotated]

    def find(self, label_stem: str) -> str:
        """Return the image of a label; ``''`` if not found."""
        name = self._by_stem.get(label_stem) or self._by_key.get(_strip_tail(label_stem, LABEL_TAILS), '')
        self._found.add(name)
        return name

    def list_unlabelled(self) -> List[str]:
        """Return the images that were not matched with a label."""
        return [name for name in self._by_stem.values() if name not in self._found]


class FolderSource(MapSource):
    """Label maps in a folder and its subfolders, or one file; ``images`` has the same layout.

    Without ``suffix`` every image is a label map; but if a folder has several files per image as in Cityscapes, only
    those that end in ``_labelTrainIds.png``, or else in ``_labelIds.png``.

    Raises:
        FileNotFoundError: ``root`` or ``images`` does not exist.
    """

    def __init__(
        self, root: str, settings: MapSettings, images: Optional[str] = None, suffix: Optional[str] = None
    ) -> None:
        whole = os.path.abspath(root)
        self._is_folder = os.path.isdir(whole)
        super().__init__(root, settings, root=whole if self._is_folder else os.path.dirname(whole))
        self._target = whole
        self.folder = whole if self._is_folder else ''  # the other files of a single file's folder are not rewritten
        for folder in (root, images):
            if folder is not None and not os.path.exists(folder):
                raise FileNotFoundError(f'{folder} does not exist: name a folder of label maps, or of their images')
        self.images = None if images is None else os.path.abspath(images)
        self.suffix = self._choose_suffix() if suffix is None else suffix
        self._are_volumes = (self.suffix or whole).lower().endswith(VOLUME_ENDINGS)
        self._are_arrays = self.suffix.lower().endswith(ARRAY_ENDING) or self._has_arrays_alone()

    def _choose_suffix(self) -> str:
        names = list_names(self._target)
        volumes = [ending for ending in VOLUME_ENDINGS if any(name.lower().endswith(ending) for name in names)]
        if volumes and not any(map(is_image_name, names)):
            return volumes[0]
        for _folder, names in self._walk_folders(quiet=True):
            for ending in TRAINED_ENDINGS:
                chosen = [name for name in names if name.endswith(ending)]
                if chosen and len(chosen) < sum(map(is_image_name, names)):
                    self.notes.append(Message('only *{ending} is read; --suffix chooses other files', ending=ending))
                    return ending
            if any(map(is_image_name, names)):
                break
        return ''

    def _walk_folders(self, quiet: bool = False) -> Iterator[Tuple[str, List[str]]]:
        if not self._is_folder:
            yield os.path.dirname(self._target), [os.path.basename(self._target)]
            return

        def note_fault(folder: str, error: OSError) -> None:
            if not quiet:
                self.noticed.add_fault(f'folder: {describe_fault(error)}', folder)

        yield from walk(self._target, note_fault)

    def _select_labels(self, names: List[str]) -> List[str]:
        is_label = is_array_name if self._are_arrays else is_image_name
        is_label = is_volume_name if self._are_volumes else is_label
        return [name for name in names if is_label(name) and name.endswith(self.suffix)]

    def _is_image(self, name: str) -> bool:
        return is_volume_name(name) if self._are_volumes else is_image_name(name)

    def _has_arrays_alone(self) -> bool:
        """Return True if the label maps are numpy files: there are images only in ``images``, next to them."""
        for folder, names in self._walk_folders(quiet=True):
            if 'images' not in os.path.relpath(folder, self._target).replace(os.sep, '/').split('/') and any(
                map(is_image_name, names)
            ):
                return False
            if any(map(is_array_name, names)):
                return True
        return False

    def list_other_files(self) -> Optional[List[str]]:
        """Return the other files found if the folder has no label map; ``None`` if it has one, or cannot be read."""
        others: List[str] = []
        closed: List[str] = []
        photos = False
        if not self._is_folder:
            return None
        for folder, names in walk(self._target, lambda folder, error: closed.append(folder)):
            if self._select_labels(names):
                # If the labels are text files, the files in images/ are the images.
                if 'images' not in os.path.relpath(folder, self._target).replace(os.sep, '/').split('/'):
                    return None
                photos = True
                continue
            others += [os.path.join(folder, name) for name in names[: ENOUGH - len(others)]]
        if closed or (photos and not looks_like_yolo(others)):
            return None  # the scan reports folders that cannot be read
        return others

    def items(self) -> Iterator[MapItem]:
        if not self._is_folder:
            yield MapItem(self._target)
            return
        visited: Set[str] = set()
        for folder, names in self._walk_folders():
            partners = None
            images = self.images
            if images is not None:
                images = os.path.normpath(os.path.join(images, os.path.relpath(folder, self._target)))
                partners = Partners([name for name in list_names(images) if self._is_image(name)])
            previous = ''
            for name in self._select_labels(names):
                stem = _get_stem(name)
                if stem == previous:
                    self.noticed.duplicates.add(os.path.join(folder, stem))
                previous = stem
                path = os.path.join(folder, name)
                if partners is None or images is None:
                    yield MapItem(path)
                    continue
                # Without a partner: the name that it should have.
                yield MapItem(path, os.path.join(images, partners.find(stem) or f'{stem}.*'))
            if partners is not None and images is not None:
                visited.add(images)
                for name in partners.list_unlabelled():
                    self.noticed.missing_labels.add(os.path.join(images, name))
        if self.images is not None:
            self._note_folders_without_labels(self.images, visited)

    def sample(self) -> List[str]:
        files = (
            os.path.join(folder, name)
            for folder, names in self._walk_folders(quiet=True)
            for name in self._select_labels(names)
        )
        return list(islice(files, SAMPLE))

    def _note_folders_without_labels(self, images: str, visited: Set[str]) -> None:
        for folder, names in walk(images, lambda folder, error: None):
            if folder not in visited:
                for name in filter(self._is_image, names):
                    self.noticed.missing_labels.add(os.path.join(folder, name))

    def count(self) -> Optional[int]:
        if not self._is_folder:
            return 1
        return sum(len(self._select_labels(names)) for _folder, names in self._walk_folders(quiet=True))


def find_label_files(root: str, suffix: Optional[str] = None) -> List[str]:
    """Return the label maps in a folder that a scan reads, without the images next to them."""
    folders = [labels for labels, _ in find_label_and_image_folders(root)] or [root]
    sources = [FolderSource(folder, MapSettings(256), suffix=suffix) for folder in folders]
    return [item.path for source in sources for item in source.items()]
