"""The scan: a map over files in tasks, and a merge of tallies. How the map is run is up to the mapper."""

from __future__ import annotations

import itertools
import time
from dataclasses import dataclass
from types import MappingProxyType
from typing import Callable, Dict, Iterable, Iterator, List, Mapping, NamedTuple, Optional, Tuple, TypeVar

import numpy as np

from mmguard.findings.facts import LoaderFacts
from mmguard.tools.scan.read import read_map
from mmguard.tools.scan.record import Journal, MapItem, fetched, is_far, stamped
from mmguard.tools.scan.settings import MapSettings
from mmguard.tools.scan.summary import MapSummary

Element = TypeVar('Element')

#: Work per task, seconds of a core. Handing a task over and its result back costs half a millisecond; at the end of a
#: scan, and where a process dies, up to one task per process is waited for, or read again.
WORK = 0.04
#: The longest that a task should take by the clock, which on a slow disk or a busy machine goes on without work.
CLOCK = 0.25
#: Files of the first tasks, when nothing has been timed yet, and the most of any.
FIRST, MOST = 2, 32
#: So many times as long where files are fetched: at the beginning of a task nothing has come yet. And so many times as
#: many files at most, which whoever hands tasks out has to hold.
FAR = 8


class TaskSize:
    """Files per task, from how long the files so far took; ``longer`` times as long as on this machine.

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
        """Adds what a task has taken, seconds."""
        self._files += files
        self._work += work
        self._clock += clock

    def __call__(self) -> int:
        most = min(self.longer, FAR)
        if not self._files:
            return FIRST * most
        # A clock may stand still over a task of tiny files.
        by_work, by_clock = WORK / max(self._work, 1e-9), CLOCK / max(self._clock, 1e-9)
        return max(1, min(MOST * most, round(min(by_work, by_clock) * self._files * self.longer)))


def in_chunks(elements: Iterable[Element], size: Callable[[], int]) -> Iterator[List[Element]]:
    """Lists of as many elements as ``size`` says when each is asked for; the last may be shorter."""
    source = iter(elements)
    while True:
        chunk = list(itertools.islice(source, size()))
        if not chunk:
            return
        yield chunk


class ChunkResult(NamedTuple):
    """What one task found."""

    lines: List[str]  #: The records, as lines of JSON.
    summary: MapSummary  #: The same, added up.
    #: ``work``, ``clock``: How long it took, in seconds of a core and by the clock.
    work: float = 0.0
    clock: float = 0.0


#: Runs ``scan_chunk`` over chunks, in any order, with a bounded number of them on the way. Where it has a ``longer``,
#: that is the one of :class:`TaskSize`.
Mapper = Callable[[Iterable[List[MapItem]], MapSettings], Iterator[ChunkResult]]


@dataclass
class Scanned:
    """What a scan did."""

    summary: MapSummary  #: What it found.
    decoded: int = 0  #: Files read.
    reused: int = 0  #: Files known from the journal.


def scan_chunk(items: List[MapItem], settings: MapSettings) -> ChunkResult:
    """One task: reads some files."""
    if not isinstance(settings, MapSettings):  # cases of volumes: their settings know how they are read
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
    """The mapper of one process: this one."""
    for chunk in chunks:
        yield scan_chunk(chunk, settings)


def scan_maps(
    items: Iterable[MapItem],
    settings: MapSettings,
    mapper: Mapper = scan_here,
    journal: Optional[Journal] = None,
    on_files: Callable[[int], None] = lambda files: None,
) -> Scanned:
    """Scan label maps, a few chunks at a time; call ``on_files`` with the number of files done since the last call.

    Records go to the journal, and those of unchanged files come from it.
    """
    done = Scanned(MapSummary(settings))
    invalid = settings.invalid_values()
    size = TaskSize(getattr(mapper, 'longer', 1))

    def unknown() -> Iterator[MapItem]:
        known_before = journal is not None and journal.resumed
        for item in stamped(items, settings) if known_before else items:
            known = None
            # A far file without a stamp may have changed.
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
        #: Where its label maps lie.
        self.folder = root or ''
        #: How their names end, where other images lie beside them.
        self.suffix = ''
        self.class_names = class_names or []
        #: What was noticed while the files were listed: partners that are missing, folders that cannot be read.
        self.noticed = MapSummary(settings)
        #: (r, g, b) -> class, where a file beside the label maps says it.
        self.declared: Dict[Tuple[int, int, int], str] = {}
        #: What the user should know of how the files were chosen.
        self.notes: List[str] = []

    def items(self) -> Iterator[MapItem]:
        """The files, one after the other; may be asked for once."""
        raise TypeError(f'{type(self).__name__} lists no files')

    def listed(self) -> Optional[List[MapItem]]:
        """The files, where a config names them: with another config they may be others."""
        return None

    def count(self) -> Optional[int]:
        """About how many there are, for the progress bar; ``None`` where counting would take long."""
        return None

    def sample(self) -> List[str]:
        """A few of the files, for a trial."""
        return []

    def ask_loader(self, copies: Mapping[str, str] = MappingProxyType({})) -> Optional[LoaderFacts]:
        """Return what the framework's own loader makes of a few of the files; ``copies`` are read in place of them."""
        return None
