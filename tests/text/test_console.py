"""Foreign text on a console."""

from __future__ import annotations

import io

from mmguard.text.console import Console, Table, Text

HOSTILE = '\x1b]0;owned\x07\x1b[2J\r\x9b1m\u202e\u2066\u200b\ufeff\udce9\ud800\x00'


def test_no_console_passes_a_code_on() -> None:
    file = io.StringIO()
    shown = Console(file=file)
    table = Table(title=HOSTILE)
    table.add_column('file')
    table.add_row(HOSTILE)
    for part in (HOSTILE, Text(HOSTILE), table):
        shown.print(part)
    shown.rule(HOSTILE)
    assert file.getvalue().replace('\n', '').isprintable()
    assert file.getvalue().count('\\u202e') >= 4
