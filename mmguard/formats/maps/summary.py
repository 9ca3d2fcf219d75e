"""Records of label maps, and a summary of many records that is bounded in memory and independent of their order."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, field
from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Tuple

from mmguard.facts.labels import MOST_FILES, LabelFacts, MapFacts
from mmguard.formats.faults import MISSING, Counts, Examples, make_printable
from mmguard.formats.options import MapSettings

Shape = Tuple[int, ...]


class MapItem(NamedTuple):
    """A label map to read, and its image, if known."""

    path: str
    image: Optional[str] = None


@dataclass
class MapRecord:
    """Record of one label map, as stored and as loaded by the framework."""

    path: str  #: Path of the label map.
    image: Optional[str] = None  #: Path of the image that the file labels.
    backend: str = 'pillow'  #: Decoder that produced ``loaded``.
    form: str = ''  #: Pixel format of the file, see :class:`~mmguard.facts.labels.MapFacts`.
    shape: Optional[Shape] = None  #: (height, width), or (z, y, x) of a volume.
    image_form: str = ''  #: Pixel format of the image.
    image_shape: Optional[Shape] = None  #: (height, width) of the image after its EXIF rotation.
    #: Stored value -> number of pixels, for the most frequent values; for color files only if they hold gray values.
    raw: Dict[int, int] = field(default_factory=dict)
    #: Loaded value (uint8, before any shift or map) -> number of elements; ``None`` if it equals ``raw``.
    loaded: Optional[Dict[int, int]] = None
    #: Changes made by the loader: ``'wrapped'`` (modulo 256), ``'colors'`` (each channel becomes a label), ``'scaled'``
    #: (stretched to 0..255), ``'truncated'`` (fractions cut off).
    changes: List[str] = field(default_factory=list)
    #: Value that is not an integer -> number of pixels, for the lowest few of a float file.
    fractions: Dict[str, int] = field(default_factory=dict)
    #: ``'r,g,b'`` -> number of pixels, for color files with at most 256 colors.
    colors: Dict[str, int] = field(default_factory=dict)
    lossy: bool = False  #: True if the file is compressed with loss.
    is_black: bool = False  #: True if the palette shows all values in the file as black.
    #: Loaded value -> number of its pixels that have both a lower and a higher neighbor; only for values that were
    #: invalid when the file was read.
    between: Dict[int, int] = field(default_factory=dict)
    fault: str = ''  #: Fault of the file, in two or three words; empty if the file was read.
    detail: str = ''  #: The decoder's error message.
    image_fault: str = ''  #: Fault of the image.

    @property
    def as_loaded(self) -> Dict[int, int]:
        """Loaded value -> number of elements."""
        return self.raw if self.loaded is None else self.loaded

    def decode(self, stored: int) -> int:
        """Return the loaded value, 0 to 255, of a stored value in ``raw``."""
        if 'scaled' in self.changes and self.loaded is not None:
            return dict(zip(sorted(self.raw), sorted(self.loaded)))[stored]
        return stored % 256


MAX_COLORS = 256
#: Maximum number of different fractions that are counted in a file, and in a data set.
FEW_FRACTIONS, MAX_FRACTIONS = 16, 64
_FEW = 5
#: Forms that pillow decodes to the stored values.
_AS_STORED = {'gray8', 'palette8', 'bool'}


class NamedFiles(Dict[Any, Examples]):
    """Mapping from a key to the number of files with this key, and the names of the first ``keep`` of them."""

    def __init__(self, keep: int = _FEW) -> None:
        super().__init__()
        self.keep = keep

    def add(self, key: Any, path: str) -> None:
        self.setdefault(key, Examples(self.keep)).add(path)

    def merge(self, other: Dict[Any, Examples]) -> None:
        for key, files in other.items():
            self.setdefault(key, Examples(self.keep)).merge(files)


class MapSummary:
    """Summary of many records of label maps.

    ``add`` and ``merge`` are associative and commutative as long as a data set has at most 65,536 stored values
    and 256 colors; counts of trained labels (at most 256) are always exact. Memory does not grow with the
    number of files, except for the names of the first ``MOST_FILES`` files with invalid labels.
    """

    def __init__(self, settings: MapSettings) -> None:
        self.settings = settings
        self.table = settings.table()
        self.files = self.total = self.offending_files = 0
        self.offending = Counts(MOST_FILES)  #: File with invalid labels -> their number.
        self.lossy = self.gray_in_color = self.black_palettes = 0
        self.uncounted = 0  #: Number of files with too many colors to count.
        self.invalid_looked_at = self.invalid_between = 0
        #: Decoded value -> number of elements; trained label -> number of elements.
        self.loaded, self.trained = Counts(), Counts()
        self.files_with_class = Counts()
        #: Class -> number of valid pixels in the files that contain the class; empty after ``relabel``.
        self.pixels_with_class = Counts()
        self.raw, self.files_with, self.examples = Counts(), Counts(), NamedFiles()
        self.forms, self.form_examples = Counts(), NamedFiles()
        #: Invalid label -> the lowest few stored values that are loaded as this label.
        self.stored: Dict[int, List[int]] = {}
        self.image_forms, self.changes = Counts(), Counts()
        self.fractions, self.colors = Counts(MAX_FRACTIONS), Counts(MAX_COLORS)
        self.unreadable = NamedFiles(20)
        self.all_void, self.size_mismatches = Examples(), Examples()
        self.missing_labels, self.missing_images, self.duplicates = Examples(), Examples(), Examples()
        #: Worst files: (-number of invalid elements, path, image, invalid values as stored, invalid labels).
        self.worst = Examples()

    def add(self, record: MapRecord) -> None:
        self.files += 1
        if record.image_fault == MISSING:
            self.missing_images.add(record.image)
        elif record.image_fault:
            self.unreadable.add(f'image {record.image_fault}', str(record.image))
        elif record.image_form:
            self.image_forms.add(record.image_form)
        if record.fault:
            self.unreadable.add(record.fault, record.path)
            if record.fault == MISSING:
                self.missing_labels.add(record.path)
            return
        self.forms.add(record.form)
        self.form_examples.add(record.form, record.path)
        self.lossy += record.lossy
        self.black_palettes += record.is_black
        for change in record.changes:
            self.changes.add(change)
        self.fractions.merge(record.fractions)
        self.colors.merge(record.colors)
        self.uncounted += record.form in ('rgb', 'rgba') and not record.colors
        self.gray_in_color += 'colors' in record.changes and bool(record.raw) and record.form != 'palette8'
        if record.shape and record.image_shape and record.shape != record.image_shape:
            self.size_mismatches.add((record.path, record.shape, record.image_shape))
        self.raw.merge(record.raw)
        for value in record.raw:
            if self.files_with.add(value):
                self.examples.add(value, record.path)
        self._add_labels(record)

    def _add_labels(self, record: MapRecord) -> None:
        labels = Counts()
        for value, count in record.as_loaded.items():
            labels.add(self.table[value], count)
        self.loaded.merge(record.as_loaded)
        self.trained.merge(labels)
        for label in labels:
            self.files_with_class.add(label)
        self.total += sum(labels.values())
        classes = {label: count for label, count in labels.items() if 0 <= label < self.settings.num_classes}
        classes.pop(self.settings.ignore_index, None)
        for label in classes:
            self.pixels_with_class.add(label, sum(classes.values()))
        if set(labels) == {0 if record.form == 'volume' else self.settings.ignore_index}:
            self.all_void.add(record.path)
        invalid = {label: count for label, count in labels.items() if not self.settings.is_valid(label)}
        if invalid:
            self.offending_files += 1
            self.offending.add(record.path, sum(invalid.values()))
            label_of = {value: self.table[record.decode(value)] for value in record.raw}
            stored = {value: n for value, n in record.raw.items() if not self.settings.is_valid(label_of[value])}
            for value in stored:
                self._add_stored(label_of[value], [value])
            where = (record.path, record.image or '')
            self.worst.add((-sum(invalid.values()), *where, tuple(_rank(stored)[:_FEW]), tuple(_rank(invalid)[:_FEW])))
            if record.between:
                self.invalid_looked_at += sum(invalid.values())
                self.invalid_between += sum(record.between.values())

    def _add_stored(self, label: int, values: List[int]) -> None:
        self.stored[label] = sorted({*self.stored.get(label, ()), *values})[:_FEW]

    def merge(self, other: MapSummary) -> None:
        """Add another summary with the same settings."""
        for name, value in vars(other).items():
            if isinstance(value, int):
                setattr(self, name, getattr(self, name) + value)
            elif name == 'examples':  # only for values that are counted here
                self.examples.merge({key: files for key, files in value.items() if key in self.files_with})
            elif isinstance(value, (Examples, Counts, NamedFiles)):
                getattr(self, name).merge(value)
        for label, values in other.stored.items():
            self._add_stored(label, values)

    def relabel(self, settings: MapSettings) -> MapSummary:
        """Return the summary of the same files with other settings; elements are counted exactly.

        The number of files with a label is estimated: it is the largest number of files with one of its values.
        """
        other = copy(self)
        other.settings, other.table = settings, settings.table()
        other.trained, other.files_with_class, other.pixels_with_class = Counts(), Counts(), Counts()
        other.stored, other.offending = {}, Counts()
        if settings.backend == 'pillow' != self.settings.backend and not {*self.forms} - _AS_STORED:
            other.loaded, other.changes = self.raw, Counts()
        for value, count in other.loaded.items():
            label = other.table[value]
            other.trained.add(label, count)
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
        """Return the facts for the diagnosis, with file names relative to ``root``."""

        def names(files: Examples) -> List[str]:
            return [make_printable(file, root) for file in files.first]

        lists = ('all_void', 'size_mismatches', 'missing_labels', 'missing_images', 'duplicates')
        counts = {name: getattr(self, name).count for name in lists if getattr(self, name)}
        counts.update({f'unreadable {fault}': files.count for fault, files in sorted(self.unreadable.items())})
        share = self.invalid_between / self.invalid_looked_at if self.invalid_looked_at else None
        maps = MapFacts(
            raw=dict(sorted(self.raw.items())),
            files_with=dict(sorted(self.files_with.items())),
            forms=dict(_rank(self.forms)),
            lossy=self.lossy,
            loaded_otherwise=dict(_rank(self.changes)),
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
            files_with_class=dict(sorted(self.files_with_class.items())),
            pixels_with_class=dict(sorted(self.pixels_with_class.items())),
            image_forms=dict(_rank(self.image_forms)),
            colors={as_color(color): count for color, count in _rank(self.colors)},
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
            histogram=dict(sorted(self.trained.items())),
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


def _rank(counts: Dict[Any, int]) -> List[Tuple[Any, int]]:
    """Return (key, number) pairs, the largest numbers first."""
    return sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))


def as_color(color: str) -> Tuple[int, int, int]:
    """Parse a color: ``'128,64,0'`` -> ``(128, 64, 0)``."""
    red, green, blue = map(int, color.split(','))
    return red, green, blue
