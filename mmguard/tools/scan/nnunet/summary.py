"""What a data set of volumes holds: cases added up in any order."""

from __future__ import annotations

from typing import Dict, List

from mmguard.findings.facts import LabelFacts
from mmguard.findings.volumes import FRACTIONS, INTENSITIES, NOT_FINITE, UNEXPECTED, CaseFault, VolumeFacts
from mmguard.tools.scan.nnunet.cases import Listing
from mmguard.tools.scan.nnunet.judge import Fault, Judge
from mmguard.tools.scan.nnunet.record import CaseRecord, is_whole
from mmguard.tools.scan.nnunet.spec import DatasetSpec

#: Kinds of faults that are values of voxels.
_OF_VALUES = (UNEXPECTED, FRACTIONS, INTENSITIES, NOT_FINITE)
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
        name = '' if label is None else self.judge.name_of(label.path)
        self.offending += any(kind in _OF_VALUES and fault.file == name for kind, fault in found)

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
