"""Commands as they are typed: what a command prints, and its exit code."""

from __future__ import annotations

from pathlib import Path

import pytest
from typed_commands import TYPED

from mmguard.cli import main


@pytest.mark.parametrize('name', list(TYPED))
def test_the_command_says_what_is_wrong(name: str, tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    typed = TYPED[name]
    code = main(typed.argv(tmp_path))
    printed = capsys.readouterr()
    said = ' '.join(f'{printed.out} {printed.err}'.split())
    assert code == typed.exit, said
    assert all(words in said for words in typed.says), said
    assert not any(words in said for words in typed.never), said
