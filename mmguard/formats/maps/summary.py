"""Summary of a data set of label maps, bounded in memory and independent of the order of addition."""

from __future__ import annotations

from copy import copy
from dataclasses import asdict
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple

from mmguard.facts.labels import MOST_FILES, LabelFacts, MapFacts
from mmguard.formats.faults import MISSING, Examples, make_printable
from mmguard.formats.maps.record import MapRecord
from mmguard.formats.options import MapSettings

#: Maximum number of values (of 16-bit or float files); more are not classes, and further ones are not listed.
MAX_VALUES = 1 << 16
MAX_COLORS = 256
MAX_FRACTIONS = 64
_FEW = 5
_MOST_COUNTED = {'fractions': MAX_FRACTIONS, 'colors': MAX_COLORS, 'offending': MOST_FILES}
#: Number of files that are named per value, form and fault.
_EXAMPLES = {'examples': _FEW, 'form_examples': _FEW, 'unreadable': 20}
#: Forms that pillow decodes to the stored values.
_AS_STORED = {'gray8', 'palette8', 'bool'}


class MapSummary:
    """Sum of records of label maps.

    ``add`` and ``merge`` are associative and commutative as long as a data set has at most 65,536 stored values
    and 256 colors; labels of label maps as trained (at most 256) are always exact. Memory does not grow with the
    number of files, except for the names of the first ``MOST_FILES`` files with invalid labels.
    """

    def __init__(self, settings: MapSettings) -> None:
        self.settings = settings
        self.table = settings.table()
        self.files = 0
        self.total = 0
        self.offending_files = 0
        #: File with invalid labels -> their number.
        self.offending: Dict[str, int] = {}
        self.lossy = 0
        self.gray_in_color = 0
        self.black_palettes = 0
        #: Number of files with too many colors to count.
        self.uncounted = 0
        self.invalid_looked_at = 0
        self.invalid_between = 0
        #: Value as decoded -> elements.
        self.loaded: Dict[int, int] = {}
        self.trained: Dict[int, int] = {}
        self.files_with_class: Dict[int, int] = {}
        #: Class -> valid pixels of the files that contain it; not known after ``relabel``.
        self.pixels_with_class: Dict[int, int] = {}
        self.raw: Dict[int, int] = {}
        self.files_with: Dict[int, int] = {}
        self.examples: Dict[int, Examples] = {}
        self.forms: Dict[str, int] = {}
        self.form_examples: Dict[str, Examples] = {}
        #: Invalid label -> the lowest few stored values that become it.
        self.stored: Dict[int, List[int]] = {}
        self.image_forms: Dict[str, int] = {}
        self.changes: Dict[str, int] = {}
        self.fractions: Dict[str, int] = {}
        self.colors: Dict[str, int] = {}
        self.unreadable: Dict[str, Examples] = {}
        self.all_void = Examples()
        self.size_mismatches = Examples()
        self.missing_labels = Examples()
        self.missing_images = Examples()
        self.duplicates = Examples()
        #: Worst files: -invalid elements, path, image, invalid values as stored, as trained.
        self.worst = Examples()

    def add(self, record: MapRecord) -> None:
        self.files += 1
        if record.image_fault:
            self._add_image_fault(record)
        elif record.image_form:
            _count(self.image_forms, record.image_form)
        if record.fault:
            self.add_fault(record.fault, record.path)
            if record.fault == MISSING:
                self.missing_labels.add(record.path)
            return
        _count(self.forms, record.form)
        self.form_examples.setdefault(record.form, Examples(_FEW)).add(record.path)
        self.lossy += record.lossy
        self.black_palettes += record.is_black
        for change in record.changes:
            _count(self.changes, change)
        for fraction, count in record.fractions.items():
            _count(self.fractions, fraction, count, MAX_FRACTIONS)
        for color, count in record.colors.items():
            _count(self.colors, color, count, MAX_COLORS)
        self.uncounted += record.form in ('rgb', 'rgba') and not record.colors
        if 'colors' in record.changes and record.raw and record.form != 'palette8':
            self.gray_in_color += 1
        if record.shape and record.image_shape and record.shape != record.image_shape:
            self.size_mismatches.add((record.path, record.shape, record.image_shape))
        for value, count in record.raw.items():
            _count(self.raw, value, count, MAX_VALUES)
            if _count(self.files_with, value, 1, MAX_VALUES):
                self.examples.setdefault(value, Examples(_FEW)).add(record.path)
        self._add_labels(record)

    def _add_labels(self, record: MapRecord) -> None:
        labels: Dict[int, int] = {}
        for value, count in record.as_loaded.items():
            _count(self.loaded, value, count, MAX_VALUES)
            _count(labels, self.table[value], count)
        for label, count in labels.items():
            _count(self.trained, label, count, MAX_VALUES)
            _count(self.files_with_class, label, 1, MAX_VALUES)
        self.total += sum(labels.values())
        classes = {label: count for label, count in labels.items() if 0 <= label < self.settings.num_classes}
        classes.pop(self.settings.ignore_index, None)
        for label in classes:
            _count(self.pixels_with_class, label, sum(classes.values()))
        if set(labels) == {0 if record.form == 'volume' else self.settings.ignore_index}:
            self.all_void.add(record.path)
        invalid = {label: count for label, count in labels.items() if not self.settings.is_valid(label)}
        if invalid:
            self.offending_files += 1
            _count(self.offending, record.path, sum(invalid.values()), MOST_FILES)
            stored = {value: n for value, n in record.raw.items() if self._is_invalid(record.decode(value))}
            for value in stored:
                self._add_stored(self.table[record.decode(value)], [value])
            where = (record.path, record.image or '')
            self.worst.add((-sum(invalid.values()), *where, _select_most(stored), _select_most(invalid)))
            if record.between:
                self.invalid_looked_at += sum(invalid.values())
                self.invalid_between += sum(record.between.values())

    def _add_stored(self, label: int, values: List[int]) -> None:
        self.stored[label] = sorted({*self.stored.get(label, ()), *values})[:_FEW]

    def _is_invalid(self, decoded: int) -> bool:
        return not self.settings.is_valid(self.table[decoded])

    def _add_image_fault(self, record: MapRecord) -> None:
        assert record.image is not None
        if record.image_fault == MISSING:
            self.missing_images.add(record.image)
        else:
            self.add_fault(f'image {record.image_fault}', record.image)

    def add_fault(self, fault: str, path: str) -> None:
        """Add a file that could not be read."""
        self.unreadable.setdefault(fault, Examples()).add(path)

    def merge(self, other: MapSummary) -> None:
        """Add another summary, of the same settings."""
        for name, value in vars(other).items():
            own = getattr(self, name)
            if isinstance(value, int):
                setattr(self, name, own + value)
            elif isinstance(value, Examples):
                own.merge(value)
            elif name in _EXAMPLES:
                for key, files in value.items():
                    if name != 'examples' or key in self.files_with:
                        own.setdefault(key, Examples(_EXAMPLES[name])).merge(files)
            elif name == 'stored':
                for label, values in value.items():
                    self._add_stored(label, values)
            elif isinstance(value, dict):
                _add_counts(own, value, _MOST_COUNTED.get(name, MAX_VALUES))

    def relabel(self, settings: MapSettings) -> MapSummary:
        """Return the summary of the same files with other settings; elements are counted exactly.

        The number of files per label is an estimate: that of the label's most frequent value.
        """
        other = copy(self)
        other.settings, other.table = settings, settings.table()
        other.trained, other.files_with_class, other.stored, other.offending = {}, {}, {}, {}
        other.pixels_with_class = {}
        if settings.backend == 'pillow' != self.settings.backend and not {*self.forms} - _AS_STORED:
            other.loaded, other.changes = self.raw, {}
        for value, count in other.loaded.items():
            label = other.table[value]
            _count(other.trained, label, count)
            files = max(self.files_with.get(value, 0), other.files_with_class.get(label, 0))
            other.files_with_class[label] = files
            other._add_stored(label, [value])
        invalid = [label for label in other.trained if not settings.is_valid(label)]
        other.stored = {label: values for label, values in other.stored.items() if label in invalid}
        other.offending_files = max((other.files_with_class[label] for label in invalid), default=0)
        if any(label != settings.ignore_index for label in other.trained):
            other.all_void = Examples() if other.trained != self.trained else self.all_void
        return other

    def to_facts(self, class_names: Sequence[str] = (), root: Optional[str] = None) -> LabelFacts:
        """Return the facts for the diagnosis; files are named relative to ``root``."""

        def names(files: Examples) -> List[str]:
            return [make_printable(file, root) for file in files.first]

        lists = ('all_void', 'size_mismatches', 'missing_labels', 'missing_images', 'duplicates')
        counts = {name: getattr(self, name).count for name in lists if getattr(self, name)}
        counts.update({f'unreadable {fault}': files.count for fault, files in sorted(self.unreadable.items())})
        share = self.invalid_between / self.invalid_looked_at if self.invalid_looked_at else None
        maps = MapFacts(
            raw=_sort(self.raw),
            files_with=_sort(self.files_with),
            forms=_sort_by_count(self.forms),
            lossy=self.lossy,
            loaded_otherwise=_sort_by_count(self.changes),
            at_edges=share,
            all_void=names(self.all_void),
            size_mismatches=[(make_printable(file, root), own, its) for file, own, its in self.size_mismatches.first],
            missing_labels=names(self.missing_labels),
            missing_images=names(self.missing_images),
            duplicates=names(self.duplicates),
            unreadable={fault: names(files) for fault, files in sorted(self.unreadable.items())},
            examples={value: names(files) for value, files in sorted(self.examples.items())},
            fractions={float(value): n for value, n in sorted(self.fractions.items(), key=lambda pair: float(pair[0]))},
            void_files=self.all_void.count,
            files_with_class=_sort(self.files_with_class),
            pixels_with_class=_sort(self.pixels_with_class),
            image_forms=_sort_by_count(self.image_forms),
            colors={as_color(color): count for color, count in _sort_by_count(self.colors).items()},
            gray_in_color=self.gray_in_color,
            black_palettes=self.black_palettes,
            form_examples={form: names(files) for form, files in sorted(self.form_examples.items())},
            counts=counts,
        )
        return LabelFacts(
            values={label: n for label, n in sorted(self.trained.items()) if not self.settings.is_valid(label)},
            num_classes=self.settings.num_classes,
            ignore_index=self.settings.ignore_index,
            total=self.total,
            files=self.files,
            offending_files=self.offending_files,
            offending={make_printable(file, root): count for file, count in sorted(self.offending.items())},
            class_names=list(class_names),
            histogram=_sort(self.trained),
            kind='pixels',
            maps=maps,
            stored={label: values for label, values in sorted(self.stored.items()) if values != [label]},
        )

    def list_worst_files(self, root: Optional[str] = None) -> List[Dict[str, Any]]:
        """Return the files with the most invalid elements, the worst first."""
        return [
            {
                'file': make_printable(path, root),
                'path': path,
                'image': image or None,
                'invalid': -negative,
                'values': {str(value): count for value, count in trained},
                'stored': {str(value): count for value, count in stored},
            }
            for negative, path, image, stored, trained in self.worst.first
        ]

    def totals(self) -> Dict[str, Any]:
        """Return everything as plain data, to compare two scans."""
        return {'facts': asdict(self.to_facts()), 'worst': self.list_worst_files()}


def _count(counts: Dict[Any, int], key: Any, number: int = 1, limit: Optional[int] = None) -> bool:
    if limit is not None and len(counts) >= limit and key not in counts:
        return False
    counts[key] = counts.get(key, 0) + number
    return True


def _add_counts(counts: Dict[Any, int], others: Dict[Any, int], limit: Optional[int] = None) -> None:
    for key, number in others.items():
        _count(counts, key, number, limit)


def _select_most(counts: Dict[int, int]) -> Tuple[Tuple[int, int], ...]:
    return tuple(sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))[:_FEW])


def _sort(counts: Dict[int, int]) -> Dict[int, int]:
    return dict(sorted(counts.items()))


def _sort_by_count(counts: Dict[str, int]) -> Dict[str, int]:
    key: Callable[[Tuple[str, int]], Any] = lambda pair: (-pair[1], pair[0])  # noqa: E731
    return dict(sorted(counts.items(), key=key))


def as_color(color: str) -> Tuple[int, int, int]:
    """Return the channels of ``'128,64,0'``."""
    red, green, blue = map(int, color.split(','))
    return red, green, blue
