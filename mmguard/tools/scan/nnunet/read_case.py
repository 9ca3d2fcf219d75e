"""Reading of cases: each file once, by the process that was given the case."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from typing import List, NamedTuple, Tuple

from mmguard.tools.scan.faults import CRASHES, fault_of
from mmguard.tools.scan.nnunet.cases import CaseItem
from mmguard.tools.scan.nnunet.readers.choose import open_volume
from mmguard.tools.scan.nnunet.readers.volume import CannotRead
from mmguard.tools.scan.nnunet.record import CaseRecord, FileRecord, digest_of
from mmguard.tools.scan.nnunet.voxels import count_labels, count_not_finite
from mmguard.tools.storage.files import FILES


def read_case(item: CaseItem, reader: str, expected: Tuple[int, ...]) -> CaseRecord:
    """Reads label and images of a case. Whatever is wrong with them is reported in the record.

    Args:
        item (CaseItem): The files.
        reader (str): nnU-Net's class that would read them.
        expected (tuple[int]): Valid values; empty: not known.
    """
    record = CaseRecord(item.path, item.case, reader, digest_of(expected))
    if item.has_label:
        record.label = _read(item.path, reader, True, expected)
    record.images = [_read(path, reader, False, expected) for path in item.images]
    return record


def _read(path: str, reader: str, is_label: bool, expected: Tuple[int, ...]) -> FileRecord:
    record = FileRecord(path, FILES.stamp_of(path))
    itemsize = 1
    try:
        with ExitStack() as stack:
            volume = open_volume(path, reader, stack)
            geometry, itemsize = volume.geometry, volume.dtype.itemsize
            record.dtype, record.shape = str(volume.dtype), list(volume.shape)
            record.dimension, record.form = volume.dimension, volume.form
            record.spacing, record.origin = geometry.spacing, geometry.origin
            record.direction, record.affine = geometry.direction, geometry.affine
            if volume.is_scaled:
                record.scaling = [volume.slope, volume.inter]
            if volume.dtype.kind not in 'iuf':
                volume.check()  # colours: reported as a form
            elif is_label:
                count_labels(volume, record, expected)
            else:
                count_not_finite(volume, record)
            if volume.refusal is not None:
                raise volume.refusal
    except CannotRead as error:
        record.fault, record.detail = error.fault, error.detail
        if error.missing and record.dtype:
            _count_missing(record, -(-error.missing // itemsize))
    except Exception as error:  # damaged bytes make decoders raise what they like
        record.fault, record.detail = fault_of(error), str(error)[:200]
    return record


def _count_missing(record: FileRecord, voxels: int) -> None:
    record.missing = voxels
    depth = record.shape[0] * record.shape[1]
    first = (record.voxels - record.missing) * depth // max(1, record.voxels)
    said = f'{record.missing:,} of {record.voxels:,} voxels are missing'
    if record.has_turns:
        said += f', from slice {first % record.shape[1]} on'
    record.detail = f'{said}; {record.detail}' if record.detail else said


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
