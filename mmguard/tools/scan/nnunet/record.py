"""What is known about the files of one case."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, field
from typing import Any, Dict, List, Optional, Tuple

from mmguard.tools.scan.record import Stamp

#: Of neighbours in a picture so many differ.
MOSTLY = 0.7
#: A peak is so wide.
_END = 32


@dataclass
class FileRecord:
    """One volume."""

    path: str  #: The file.
    stamp: Optional[Stamp] = None  #: Its size and time of change.
    fault: str = ''  #: Why it cannot be read, in two or three words; empty if it was read.
    detail: str = ''  #: The same with figures.
    missing: int = 0  #: Voxels that are missing at the end of the file.
    dtype: str = ''  #: Of the voxels as stored.
    shape: List[int] = field(default_factory=list)  #: (channels, z, y, x), as nnU-Net has it.
    dimension: int = 0  #: Axes of the file.
    #: ``spacing``, ``origin``, ``direction``, ``affine``: See ``readers.volume.Geometry``.
    spacing: List[float] = field(default_factory=list)
    origin: List[float] = field(default_factory=list)
    direction: List[float] = field(default_factory=list)
    affine: List[float] = field(default_factory=list)
    form: str = ''  #: What about its form nnU-Net does not take.
    scaling: List[float] = field(default_factory=list)  #: slope and intercept of the header, where they change values.
    #: Of labels, value as nnU-Net reads it (float32) -> voxels; the most frequent ones.
    values: Dict[str, int] = field(default_factory=dict)
    left_out: int = 0  #: Voxels of further values.
    fractions: int = 0  #: Voxels that are no integers.
    #: ``nan``, ``inf``: Voxels that are not finite.
    nan: int = 0
    inf: int = 0
    #: ``pairs``, ``unlike``: Neighbours along a line, and those of them that differ; two of the most frequent value are
    #: no pair. Of label files with many values.
    pairs: int = 0
    unlike: int = 0
    #: Value (or ``'nan'``, ``'inf'``, ``'fractions'``) that is not expected -> slice -> voxels.
    slices: Dict[str, Dict[int, int]] = field(default_factory=dict)

    @property
    def is_read(self) -> bool:
        return bool(self.shape) and not self.fault

    @property
    def voxels(self) -> int:
        number = 1 if self.shape else 0
        for length in self.shape:
            number *= length
        return number

    @property
    def is_picture(self) -> bool:
        """Whether a label file holds intensities, which differ from voxel to voxel: labels are alike over regions."""
        return self.unlike > MOSTLY * self.pairs and not self._is_two_peaks

    @property
    def _is_two_peaks(self) -> bool:
        """Whether nearly all values lie at both ends of 8 bits: a binary mask that was compressed or resized."""
        counts = {int(value): count for value, count in self.values.items() if is_whole(value)}
        low = sum(count for value, count in counts.items() if 0 <= value <= _END)
        high = sum(count for value, count in counts.items() if 255 - _END <= value <= 255)
        return low + high > 0.8 * self.voxels and min(low, high) > 0.005 * self.voxels

    @property
    def has_turns(self) -> bool:
        """Whether slices are worth naming: a flat image has one."""
        return len(self.shape) > 1 and (self.shape[1] > 1 or self.shape[0] > 1)


@dataclass
class CaseRecord:
    """One case."""

    path: str  #: Its label file: the key in the journal.
    case: str  #: Its name.
    reader: str = ''  #: The class of nnU-Net that it was read as by.
    #: Which values were expected when it was read, as :func:`digest_of` says: of these no slices are kept.
    expected: str = ''
    label: Optional[FileRecord] = None  #: The label file, where there is one.
    images: List[FileRecord] = field(default_factory=list)  #: The image files.

    def to_line(self) -> str:
        """One line of JSON, what is empty left out."""
        words = {key: value for key, value in vars(self).items() if value or key in ('path', 'case')}
        if self.label is not None:
            words['label'] = _lean(self.label)
        words['images'] = [_lean(image) for image in self.images]
        return json.dumps(words)

    @classmethod
    def from_line(cls, line: str) -> CaseRecord:
        """Reads ``to_line`` back.

        Raises:
            ValueError: Not such a line.
        """
        try:
            words: Dict[str, Any] = json.loads(line)
            if 'label' in words:
                words['label'] = _file(words['label'])
            words['images'] = [_file(image) for image in words['images']]
            return cls(**words)
        except (TypeError, AttributeError, KeyError, ValueError, RecursionError) as error:
            raise ValueError(f'not a record of a case: {line[:80]!r}') from error


def digest_of(values: Tuple[int, ...]) -> str:
    """A short text that is another one for other values: a record for each of many cases must not hold 60,000."""
    return hashlib.blake2b(repr(values).encode(), digest_size=8).hexdigest()


def _lean(record: FileRecord) -> Dict[str, Any]:
    return {key: value for key, value in asdict(record).items() if value or key == 'path'}


def _file(words: Dict[str, Any]) -> FileRecord:
    if 'stamp' in words:
        words['stamp'] = tuple(words['stamp'])
    slices = words.get('slices', {})
    words['slices'] = {value: {int(z): n for z, n in counts.items()} for value, counts in slices.items()}
    return FileRecord(**words)


def is_whole(value: str) -> bool:
    """Whether a value of ``FileRecord.values`` is an integer.

    Example:
        >>> is_whole('-3'), is_whole('0.9998'), is_whole('1e-05')
        (True, False, False)
    """
    return value.lstrip('-').isdigit()
