"""The scan: a map over files in tasks, and a merge of tallies. The mapper decides how the map is run."""

from __future__ import annotations

import itertools
import time
from dataclasses import dataclass
from types import MappingProxyType
from typing import Callable, Dict, Iterable, Iterator, List, Mapping, NamedTuple, Optional, Tuple, TypeVar

import numpy as np

from mmguard.findings.facts import LoaderFacts
from mmguard.formats.maps.read import read_map
from mmguard.formats.maps.record import Journal, MapItem, fetched, is_far, stamped
from mmguard.formats.maps.settings import MapSettings
from mmguard.formats.maps.summary import MapSummary

Element = TypeVar('Element')

#: Work per task, in seconds of a core. Sending a task and its result costs half a millisecond; at the end of a scan, or
#: if a process dies, at most one task per process is waited for or repeated.
WORK = 0.04
#: Longest wall-clock time of a task, in seconds; it exceeds the work on a slow disk or a busy machine.
CLOCK = 0.25
#: Number of files in the first tasks, before anything is timed, and the maximum for any task.
FIRST, MOST = 2, 32
#: Factor for the duration of a task if files are fetched (its beginning waits for the first of them), and for the
#: maximum number of its files, which whoever submits tasks has to hold.
FAR = 8


class TaskSize:
    """Number of files per task, from how long earlier files took; ``longer`` scales the duration of a task.

    Example:
        >>> size = TaskSize()
        >>> size.learn(files=2, work=0.02, clock=0.03)
        >>> size()
        4
    """

    def __init__(self, longer: int = 1) -> None:
        self.longer = longer
        self._files = 0
        self._work = self._clock = 0.0

    def learn(self, files: int, work: float, clock: float) -> None:
        """Add what a task took, in seconds."""
        self._files += files
        self._work += work
        self._clock += clock

    def __call__(self) -> int:
        most = min(self.longer, FAR)
        if not self._files:
            return FIRST * most
        # The clock may show no progress over a task of tiny files.
        by_work, by_clock = WORK / max(self._work, 1e-9), CLOCK / max(self._clock, 1e-9)
        return max(1, min(MOST * most, round(min(by_work, by_clock) * self._files * self.longer)))


def in_chunks(elements: Iterable[Element], size: Callable[[], int]) -> Iterator[List[Element]]:
    """Yield lists of ``size()`` elements, asked for before each list; the last may be shorter."""
    source = iter(elements)
    while True:
        chunk = list(itertools.islice(source, size()))
        if not chunk:
            return
        yield chunk


class ChunkResult(NamedTuple):
    """Result of one task."""

    lines: List[str]  #: The records, as lines of JSON.
    summary: MapSummary  #: Their sum.
    #: ``work``, ``clock``: Seconds of a core, and of wall-clock time.
    work: float = 0.0
    clock: float = 0.0


#: Runs ``scan_chunk`` over chunks, in any order, with a bounded number of them in flight. Its ``longer``, if it has
#: one, is passed to :class:`TaskSize`.
Mapper = Callable[[Iterable[List[MapItem]], MapSettings], Iterator[ChunkResult]]


@dataclass
class Scanned:
    """Result of a scan."""

    summary: MapSummary  #: Sum of the records.
    decoded: int = 0  #: Number of files read.
    reused: int = 0  #: Number of files taken from the journal.


def scan_chunk(items: List[MapItem], settings: MapSettings) -> ChunkResult:
    """Read the files of one task."""
    if not isinstance(settings, MapSettings):  # cases of volumes: their settings do the reading
        return settings.scan(items)
    work, clock = time.thread_time(), time.perf_counter()
    invalid = np.array(settings.invalid_values())
    summary = MapSummary(settings)
    lines = []
    for item, content in fetched(items, settings):
        record = read_map(item, settings, invalid, content)
        summary.add(record)
        lines.append(record.to_line())
    return ChunkResult(lines, summary, time.thread_time() - work, time.perf_counter() - clock)


def scan_here(chunks: Iterable[List[MapItem]], settings: MapSettings) -> Iterator[ChunkResult]:
    """Run all chunks in this process."""
    for chunk in chunks:
        yield scan_chunk(chunk, settings)


def scan_maps(
    items: Iterable[MapItem],
    settings: MapSettings,
    mapper: Mapper = scan_here,
    journal: Optional[Journal] = None,
    on_files: Callable[[int], None] = lambda files: None,
) -> Scanned:
    """Scan label maps in chunks; call ``on_files`` with the number of files done since the last call.

    Records are written to the journal, and those of unchanged files are read from it.
    """
    done = Scanned(MapSummary(settings))
    invalid = settings.invalid_values()
    size = TaskSize(getattr(mapper, 'longer', 1))

    def unknown() -> Iterator[MapItem]:
        known_before = journal is not None and journal.resumed
        for item in stamped(items, settings) if known_before else items:
            known = None
            # A remote file without a stamp may have changed.
            if journal is not None and known_before and (item.stamp or not settings.files.is_far(item.path)):
                known = journal.find(item, item.stamp, item.image_stamp, invalid, settings.backend)
            if known is None:
                if is_far(item, settings):
                    size.longer = max(size.longer, FAR)
                yield item
                continue
            done.summary.add(known)
            done.reused += 1
            on_files(1)

    for result in mapper(in_chunks(unknown(), size), settings):
        if journal is not None:
            journal.append(result.lines)
        done.summary.merge(result.summary)
        done.decoded += len(result.lines)
        size.learn(len(result.lines), result.work, result.clock)
        on_files(len(result.lines))
    return done


class MapSource:
    """A data set of label maps: a folder, or ``'train'``; files are named relative to ``root``."""

    def __init__(
        self, name: str, settings: MapSettings, root: Optional[str] = None, class_names: Optional[List[str]] = None
    ) -> None:
        self.name = name
        self.settings = settings
        self.root = root
        #: The folder of its label maps.
        self.folder = root or ''
        #: The end of their names, if other images are in the same folder.
        self.suffix = ''
        self.class_names = class_names or []
        #: Faults seen while files were listed: missing partners, unreadable folders.
        self.noticed = MapSummary(settings)
        #: (r, g, b) -> class, if a file next to the label maps defines it.
        self.declared: Dict[Tuple[int, int, int], str] = {}
        #: Notes for the user on how the files were chosen.
        self.notes: List[str] = []

    def items(self) -> Iterator[MapItem]:
        """Yield the files one by one; can be iterated once."""
        raise TypeError(f'{type(self).__name__} lists no files')

    def listed(self) -> Optional[List[MapItem]]:
        """Return the files if a config names them: another config may name others."""
        return None

    def count(self) -> Optional[int]:
        """Return the approximate number of files, for the progress bar; ``None`` if counting would take long."""
        return None

    def sample(self) -> List[str]:
        """Return a few of the files, for a trial."""
        return []

    def ask_loader(self, copies: Mapping[str, str] = MappingProxyType({})) -> Optional[LoaderFacts]:
        """Return what the framework's own loader makes of a few of the files; ``copies`` are read in their place."""
        return None
