"""What a data set of volumes holds: cases added up in any order."""

from __future__ import annotations

from typing import Any, Dict, List

from mmguard.findings.facts import LabelFacts
from mmguard.findings.volumes import FRACTIONS, INTENSITIES, NOT_FINITE, UNEXPECTED, CaseFault, VolumeFacts
from mmguard.tools.scan.nnunet.cases import Listing
from mmguard.tools.scan.nnunet.judge import Fault, Judge, along_z
from mmguard.tools.scan.nnunet.places import fullest_slice
from mmguard.tools.scan.nnunet.record import CaseRecord, FileRecord, is_whole
from mmguard.tools.scan.nnunet.spec import DatasetSpec
from mmguard.tools.scan.nnunet.voxels import FRACTIONS as BROKEN

#: Values that are listed of all files together.
_MAX_VALUES = 1 << 16


class CaseSummary:
    """Adds up cases. What it holds of clean cases does not grow with their number; of faulty ones it keeps all.

    Args:
        spec (DatasetSpec): What dataset.json declares.
        root (str): The folder of the data set.
    """

    def __init__(self, spec: DatasetSpec, root: str) -> None:
        self.spec = spec
        self.root = root
        self.judge = Judge(spec, root)
        self.histogram: Dict[int, int] = {}
        self.files_with: Dict[int, int] = {}
        self.total = 0
        self.files = 0
        self.labels_read = 0
        self.offending = 0
        self.reasons: Dict[str, int] = {}
        self.faults: List[Fault] = []
        self.worst: List[Dict[str, Any]] = []

    def add(self, record: CaseRecord) -> None:
        """Adds one case."""
        label = record.label
        self.files += len(record.images) + (label is not None)
        if label is not None and label.is_read:
            self.labels_read += 1
            self.total += label.voxels
            is_picture = label.is_picture
            reasons = (
                ('an image', label.voxels if is_picture else 0),
                ('no integer', 0 if is_picture else label.fractions),
                ('not finite', label.nan + label.inf),
            )
            for reason, count in reasons:
                if count:
                    self.reasons[reason] = self.reasons.get(reason, 0) + count
            for value, count in () if is_picture else label.values.items():
                if not is_whole(value):
                    continue
                number = int(value)
                if number in self.histogram or len(self.histogram) < _MAX_VALUES:
                    self.histogram[number] = self.histogram.get(number, 0) + count
                    self.files_with[number] = self.files_with.get(number, 0) + 1
        found = list(self.judge.faults_of(record))
        self.faults += found
        of_label = False
        for kind, fault in found:
            if kind in (UNEXPECTED, FRACTIONS, INTENSITIES, NOT_FINITE):
                file = next(f for f in (label, *record.images) if f and self.judge.name_of(f.path) == fault.file)
                of_label = of_label or file is label
                self.worst.append(_as_worst(kind, fault, file, record))
        self.offending += of_label

    def to_facts(self, listing: Listing, reader: str) -> LabelFacts:
        """What the diagnosis asks for.

        Args:
            listing (Listing): The cases, and what is missing of them.
            reader (str): nnU-Net's class that reads them.
        """
        spec = self.spec
        by_kind: Dict[str, List[CaseFault]] = {}
        for kind, fault in sorted([*listing.faults, *self.faults], key=lambda pair: (pair[0], pair[1].file)):
            by_kind.setdefault(kind, []).append(fault)
        expected = set(spec.expected)
        volumes = VolumeFacts(
            cases=len(listing.cases),
            reader=reader,
            file_ending=spec.file_ending,
            expected=sorted(expected),
            declared={kind: list(texts) for kind, texts in spec.faults.items()},
            faults=by_kind,
            never=sorted(expected - set(self.histogram) - {spec.ignore}) if self.labels_read else [],
            files_with_class=dict(sorted(self.files_with.items())),
            labels_read=self.labels_read,
            root=self.root,
            content=spec.content,
            layout=spec.layout,
        )
        highest = max([0, *(expected - {spec.ignore} or self.histogram)])
        return LabelFacts(
            values={
                value: count for value, count in sorted(self.histogram.items()) if expected and value not in expected
            },
            num_classes=highest + 1,
            ignore_index=spec.ignore,
            total=self.total,
            files=self.files,
            offending_files=self.offending,
            kind='voxels',
            reasons=dict(sorted(self.reasons.items())),
            class_names=[spec.names.get(value, '') for value in range(highest + 1)] if highest < _MAX_VALUES else [],
            histogram=dict(sorted(self.histogram.items())),
            volumes=volumes,
        )

    def worst_files(self) -> List[Dict[str, Any]]:
        """The files with the most voxels that are wrong, the worst first."""
        return sorted(self.worst, key=lambda file: (-file['invalid'], file['file'], file['kind']))


def _as_worst(kind: str, fault: CaseFault, file: FileRecord, record: CaseRecord) -> Dict[str, Any]:
    names = [BROKEN] if kind == FRACTIONS else list(fault.values)
    counts: Dict[int, int] = {}
    for name in names:
        for z, count in along_z(file, name).items():
            counts[z] = counts.get(z, 0) + count
    is_label = file is record.label
    images = [image.path for image in record.images if image.is_read]
    return {
        'file': fault.file,
        'path': file.path,
        'image': images[0] if is_label and images else None,
        'case': fault.case,
        'kind': kind,
        'invalid': fault.voxels,
        'values': dict(fault.values),
        'stored': dict(fault.values),
        'slice': fullest_slice(counts) if counts else 0,
        'slices': {str(z): count for z, count in sorted(counts.items())} if file.has_turns else {},
        'is_label': is_label,
    }
