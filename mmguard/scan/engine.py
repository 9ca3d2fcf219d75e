"""The scan: a map over files, and a merge of tallies. How the map is run is up to the mapper."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Callable, Iterable, Iterator, List, NamedTuple, Optional, TypeVar

import numpy as np

from mmguard.scan.journal import Journal
from mmguard.scan.read import read_map, stamp_of
from mmguard.scan.record import MapItem
from mmguard.scan.settings import MapSettings
from mmguard.scan.summary import MapSummary

Element = TypeVar('Element')

#: Files per task: a third of a second of decoding, so that little is lost when a task is.
CHUNK = 16


class ChunkResult(NamedTuple):
    """What one task found.

    Attributes:
        lines (list[str]): The records, as lines of JSON.
        summary (MapSummary): The same, added up.
    """

    lines: List[str]
    summary: MapSummary


#: Runs ``scan_chunk`` over chunks, in any order, with a bounded number of them on the way.
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
    invalid = np.array(settings.invalid_values())
    summary = MapSummary(settings)
    lines = []
    for item in items:
        record = read_map(item, settings, invalid)
        summary.add(record)
        lines.append(record.to_line())
    return ChunkResult(lines, summary)


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

    def unknown() -> Iterator[MapItem]:
        for item in items:
            known = None
            if journal is not None and journal.resumed:
                stamps = (stamp_of(item.path), None if item.image is None else stamp_of(item.image))
                known = journal.find(item, *stamps, invalid, settings.backend)
            if known is None:
                yield item
                continue
            done.summary.add(known)
            done.reused += 1
            on_files(1)

    for result in mapper(in_chunks(unknown(), CHUNK), settings):
        if journal is not None:
            journal.append(result.lines)
        done.summary.merge(result.summary)
        done.decoded += len(result.lines)
        on_files(len(result.lines))
    return done


def in_chunks(elements: Iterable[Element], size: int) -> Iterator[List[Element]]:
    """Lists of ``size`` elements; the last may be shorter."""
    source = iter(elements)
    while True:
        chunk = list(itertools.islice(source, size))
        if not chunk:
            return
        yield chunk
