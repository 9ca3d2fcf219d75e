"""Data sets of label maps, such as a folder of label maps and a folder of their images."""

from __future__ import annotations

import os
from dataclasses import dataclass
from itertools import islice
from typing import Callable, Dict, Iterable, Iterator, List, Optional, Set, Tuple

import numpy as np

from mmguard.facts.labels import FileChanges, LabelFacts, LoaderFacts
from mmguard.formats.faults import CRASHES, describe_fault
from mmguard.formats.files import (
    FILES,
    SAMPLE,
    TRAINED_ENDINGS,
    find_label_and_image_folders,
    is_image_name,
    is_in_images,
    list_names,
    select_spread,
    walk,
)
from mmguard.formats.format import (
    LARGEST,
    Mapper,
    NotCorrected,
    NotTried,
    ScanResult,
    Source,
    Unreadable,
    scan_here,
    split_into_chunks,
)
from mmguard.formats.maps.forms import (
    ARRAY_ENDING,
    VOLUME_ENDINGS,
    correct_map,
    describe_unread,
    is_array_name,
    is_volume_name,
    name_of_copy,
    predict_counts,
)
from mmguard.formats.maps.read import read_map
from mmguard.formats.maps.summary import MapItem, MapRecord, MapSummary
from mmguard.formats.options import FixOptions, MapSettings
from mmguard.formats.unsupported_formats import ENOUGH, looks_like_yolo
from mmguard.language import Message

#: Number of files in the first tasks, and the maximum for any task.
_FIRST, _MOST = 2, 32
#: Maximum number of files that are read to try an edit that selects other files or rewrites files.
OTHER_FILES = 64


@dataclass(frozen=True)
class MapTask:
    """Task that reads label maps with the settings of a data set."""

    settings: MapSettings

    def scan(self, items: List[MapItem]) -> MapSummary:
        """Read the files of one task, and return a summary of their records."""
        invalid = np.array(self.settings.find_invalid_values())
        summary = MapSummary(self.settings)
        for item in items:
            summary.add(read_map(item, self.settings, invalid))
        return summary

    def report_crash(self, item: MapItem) -> MapSummary:
        """Return a summary of one file that crashed the process reading it."""
        summary = MapSummary(self.settings)
        summary.add(MapRecord(item.path, image=item.image, backend=self.settings.backend, fault=CRASHES))
        return summary


def scan_maps(
    items: Iterable[MapItem],
    settings: MapSettings,
    mapper: Mapper = scan_here,
    on_files: Callable[[int], None] = lambda files: None,
) -> MapSummary:
    """Scan label maps in chunks, and call ``on_files`` with the number of files of each chunk."""
    summary = MapSummary(settings)
    for part in mapper(split_into_chunks(items, _FIRST, _MOST), MapTask(settings)):
        summary.merge(part)
        on_files(part.files)
    return summary


class MapSource(Source):
    """A data set of label maps, named after its folder or split (``'train'``); file names are relative to ``root``."""

    def __init__(
        self, name: str, settings: MapSettings, root: Optional[str] = None, class_names: Optional[List[str]] = None
    ) -> None:
        super().__init__(name)
        self.settings = settings
        self.root = root
        #: Folder of the label maps.
        self.folder = root or ''
        #: End of the names of the label maps, if other images are in the same folder.
        self.suffix = ''
        self.class_names = class_names or []
        #: Faults seen while files were listed: missing images or label maps, unreadable folders.
        self.noticed = MapSummary(settings)
        self._summary: Optional[MapSummary] = None

    def items(self) -> Iterator[MapItem]:
        """Yield the label maps, and add faults to ``noticed``. Call this method only once."""
        raise TypeError(f'{type(self).__name__} must define items()')

    def list_items(self) -> Optional[List[MapItem]]:
        """Return the label maps that a config selects, or ``None`` if they do not depend on a config."""
        return None

    def sample(self) -> List[str]:
        """Return the paths of a few label maps on which mmguard tries edits."""
        return []

    def compare_with_loader(self) -> Optional[LoaderFacts]:
        """Compare a few files with the output of the framework's loader; return ``None`` if the framework has none."""
        return None

    def scan(self, mapper: Mapper = scan_here, on_files: Callable[[int], None] = lambda files: None) -> ScanResult:
        summary = self._summary = scan_maps(self.items(), self.settings, mapper, on_files)
        summary.merge(self.noticed)
        unread = '' if summary.forms else describe_unread(summary.unreadable)
        if unread:
            raise ValueError(f'nothing was read. {unread}')
        ignored = [value for value, label in enumerate(summary.table) if label == self.settings.ignore_index]
        worst = summary.list_worst_files(self.root)
        return ScanResult(self.build_facts(summary), worst, ignored, self.root or '')

    def build_facts(self, summary: MapSummary) -> LabelFacts:
        """Return the facts of this data set, given the summary of its files."""
        facts = summary.to_facts(self.class_names, self.root)
        assert facts.maps is not None
        facts.maps.sources, facts.maps.suffix = [self.folder], self.suffix
        facts.loader = self.compare_with_loader()
        return facts

    def scan_changed(
        self, plan_again: Callable[[], Optional[Source]], files: FileChanges, contents: Callable[[], Dict[str, bytes]]
    ) -> Optional[LabelFacts]:
        """Predict the facts after an edit from the counts of the scan.

        Read files only if the edit selects other files, or if the counts do not suffice.
        """
        source, changes = plan_again(), files.get(self.folder)
        if not isinstance(source, MapSource) or self._summary is None:
            return None
        listed, expected = source.list_items(), self.list_items()
        if changes is not None and expected is not None:
            expected = [item._replace(path=name_of_copy(item.path)) for item in expected]
        if listed is not None and listed != expected:
            return source.build_facts(scan_maps(select_spread(listed, OTHER_FILES), source.settings))
        if changes is None:
            return source.build_facts(self._summary.relabel(source.settings))
        options = FixOptions(**changes)
        counts = predict_counts(self._summary, options)
        items = [MapItem(path) for path in self.sample()]
        if counts is None:
            items = list(islice((source if expected is None else self).items(), OTHER_FILES + 1))
            if len(items) > OTHER_FILES:
                return None
        copies = correct_maps([item.path for item in items], options)
        with FILES.replaced(copies):
            if counts is not None:
                return source.build_facts(counts.relabel(source.settings))
            names = [(item, name_of_copy(item.path)) for item in items]
            there = [MapItem(name, item.image) for item, name in names if name in copies]
            made = scan_maps(there, source.settings)
            made.merge((source if expected is None else self).noticed)
            return source.build_facts(made)


def correct_maps(paths: List[str], options: FixOptions) -> Dict[str, bytes]:
    """Correct a few label maps, and return them as {path of the copy: content}.

    Raises:
        NotTried: A readable file cannot be corrected.
    """
    contents = {}
    for path in paths:
        try:
            data = FILES.read(path, LARGEST)
            contents[name_of_copy(path)] = correct_map(data, os.path.splitext(path)[1], options).data
        except (OSError, Unreadable):  # another rule names the files that cannot be read
            continue
        except NotCorrected as error:
            raise NotTried(path) from error
    return contents


#: Ends of the stems of label files and of images, which are removed to match them; longer ends come first.
LABEL_TAILS = (
    '_gtFine_labelTrainIds', '_gtFine_labelIds', '_gtFine_color', '_gtCoarse_labelTrainIds', '_gtCoarse_labelIds',
    '_instance_color_RGB', '_segmentation', '_labelTrainIds', '_train_id', '_manual1', '_labels', '_label', '_mask',
    '_masks', '_seg', '_gt', '_L', '-label', '-mask', '.label', '.mask',
)  # fmt: skip
IMAGE_TAILS = ('_leftImg8bit', '_image', '_img', '_rgb', '_sat', '_0000')


def _get_stem(name: str) -> str:
    return os.path.splitext(name[:-3] if name.lower().endswith('.nii.gz') else name)[0]


def _strip_tail(stem: str, tails: Tuple[str, ...]) -> str:
    """Return a stem without the first of ``tails`` that it ends with."""
    tail = next((tail for tail in tails if stem.endswith(tail) and len(stem) > len(tail)), '')
    return stem[: len(stem) - len(tail)]


class Partners:
    """The images of one folder, which are found by the stem (name without ending) of their label file."""

    def __init__(self, folder: str, names: Iterable[str]) -> None:
        self.folder = folder
        self._by_stem: Dict[str, str] = {}
        self._by_key: Dict[str, str] = {}
        for name in names:
            stem = _get_stem(name)
            self._by_stem.setdefault(stem, name)
            self._by_key.setdefault(_strip_tail(stem, IMAGE_TAILS), name)
        self._found: Set[str] = set()

    def find(self, label_stem: str) -> str:
        """Return the path of the image of a label, or the pattern ``{label_stem}.*`` if the image is missing."""
        name = self._by_stem.get(label_stem) or self._by_key.get(_strip_tail(label_stem, LABEL_TAILS), '')
        self._found.add(name)
        return os.path.join(self.folder, name or f'{label_stem}.*')

    def list_unlabelled(self) -> List[str]:
        """Return the paths of the images that were not matched with a label."""
        return [os.path.join(self.folder, name) for name in self._by_stem.values() if name not in self._found]


class FolderSource(MapSource):
    """Label maps in a folder and its subfolders, or a single label map. The folder ``images`` has the same subfolders.

    Without ``suffix``, every image is a label map. If a folder has several label files per image, as in Cityscapes,
    only files that end in ``_labelTrainIds.png`` are read, or else in ``_labelIds.png``.

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
                raise FileNotFoundError(f'{folder} does not exist: pass a folder of label maps, or of their images')
        self.images = None if images is None else os.path.abspath(images)
        self.suffix = self._choose_suffix() if suffix is None else suffix
        self._are_volumes = (self.suffix or whole).lower().endswith(VOLUME_ENDINGS)
        self._are_arrays = self.suffix.lower().endswith(ARRAY_ENDING) or self._has_only_arrays()

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
                self.noticed.unreadable.add(f'folder: {describe_fault(error)}', folder)

        yield from walk(self._target, note_fault)

    def _select_labels(self, names: List[str]) -> List[str]:
        is_label = is_array_name if self._are_arrays else is_image_name
        is_label = is_volume_name if self._are_volumes else is_label
        return [name for name in names if is_label(name) and name.endswith(self.suffix)]

    def _is_image(self, name: str) -> bool:
        return is_volume_name(name) if self._are_volumes else is_image_name(name)

    def _has_only_arrays(self) -> bool:
        """Return True if there are .npy files, and no images except in folders called ``images``."""
        for folder, names in self._walk_folders(quiet=True):
            if any(map(is_image_name, names)) and not is_in_images(folder, self._target):
                return False
            if any(map(is_array_name, names)):
                return True
        return False

    def list_other_files(self) -> Optional[List[str]]:
        """Return files of a folder without label maps, or ``None`` for a file, or if label maps exist or may exist."""
        others: List[str] = []
        closed: List[str] = []
        photos = False
        if not self._is_folder:
            return None
        for folder, names in walk(self._target, lambda folder, error: closed.append(folder)):
            if self._select_labels(names):
                # If the labels are text files, the files in images/ are the images.
                if not is_in_images(folder, self._target):
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
            partners, previous = self._find_partners(folder), ''
            for name in self._select_labels(names):
                stem = _get_stem(name)
                if stem == previous:
                    self.noticed.duplicates.add(os.path.join(folder, stem))
                previous = stem
                yield MapItem(os.path.join(folder, name), None if partners is None else partners.find(stem))
            if partners is not None:
                visited.add(partners.folder)
                for path in partners.list_unlabelled():
                    self.noticed.missing_labels.add(path)
        for folder, names in walk(self.images, lambda *_: None) if self.images is not None else ():
            for name in filter(self._is_image, names if folder not in visited else ()):
                self.noticed.missing_labels.add(os.path.join(folder, name))

    def _find_partners(self, folder: str) -> Optional[Partners]:
        if self.images is None:
            return None
        images = os.path.normpath(os.path.join(self.images, os.path.relpath(folder, self._target)))
        return Partners(images, filter(self._is_image, list_names(images)))

    def sample(self) -> List[str]:
        found = self._walk_folders(quiet=True)
        paths = (os.path.join(folder, name) for folder, names in found for name in self._select_labels(names))
        return list(islice(paths, SAMPLE))

    def count(self) -> Optional[int]:
        if not self._is_folder:
            return 1
        return sum(len(self._select_labels(names)) for _folder, names in self._walk_folders(quiet=True))


def find_label_files(root: str, suffix: Optional[str] = None) -> List[str]:
    """Return the label maps that a scan of a folder reads, without the images in folders next to them."""
    folders = [labels for labels, _ in find_label_and_image_folders(root)] or [root]
    sources = [FolderSource(folder, MapSettings(256), suffix=suffix) for folder in folders]
    return [item.path for source in sources for item in source.items()]
