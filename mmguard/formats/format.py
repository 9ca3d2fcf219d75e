"""Base classes of label formats, and of the data sets that a scan reads."""

from __future__ import annotations

import hashlib
import itertools
import math
import os
from contextlib import suppress
from dataclasses import dataclass, field
from typing import (
    Any,
    Callable,
    Dict,
    FrozenSet,
    Iterable,
    Iterator,
    List,
    NamedTuple,
    Optional,
    Protocol,
    Tuple,
    TypeVar,
)

from mmguard.errors import CannotRun
from mmguard.facts.labels import AnnotationFacts, ConfigFacts, FileChanges, LabelFacts
from mmguard.files.containment import is_really_inside
from mmguard.files.regular import check_regular, read_regular
from mmguard.formats.files import FILES, walk
from mmguard.formats.options import FixOptions, ScanOptions
from mmguard.labels.instances import LABEL_REASON, describe_boxes

#: Maximum number of bytes of a file that is corrected.
LARGEST = 1 << 31


class NotCorrected(Exception):
    """Reason why `mmguard fix` cannot correct a file, which is left out of the copy."""


class Unreadable(NotCorrected):
    """Reason why no decoder can read a file."""


class CannotCorrect(CannotRun):
    """Reason why `mmguard fix` cannot correct any file of a target."""


class NotTried(CannotRun):
    """Reason why mmguard does not try an edit, e.g. a file that cannot be corrected."""


class Corrected(NamedTuple):
    """Result of correcting one file: its new content and the changes."""

    data: bytes  #: Content of the corrected file; the original content if nothing was changed.
    ending: str  #: Ending of the file name in the copy.
    changes: List[str]  #: Changes as text; empty if nothing was changed.
    values: Dict[str, int]  #: Value as stored -> number of elements that were changed for this value.
    counts: Dict[str, int]  #: Kind of change (skipped, remapped, ...) -> number of changes.
    invalid: Optional[Dict[str, int]] = None  #: Value -> number of elements that stay invalid.


class LabelFiles(NamedTuple):
    """Label files of a target, and the functions that correct and read them."""

    files: List[Tuple[str, str]]  #: (path, name in the copy) of each file.
    correct: Callable[[bytes, str], Corrected]  #: Corrects a file, given its content and its name in the copy.
    images: FrozenSet[str] = frozenset()  #: Names of images, which become links in the copy.
    #: Reads one corrected file as a scan does (``None``: not a label file). A file with faults is not written.
    read: Optional[Callable[[str], Optional[LabelFacts]]] = None
    changed_copies: FrozenSet[str] = frozenset()  #: Names of files that change only because their copy is elsewhere.
    folder: str = ''  #: Folder that was searched; empty if it is the target.


def correct_file(target: str, files: LabelFiles, path: str, name: str) -> Tuple[bytes, Corrected, int]:
    """Return the original bytes of a label file, the :class:`Corrected` file, and the file permissions.

    Args:
        target (str): The folder or file that is corrected.
        files (LabelFiles): Label files of ``target``.
        path (str): Path of the file.
        name (str): Name of the file in the corrected copy.

    Raises:
        NotCorrected: The file cannot be corrected.
        OSError: The file cannot be read.
    """
    if path != target and not is_really_inside(path, get_folder(target)):
        check_regular(path)
        raise NotCorrected('a symbolic link to a file outside of TARGET: replace it with a copy of the file (cp -L)')
    data, mode = read_regular(path, LARGEST), os.stat(path).st_mode
    corrected = files.correct(data, name)
    if files.read is not None:
        with FILES.replaced({path: corrected.data}), suppress(ValueError):  # an image may have no object
            _check(files.read(path) or LabelFacts())
    return data, corrected, mode


def get_folder(target: str) -> str:
    return target if os.path.isdir(target) else os.path.dirname(target)


def compute_digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _check(labels: LabelFacts) -> None:
    found = labels.annotations or AnnotationFacts()
    # A VOC file without a size is fine: its image is not in the folder of the copy.
    wrong = [what for what in found.unreadable if not what.startswith('has no size')]
    wrong += describe_boxes(labels.reasons)
    wrong += [f'{count:,} without {key}' for key, count in found.without_key.items()]
    if labels.reasons.get(LABEL_REASON) or labels.coco.unnamed:
        wrong.append('annotations of categories that are not listed')
    for what, ids in (('images', labels.coco.duplicate_image_ids), ('categories', labels.coco.duplicate_category_ids)):
        wrong += [f'{what} that share an id: {", ".join(map(str, ids[:5]))}'] if ids else []
    if wrong:
        raise NotCorrected(f'cannot be corrected: {"; ".join(wrong)}')


def keep_file(data: bytes, name: str) -> Corrected:
    return Corrected(data, get_ending(name), [], {}, {})


def get_ending(name: str) -> str:
    return os.path.splitext(name)[1]


def list_names_below(folder: str) -> Iterator[str]:
    """Yield the relative paths of all files in a folder and its subfolders, except the manifest of `mmguard fix`."""
    for place, names in walk(folder, lambda *_: None):
        for name in names:
            path = os.path.relpath(os.path.join(place, name), folder)
            if path != MANIFEST:
                yield path


#: Name of the JSON manifest that `mmguard fix` writes (no label file has this ending), and the writer named in it.
MANIFEST, WRITER = 'mmguard.manifest', 'mmguard fix'


def number(value: Any) -> Optional[float]:
    """Convert a finite number, or a string of such a number, to float. Return ``None`` for anything else."""
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        return None
    try:
        found = float(value)
    except (ValueError, OverflowError):
        return None
    return found if math.isfinite(found) else None


def parse_corners(values: Any) -> Optional[Tuple[float, ...]]:
    """Convert a list of four finite numbers, or strings of numbers, to floats. Return ``None`` for anything else."""
    found = [*map(number, values)] if isinstance(values, list) and len(values) == 4 else [None]
    return None if None in found else tuple(found)  # type: ignore[arg-type]


def shorten_number(value: float) -> float:
    """Return a float without a fraction as an int, any other float unchanged."""
    return int(value) if value.is_integer() else value


Element = TypeVar('Element')

#: A chunk has at most 1 / _SHARE of the elements before it. This limits the work of the last running process, and the
#: work that is repeated if a process dies.
_SHARE = 64


def split_into_chunks(elements: Iterable[Element], size: int, limit: int = 0) -> Iterator[List[Element]]:
    """Yield lists of ``size`` elements, and later of up to ``limit`` elements; the last list may be shorter.

    Few large lists save time: sending a task and its result costs half a millisecond, as much as reading a tiny file.
    """
    source, done = iter(elements), 0
    while True:
        chunk = list(itertools.islice(source, max(size, min(limit, done // _SHARE))))
        if not chunk:
            return
        done += len(chunk)
        yield chunk


class Task(Protocol):
    """Settings of a scan, and the code that reads items with them. Each process receives a task with its items."""

    def scan(self, items: List[Any]) -> Any:
        """Read the items and return their common result."""

    def report_crash(self, item: Any) -> Any:
        """Return the result for an item that crashed the process reading it."""


#: Runs ``settings.scan`` over chunks of items, in any order, with a bounded number of chunks in flight.
Mapper = Callable[[Iterable[List[Any]], Task], Iterator[Any]]


def scan_here(chunks: Iterable[List[Any]], settings: Task) -> Iterator[Any]:
    """Yield the result of each chunk, computed in this process."""
    for chunk in chunks:
        yield settings.scan(chunk)


class CannotScan(CannotRun):
    """Reason why `mmguard scan` cannot read a target."""


@dataclass
class ScanResult:
    """Result of scanning a data set."""

    facts: LabelFacts  #: Facts for the diagnosis.
    worst: List[Dict[str, Any]] = field(default_factory=list)  #: The files with the most invalid labels.
    ignored: List[int] = field(default_factory=list)  #: Values as stored that are not trained on.
    root: str = ''  #: Folder that file names are relative to.


class Source:
    """Base class of data sets that a scan reads.

    Args:
        name (str): Displayed name.
        notes (list[str], optional): Notes for the user on how the data set is read.
    """

    def __init__(self, name: str, notes: Optional[List[str]] = None) -> None:
        self.name = name
        self.notes = [] if notes is None else notes

    def count(self) -> Optional[int]:
        """Return the approximate number of files, to show progress, or ``None`` if counting takes too long."""
        return None

    def scan(self, mapper: Mapper = scan_here, on_files: Callable[[int], None] = lambda files: None) -> ScanResult:
        """Read the data set, and call ``on_files`` repeatedly with the number of files read since its last call.

        Raises:
            OSError, ValueError: There is nothing to read; the message says why.
        """
        raise NotImplementedError

    def scan_changed(
        self, plan_again: Callable[[], Optional[Source]], files: FileChanges, contents: Callable[[], Dict[str, bytes]]
    ) -> Optional[LabelFacts]:
        """Return the facts that the data set would have after an edit, or ``None`` if they cannot be predicted.

        Args:
            plan_again (callable): Returns this data set as the edited config or options define it.
            files (dict): File or folder that changes -> options of `mmguard fix`.
            contents (callable): Returns the changed files as {path: new content}.
        """
        raise NotImplementedError


class LabelSet(Source):
    """A data set that one function reads.

    Args:
        read_facts (callable): Returns the facts. If ``by_tasks`` is true, it is called with a mapper and ``on_files``.
        files (list, optional): Names of the files to read, to detect identical splits.
    """

    def __init__(
        self,
        name: str,
        read_facts: Callable[..., LabelFacts],
        notes: Optional[List[str]] = None,
        files: Optional[List[Any]] = None,
        by_tasks: bool = False,
    ) -> None:
        super().__init__(name, notes)
        self.read = read_facts
        self.files = files or []
        self.by_tasks = by_tasks

    def scan(self, mapper: Mapper = scan_here, on_files: Callable[[int], None] = lambda files: None) -> ScanResult:
        return ScanResult(self.read(mapper, on_files) if self.by_tasks else self.read())

    def scan_changed(
        self, plan_again: Callable[[], Optional[Source]], files: FileChanges, contents: Callable[[], Dict[str, bytes]]
    ) -> Optional[LabelFacts]:
        with FILES.replaced(contents()):
            source = plan_again()
            return source.scan().facts if isinstance(source, LabelSet) else None


@dataclass
class Sets:
    """Data sets of a target, and facts from a config or the command line."""

    sources: List[Source]  #: The data sets.
    config: ConfigFacts = field(default_factory=ConfigFacts)  #: Facts from a config or the command line.
    failed: List[str] = field(default_factory=list)  #: Data sets that could not be opened, with the reasons.


class Format:
    """Base class of label formats.

    A subclass names a format, detects and reads it, and, if `mmguard fix` supports the format, corrects a file. Reading
    never raises because of the content of a file, whose faults are added to ``AnnotationFacts.unreadable``.
    """

    #: Name of the format in ``AnnotationFacts.format``; ``also`` lists the other names used there.
    name = ''
    also: Tuple[str, ...] = ()
    #: :meth:`detect` is called for files with these endings, and for every folder.
    endings: Tuple[str, ...] = ()
    #: True if the format is also detected with ``--suffix``, which names the ending of label maps.
    beside_suffix = False
    #: True if the meaning of labels depends on ``--labels`` and ``--framework``.
    numbered = False
    #: True if the names of corrected copies may differ from those of the files.
    renames = False
    #: Value of ``--boxes`` that names the box layout of the format.
    right_boxes = 'corners'

    def detect(self, target: str) -> bool:
        """Return True if a file with one of the endings, or a folder, is of this format."""
        raise NotImplementedError

    def read(self, target: str, options: ScanOptions) -> LabelFacts:
        """Read the labels of a target as one data set.

        Raises:
            OSError, ValueError: There is nothing to read; the message says why.
        """
        raise NotImplementedError

    def sets(self, target: str, options: ScanOptions) -> Sets:
        """Return the data sets of a target without reading them. By default, the target is one data set.

        Raises:
            CannotScan: The target has no data set.
        """
        return Sets([LabelSet(target, lambda: self.read(target, options))])

    def correct(self, data: bytes, options: FixOptions) -> Corrected:
        """Return the corrected content of a file, or its original content if no correction is needed.

        Raises:
            NotCorrected: The file cannot be corrected.
        """
        raise CannotCorrect(f'fix does not support the format {self.name}')

    def files(self, target: str, options: FixOptions) -> LabelFiles:
        """Return the label files of a target; by default the target itself.

        Raises:
            CannotCorrect: The target has no file that can be corrected.
        """
        if type(self).correct is Format.correct:
            raise CannotCorrect(
                f'{target} holds no labels that fix can correct: pass the folder of the labels, or a COCO .json'
            )
        files = [(target, os.path.basename(target))]
        return LabelFiles(files, lambda data, _: self.correct(data, options), read=self.read_copy)

    def read_copy(self, path: str) -> LabelFacts:
        """Return the facts of a corrected file, which `mmguard fix` does not write if it still has faults."""
        return self.read(path, ScanOptions())
