"""Label maps as a data set: read in tasks, counted, and recounted with other labels or changed files."""

from __future__ import annotations

import os
from dataclasses import dataclass
from itertools import islice
from typing import Callable, Dict, Iterable, Iterator, List, Optional

import numpy as np

from mmguard.facts.labels import LabelFacts, LoaderFacts
from mmguard.findings.edits import FileChanges
from mmguard.formats.correction import LARGEST, NotCorrected, NotTried, Unreadable
from mmguard.formats.faults import CRASHES
from mmguard.formats.files import FILES, select_spread
from mmguard.formats.format import Mapper, ScanResult, Source, scan_here, split_into_chunks
from mmguard.formats.maps.forms import describe_unread
from mmguard.formats.maps.read import read_map
from mmguard.formats.maps.record import MapItem, MapRecord
from mmguard.formats.maps.summary import MapSummary
from mmguard.formats.maps.write import correct_map, name_of_copy, predict_counts
from mmguard.formats.options import FixOptions, MapSettings

#: Number of files in the first tasks, and the maximum for any task.
_FIRST, _MOST = 2, 32
#: Maximum number of files that are read to try an edit that names other files or rewrites some.
OTHER_FILES = 64


@dataclass(frozen=True)
class MapTask:
    """Reader of the label maps of a task."""

    settings: MapSettings

    def scan(self, items: List[MapItem]) -> MapSummary:
        """Read the files of one task; return the sum of their records."""
        invalid = np.array(self.settings.find_invalid_values())
        summary = MapSummary(self.settings)
        for item in items:
            summary.add(read_map(item, self.settings, invalid))
        return summary

    def report_crash(self, item: MapItem) -> MapSummary:
        """Return the sum for a file that crashed the process reading it."""
        summary = MapSummary(self.settings)
        summary.add(MapRecord(item.path, image=item.image, backend=self.settings.backend, fault=CRASHES))
        return summary


def scan_maps(
    items: Iterable[MapItem],
    settings: MapSettings,
    mapper: Mapper = scan_here,
    on_files: Callable[[int], None] = lambda files: None,
) -> MapSummary:
    """Scan label maps in chunks; call ``on_files`` with the number of files done since the last call."""
    summary = MapSummary(settings)
    for part in mapper(split_into_chunks(items, _FIRST, _MOST), MapTask(settings)):
        summary.merge(part)
        on_files(part.files)
    return summary


class MapSource(Source):
    """A data set of label maps: a folder, or ``'train'``; files are named relative to ``root``."""

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
        #: Faults seen while files were listed: missing partners, unreadable folders.
        self.noticed = MapSummary(settings)
        self._summary: Optional[MapSummary] = None

    def items(self) -> Iterator[MapItem]:
        """Yield the files one by one, only once."""
        raise TypeError(f'{type(self).__name__} lists no files')

    def list_items(self) -> Optional[List[MapItem]]:
        """Return the files if a config names them, since another config may name others; else ``None``."""
        return None

    def sample(self) -> List[str]:
        """Return a few of the files for a trial."""
        return []

    def compare_with_loader(self) -> Optional[LoaderFacts]:
        """Load a few files with the framework's own loader, and compare them with the scan; ``None`` without one."""
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
        """Return the facts of counts of its files."""
        facts = summary.to_facts(self.class_names, self.root)
        assert facts.maps is not None
        facts.maps.sources, facts.maps.suffix = [self.folder], self.suffix
        facts.loader = self.compare_with_loader()
        return facts

    def scan_changed(
        self, plan_again: Callable[[], Optional[Source]], files: FileChanges, contents: Callable[[], Dict[str, bytes]]
    ) -> Optional[LabelFacts]:
        """Recount the labels; read some files if the config names others or the counts are insufficient."""
        source, changes = plan_again(), dict(files).get(self.folder)
        if not isinstance(source, MapSource) or self._summary is None:
            return None
        listed, expected = source.list_items(), self.list_items()
        if changes is not None and expected is not None:
            expected = [item._replace(path=name_of_copy(item.path)) for item in expected]
        if listed is not None and listed != expected:
            return source.build_facts(scan_maps(select_spread(listed, OTHER_FILES), source.settings))
        if changes is None:
            return source.build_facts(self._summary.relabel(source.settings))
        options = FixOptions(**dict(changes))
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
    """Return name of the copy -> corrected content for a few label maps.

    Raises:
        NotTried: A readable file would be left out.
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
