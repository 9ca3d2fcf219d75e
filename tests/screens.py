"""Tables on a narrow screen."""

from __future__ import annotations

WIDTH = 50


def check_tables_fit(shown: str) -> None:
    """Fail unless each row of a table fits the screen, and no cell is cut off."""
    rows = [line for line in shown.splitlines() if set(line) & set('│┃')]
    assert rows
    assert [row for row in rows if len(row) > WIDTH or '…' in row] == []
