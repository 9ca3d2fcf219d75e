"""rich's console, table and text. Commands need rich, which is in the ``[scan]`` extra; the runtime does not."""

from __future__ import annotations

from typing import Any, Iterator

from rich.console import Console as _Console
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from mmguard.text import visible

__all__ = ['Console', 'Table', 'Text']


class Console(_Console):
    """A console that escapes control characters and adds no colours of its own."""

    def render(self, *arguments: Any, **options: Any) -> Iterator[Segment]:
        """Escape every invisible character."""
        for segment in super().render(*arguments, **options):
            yield segment if segment.control else Segment(visible(segment.text), segment.style)
