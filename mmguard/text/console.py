"""rich's console, table and text; where rich is not installed, the same as plain text.

mmengine brings rich along. A plain PyTorch environment has none, and a scan must be readable there, too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mmguard.text.visible import visible

__all__ = ['Console', 'Table', 'Text']

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text
else:
    try:
        from rich.console import Console as _Console
        from rich.segment import Segment
        from rich.table import Table
        from rich.text import Text
    except ImportError:
        from mmguard.text.plain_console import Console, Table, Text
    else:

        class Console(_Console):
            """rich's, whose text moves no cursor and colours nothing by itself, wherever it came from."""

            def render(self, *arguments, **options):
                for segment in super().render(*arguments, **options):
                    yield segment if segment.control else Segment(visible(segment.text), segment.style)
