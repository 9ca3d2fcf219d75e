"""Record of one label map."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Dict, List, NamedTuple, Optional, Tuple

Shape = Tuple[int, ...]


class MapItem(NamedTuple):
    """A label map to read, and its image, if known."""

    path: str
    image: Optional[str] = None


@dataclass
class MapRecord:
    """Record of one label map, as stored and as loaded by the framework."""

    path: str  #: The file.
    image: Optional[str] = None  #: The image that it labels.
    backend: str = 'pillow'  #: Decoder that ``loaded`` refers to.
    form: str = ''  #: Form of the file, see :class:`~mmguard.facts.labels.MapFacts`.
    shape: Optional[Shape] = None  #: (height, width), or (z, y, x) of a volume.
    image_form: str = ''  #: Form of the image.
    image_shape: Optional[Shape] = None  #: (height, width) of the image as it is shown, turned if its EXIF tag says so.
    #: Value as stored -> pixels, the most frequent ones; of color files only if they hold gray values.
    raw: Dict[int, int] = field(default_factory=dict)
    #: Value as loaded (uint8, before any shift or map) -> elements; ``None``: as ``raw``.
    loaded: Optional[Dict[int, int]] = None
    #: Changes made by the loader: ``'wrapped'``, ``'colors'``, ``'scaled'``, ``'truncated'``.
    changes: List[str] = field(default_factory=list)
    #: Values of float files that are not integers -> pixels; the lowest few.
    fractions: Dict[str, int] = field(default_factory=dict)
    #: ``'r,g,b'`` -> pixels, for color files with at most 256 colors.
    colors: Dict[str, int] = field(default_factory=dict)
    lossy: bool = False  #: Compressed with loss.
    is_black: bool = False  #: The palette shows all values that occur as black.
    #: Value as loaded -> pixels of it that have a lower and a higher neighbor; only for values that were invalid when
    #: the file was read.
    between: Dict[int, int] = field(default_factory=dict)
    fault: str = ''  #: Fault of the file, in two or three words; empty: it was read.
    detail: str = ''  #: The decoder's error message.
    image_fault: str = ''  #: Fault of the image.

    @property
    def as_loaded(self) -> Dict[int, int]:
        """Value as loaded -> elements."""
        return self.raw if self.loaded is None else self.loaded

    def decode(self, stored: int) -> int:
        """Return the loaded value of a value in ``raw``, 0 to 255."""
        if 'scaled' in self.changes and self.loaded is not None:
            return dict(zip(sorted(self.raw), sorted(self.loaded)))[stored]
        return stored % 256
