"""Arguments that no command can take are refused by the parser, with a message of one line."""

from __future__ import annotations

from typing import List

import pytest

from mmguard.cli import main

HUGE = '9' * 30


@pytest.mark.parametrize(
    ('words', 'said'),
    [
        (['scan', '.', '--num-classes', HUGE], 'must be at most 2,147,483,647'),
        (['scan', '.', '--num-classes', '-1'], 'must be at least 1'),
        (['scan', '.', '--ignore-index', HUGE], 'must be at most 9,223,372,036,854,775,807'),
        (['fix', '.', '--out', 'new', '--ignore-index', f'-{HUGE}'], 'must be at most'),
        (['scan', '.', '--processes', '100000000'], 'must be at most 1,024'),
        (['scan', '.', '--label-map', f'1:{HUGE}'], 'must be at most'),
        (['scan', '.', '--label-map', '{"1": Infinity}'], 'write a label map as'),
        (['scan', '.', '--label-map', '{"a":' + '[' * 100_000], 'write a label map as'),
        (['fix', '.', '--out', 'new', '--colours', '(' * 5000], 'must be {(R, G, B): label, ...}'),
    ],
)
def test_what_no_command_takes(words: List[str], said: str, capsys: pytest.CaptureFixture) -> None:
    with pytest.raises(SystemExit, match='2'):
        main(words)
    error = capsys.readouterr().err.splitlines()[-1]
    assert said in error
    assert len(error) < 300
