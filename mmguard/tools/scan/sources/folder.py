"""A folder of label maps."""

from __future__ import annotations

import os
from typing import Iterator, List, Optional, Set

from mmguard.tools.scan.faults import fault_of
from mmguard.tools.scan.record import MapItem
from mmguard.tools.scan.settings import MapSettings
from mmguard.tools.scan.sources.base import MapSource
from mmguard.tools.scan.sources.folders import is_image_name, names_in, walk
from mmguard.tools.scan.sources.other_files import ENOUGH, looks_like_yolo
from mmguard.tools.scan.sources.pairing import Partners

#: Of data sets that keep several kinds of label files side by side: which one is trained on.
TRAINED_ENDINGS = ('_labelTrainIds.png', '_labelIds.png')


class FolderSource(MapSource):
    """Label maps in a folder and those in it.

    Args:
        root (str): The folder, or one file.
        settings (MapSettings): How they are loaded.
        images (str, optional): Folder of their images, laid out alike.
        suffix (str, optional): How the names of label maps end. ``None``: any image; where Cityscapes' files lie side
            by side, ``_labelTrainIds.png`` before ``_labelIds.png``.

    Raises:
        FileNotFoundError: ``root`` or ``images`` does not exist.
    """

    def __init__(
        self, root: str, settings: MapSettings, images: Optional[str] = None, suffix: Optional[str] = None
    ) -> None:
        whole = os.path.abspath(root)
        super().__init__(root, settings, root=whole if os.path.isdir(whole) else os.path.dirname(whole))
        self._target = whole
        self.folder = whole if os.path.isdir(whole) else ''  # of one file nobody writes the others anew
        for folder in (root, images):
            if folder is not None and not os.path.exists(folder):
                raise FileNotFoundError(f'{folder} does not exist: name a folder of label maps, or of their images')
        self.images = None if images is None else os.path.abspath(images)
        self.suffix = self._chosen_suffix() if suffix is None else suffix

    def _chosen_suffix(self) -> str:
        for _folder, names in self._folders(quiet=True):
            for ending in TRAINED_ENDINGS:
                chosen = [name for name in names if name.endswith(ending)]
                if chosen and len(chosen) < sum(map(is_image_name, names)):
                    self.notes.append(f'only *{ending} is read; --suffix chooses other files')
                    return ending
            if any(map(is_image_name, names)):
                break
        return ''

    def _folders(self, quiet: bool = False) -> Iterator[tuple]:
        if not os.path.isdir(self._target):
            yield os.path.split(self._target)
            return

        def tell(folder: str, error: OSError) -> None:
            if not quiet:
                self.noticed.add_fault(f'folder: {fault_of(error)}', folder)

        yield from walk(self._target, tell)

    def _labels(self, names: List[str]) -> List[str]:
        return [name for name in names if is_image_name(name) and name.endswith(self.suffix)]

    def found_instead(self) -> Optional[List[str]]:
        """Where there is no label map, the other files, as far as they were looked at; ``None`` where there is one."""
        others: List[str] = []
        closed: List[str] = []
        photos = False
        if not os.path.isdir(self._target):
            return None
        for folder, names in walk(self._target, lambda folder, error: closed.append(folder)):
            if self._labels(names):
                # Where the labels are texts, what lies in images/ are the images.
                if 'images' not in os.path.relpath(folder, self._target).split(os.sep):
                    return None
                photos = True
                continue
            others += [os.path.join(folder, name) for name in names[: ENOUGH - len(others)]]
        if closed or (photos and not looks_like_yolo(others)):
            return None  # of folders that cannot be read the scan has more to say
        return others

    def items(self) -> Iterator[MapItem]:
        if not os.path.isdir(self._target):
            yield MapItem(self._target)
            return
        visited: Set[str] = set()
        for folder, names in self._folders():
            partners = None
            images = self.images
            if images is not None:
                images = os.path.normpath(os.path.join(images, os.path.relpath(folder, self._target)))
                partners = Partners([name for name in names_in(images) if is_image_name(name)])
            previous = ''
            for name in self._labels(names):
                stem = os.path.splitext(name)[0]
                if stem == previous:
                    self.noticed.duplicates.add(os.path.join(folder, stem))
                previous = stem
                image = None
                if partners is not None and images is not None:
                    # Without a partner: the name that it should have.
                    image = os.path.join(images, partners.of(stem) or f'{stem}.*')
                yield MapItem(os.path.join(folder, name), image)
            if partners is not None and images is not None:
                visited.add(images)
                for name in partners.without_label():
                    self.noticed.missing_labels.add(os.path.join(images, name))
        if self.images is not None:
            self._notice_folders_without_labels(self.images, visited)

    def _notice_folders_without_labels(self, images: str, visited: Set[str]) -> None:
        for folder, names in walk(images, lambda folder, error: None):
            if folder not in visited:
                for name in filter(is_image_name, names):
                    self.noticed.missing_labels.add(os.path.join(folder, name))

    def count(self) -> Optional[int]:
        if not os.path.isdir(self._target):
            return 1
        return sum(len(self._labels(names)) for _folder, names in self._folders(quiet=True))
