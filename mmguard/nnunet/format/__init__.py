"""Reader of nnU-Net's raw data sets: ``dataset.json``, and the volumes in ``imagesTr`` and ``labelsTr``."""

from __future__ import annotations

import os
from collections import Counter
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple

from mmguard.facts.labels import FileChanges, LabelFacts
from mmguard.facts.volumes import FRACTIONS, INTENSITIES, NOT_FINITE, UNEXPECTED, CaseFault, VolumeFacts
from mmguard.formats.faults import MOST_KEYS, Counts
from mmguard.formats.format import (
    CannotScan,
    Format,
    Mapper,
    ScanResult,
    Sets,
    Source,
    scan_here,
    split_into_chunks,
)
from mmguard.formats.options import ScanOptions
from mmguard.formats.volumes import find_gzip_decoder
from mmguard.formats.volumes.nifti import READERS, choose_reader, explain_unread, is_installed
from mmguard.formats.volumes.record import CaseRecord, is_integer, relabel
from mmguard.language import Message
from mmguard.nnunet.conversions import CONVERSIONS, list_missing_entries
from mmguard.nnunet.format.case_checks import CaseChecker, Fault
from mmguard.nnunet.format.cases import CaseListing, CaseTask, list_cases
from mmguard.nnunet.format.spec import (
    KEYS,
    LABELS,
    MSD,
    REGIONS,
    V1,
    DatasetSpec,
    build_spec,
    find_raw_datasets,
    judge_count,
    read_spec,
)
from mmguard.text import quantity

#: Kinds of faults about voxel values.
_OF_VALUES = (UNEXPECTED, FRACTIONS, INTENSITIES, NOT_FINITE)


class CaseSummary:
    """Summary of the records of all cases, which grows only with the number of faults."""

    def __init__(self, spec: DatasetSpec, root: str) -> None:
        self.spec = spec
        self.root = root
        self.judge = CaseChecker(spec, root)
        self.histogram, self.files_with = Counts(), Counts()
        self.total = self.files = self.labels_read = 0
        self.offending: Dict[str, int] = {}
        self.reasons: Counter = Counter()
        self.faults: List[Fault] = []

    def add(self, record: CaseRecord) -> None:
        """Add the record of one case."""
        label = record.label
        self.files += len(record.images) + (label is not None)
        if label is not None and label.is_read:
            self.labels_read += 1
            self.total += label.voxels
            is_image = label.holds_intensities
            self.reasons['an image'] += label.voxels if is_image else 0
            self.reasons['no integer'] += 0 if is_image else label.fractions
            self.reasons['not finite'] += label.nan + label.inf
            for value, count in () if is_image else label.values.items():
                if is_integer(value) and self.histogram.add(int(value), count):
                    self.files_with.add(int(value))
        found = list(self.judge.find_faults(record))
        self.faults += found
        name = '' if label is None else self.judge.shorten_path(label.path)
        voxels = [fault.voxels for kind, fault in found if kind in _OF_VALUES and fault.file == name]
        if voxels:
            self.offending[name] = sum(voxels)

    def to_facts(self, listing: CaseListing, reader: str) -> LabelFacts:
        """Return the summary as facts for the rules."""
        spec = self.spec
        by_kind: Dict[str, List[CaseFault]] = {}
        for kind, fault in sorted([*listing.faults, *self.faults], key=lambda pair: (pair[0], pair[1].file)):
            by_kind.setdefault(kind, []).append(fault)
        expected = set(spec.expected)
        volumes = VolumeFacts(
            format='nnunet',
            cases=len(listing.cases),
            reader=reader,
            file_ending=spec.file_ending,
            expected=sorted(expected),
            declared={kind: list(texts) for kind, texts in spec.faults.items()},
            faults=by_kind,
            never=sorted(expected - set(self.histogram) - {0, spec.ignore}) if self.labels_read else [],
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
            offending_files=len(self.offending),
            offending=dict(sorted(self.offending.items())),
            kind='voxels',
            reasons=dict(sorted((+self.reasons).items())),
            class_names=[spec.names.get(value, '') for value in range(highest + 1)] if highest < MOST_KEYS else [],
            histogram=dict(sorted(self.histogram.items())),
            volumes=volumes,
        )


_LAYOUTS = {V1: ' in the layout of v1', MSD: ' in the layout of the Decathlon'}
_FLAT_CASES = 8
#: Maximum number of cases whose records are kept to try edits.
_KEPT = 5000


class CaseSource(Source):
    """One raw data set of nnU-Net; ``root`` is the folder of its dataset.json."""

    def __init__(self, root: str) -> None:
        super().__init__(root)
        self.root = os.path.abspath(root)
        self.spec = read_spec(os.path.join(root, 'dataset.json'))
        self.listing = list_cases(self.root, self.spec)
        self._records: List[CaseRecord] = []
        if self.listing.cases or self.spec.file_ending:
            judge_count(self.spec, self.listing.found)
        example = next((image for case in self.listing.cases for image in case.images), None)
        self.reader, notes = choose_reader(self.spec.reader, self.spec.file_ending, example)
        self.notes = [
            Message(
                'nnU-Net raw data set{layout}, {cases}{reader}',
                layout=_LAYOUTS.get(self.spec.layout, ''),
                cases=quantity(self.count(), 'case'),
                reader=Message('; {reader} reads {ending} files', reader=self.reader, ending=self.spec.file_ending)
                if self.reader
                else '',
            ),
            *notes,
        ]
        if self.spec.layout in CONVERSIONS:
            entries = list_missing_entries(self.spec.layout, self.spec.content)
            lacking = f' (before that, add {entries} to dataset.json)' if entries else ''
            command = CONVERSIONS[self.spec.layout]
            self.notes.append(f'nnU-Net v2 reads this data set only after a conversion: {command}{lacking}')
        if not self.reader and self.spec.file_ending:
            endings = ', '.join(sorted({ending for known in READERS.values() for ending in known}))
            self.spec.add(KEYS, f'nnU-Net does not read {self.spec.file_ending} files; it reads {endings}')

    def skip_volumes(self, why: str) -> None:
        """Skip the volumes, which cannot be read; a scan then checks only dataset.json and the names of the files."""
        self.reader = ''
        self.notes.append(Message('the volumes are not read: {why}', why=why))

    def count(self) -> int:
        """Return the number of cases, for the progress of a scan."""
        return len(self.listing.cases)

    def scan(self, mapper: Mapper = scan_here, on_files: Callable[[int], None] = lambda files: None) -> ScanResult:
        """Read all cases, and return the facts of the data set."""
        summary = CaseSummary(self.spec, self.root)
        self._records.clear()
        _import_decoders(self.reader)
        # A volume takes at least 0.1 s, a flat image about ten times the overhead of a task.
        size = _FLAT_CASES if self.reader == 'NaturalImage2DIO' else 1
        chunks = split_into_chunks(self.listing.cases if self.reader else [], size)
        for records in mapper(chunks, CaseTask(self.reader, self.spec.expected)):
            for record in records:
                summary.add(record)
                if len(self._records) <= _KEPT:
                    self._records.append(record)
            on_files(len(records))
        return ScanResult(summary.to_facts(self.listing, self.reader), root=self.root)

    def scan_changed(
        self, plan_again: Callable[[], Optional[Source]], files: FileChanges, contents: Callable[[], Dict[str, bytes]]
    ) -> Optional[LabelFacts]:
        """Predict the facts after an edit, from the records of the last scan; see :meth:`recount`."""
        return self.recount(**files.get(self.root, {}))

    def recount(self, dataset_json: Sequence[Tuple[str, Any]] = (), **changes: Any) -> Optional[LabelFacts]:
        """Predict the facts for new entries in dataset.json, and for label files as :func:`relabel` would change them.

        Return ``None`` if the data set has so many cases that the last scan did not keep all records.
        """
        if len(self._records) > _KEPT:
            return None
        spec = build_spec({**self.spec.content, **dict(dataset_json)}, self.root)
        spec.layout = self.spec.layout
        judge_count(spec, self.listing.found)
        summary = CaseSummary(spec, self.root)
        for record in self._records:
            summary.add(relabel(record, **changes))
        return summary.to_facts(self.listing, self.reader)


def _import_decoders(reader: str) -> None:
    """Import the decoders before worker processes are forked, so that no worker has to import them again."""
    for module in ('PIL.Image',) if reader == 'NaturalImage2DIO' else ('nibabel', 'SimpleITK'):
        is_installed(module)
    find_gzip_decoder()


class NnUNet(Format):
    """Format of nnU-Net: the target is a raw data set, its dataset.json, or a folder of several data sets."""

    name = 'nnunet'
    endings = ('dataset.json',)
    beside_suffix = True

    def detect(self, target: str) -> bool:
        return bool(find_raw_datasets(target))

    def sets(self, target: str, options: ScanOptions) -> Sets:
        sources = [CaseSource(folder) for folder in find_raw_datasets(target)]
        for source in sources:
            why = explain_unread(source.reader, source.spec.file_ending)
            if why and not {LABELS, REGIONS} & set(source.spec.faults):
                raise CannotScan(f'{source.name}: {why}')
            if why:
                source.skip_volumes(why)  # the faults of dataset.json stop nnU-Net anyway
        return Sets(list(sources))
