"""How cases are read: what a process needs to know."""

from __future__ import annotations

from dataclasses import dataclass
from typing import List, NamedTuple, Tuple

from mmguard.tools.scan.faults import CRASHES
from mmguard.tools.scan.nnunet.cases import CaseItem
from mmguard.tools.scan.nnunet.read_case import read_case
from mmguard.tools.scan.nnunet.record import CaseRecord, FileRecord, digest_of
from mmguard.tools.storage.files import FILES


class CasesResult(NamedTuple):
    """What one task found, as the engine's ``ChunkResult``; cases are added up by the process that asked.

    Attributes:
        lines (list[str]): The records, as lines of JSON.
    """

    lines: List[str]


@dataclass(frozen=True)
class CaseSettings:
    """What the engine hands to a process together with cases, as ``MapSettings`` with label maps.

    Args:
        reader (str): nnU-Net's class that would read the files.
        expected (tuple[int]): Valid values; empty: not known.
    """

    reader: str
    expected: Tuple[int, ...]

    def scan(self, items: List[CaseItem]) -> CasesResult:
        """One task: reads some cases."""
        return CasesResult([read_case(item, self.reader, self.expected).to_line() for item in items])

    def crashed(self, item: CaseItem) -> CasesResult:
        """The record of a case that ended the process that read it: which file it was is not known."""
        record = CaseRecord(item.path, item.case, self.reader, digest_of(self.expected))
        detail = 'one of the files of this case ended the process that read it (memory, or a bug of the decoder)'
        if item.has_label:
            record.label = FileRecord(item.path, FILES.stamp_of(item.path), CRASHES, detail)
        record.images = [FileRecord(path, FILES.stamp_of(path), CRASHES, detail) for path in item.images]
        return CasesResult([record.to_line()])
