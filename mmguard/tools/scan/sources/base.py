"""What the engine asks of a source of label maps."""

from __future__ import annotations

from types import MappingProxyType
from typing import Dict, Iterator, List, Mapping, Optional, Tuple

from mmguard.findings.facts import LoaderFacts
from mmguard.tools.scan.record import MapItem
from mmguard.tools.scan.settings import MapSettings
from mmguard.tools.scan.summary import MapSummary


class MapSource:
    """A data set of label maps.

    Args:
        name (str): What to call it: a folder, or ``'train'``.
        settings (MapSettings): How its files are loaded.
        root (str, optional): Files are named relative to it.
        class_names (list[str]): Its classes, where they have names.
    """

    def __init__(
        self, name: str, settings: MapSettings, root: Optional[str] = None, class_names: Optional[List[str]] = None
    ) -> None:
        self.name = name
        self.settings = settings
        self.root = root
        #: Where its label maps lie.
        self.folder = root or ''
        #: How their names end, where other images lie beside them.
        self.suffix = ''
        self.class_names = class_names or []
        #: What was noticed while the files were listed: partners that are missing, folders that cannot be read.
        self.noticed = MapSummary(settings)
        #: (r, g, b) -> class, where a file beside the label maps says it.
        self.declared: Dict[Tuple[int, int, int], str] = {}
        #: What the user should know of how the files were chosen.
        self.notes: List[str] = []

    def items(self) -> Iterator[MapItem]:
        """The files, one after the other; may be asked for once."""
        raise TypeError(f'{type(self).__name__} lists no files')

    def listed(self) -> Optional[List[MapItem]]:
        """The files, where a config names them: with another config they may be others."""
        return None

    def count(self) -> Optional[int]:
        """About how many there are, for the progress bar; ``None`` where counting would take long."""
        return None

    def sample(self) -> List[str]:
        """A few of the files, for a trial."""
        return []

    def ask_loader(self, copies: Mapping[str, str] = MappingProxyType({})) -> Optional[LoaderFacts]:
        """Return what the framework's own loader makes of a few of the files; ``copies`` are read in place of them."""
        return None
