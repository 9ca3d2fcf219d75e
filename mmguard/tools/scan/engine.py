"""The scan: a map over files, and a merge of tallies. How the map is run is up to the mapper."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Callable, Iterable, Iterator, List, NamedTuple, Optional

import numpy as np

from mmguard.tools.scan.chunks import FAR, TaskSize, in_chunks
from mmguard.tools.scan.fetched import fetched, is_far, stamped
from mmguard.tools.scan.journal import Journal
from mmguard.tools.scan.read import read_map
from mmguard.tools.scan.record import MapItem
from mmguard.tools.scan.settings import MapSettings
from mmguard.tools.scan.summary import MapSummary


class ChunkResult(NamedTuple):
    """What one task found.

    Attributes:
        lines (list[str]): The records, as lines of JSON.
        summary (MapSummary): The same, added up.
        work, clock (float): How long it took, in seconds of a core and by the clock.
    """

    lines: List[str]
    summary: MapSummary
    work: float = 0.0
    clock: float = 0.0


#: Runs ``scan_chunk`` over chunks, in any order, with a bounded number of them on the way. Where it has a ``longer``,
#: that is the one of :class:`TaskSize`.
Mapper = Callable[[Iterable[List[MapItem]], MapSettings], Iterator[ChunkResult]]


@dataclass
class Scanned:
    """What a scan did.

    Args:
        summary (MapSummary): What it found.
        decoded (int): Files read.
        reused (int): Files known from the journal.
    """

    summary: MapSummary
    decoded: int = 0
    reused: int = 0


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
    """Scans label maps. Holds a few chunks of them at a time.

    Args:
        items (iterable[MapItem]): The files; taken as they are needed.
        settings (MapSettings): How they are loaded, what is valid.
        mapper (callable): Where the work is done.
        journal (Journal, optional): Where records go, and where those of unchanged files come from.
        on_files (callable): Called with the number of files done since the last call.
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
