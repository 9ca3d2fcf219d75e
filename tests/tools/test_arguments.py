"""Arguments that no command can take are refused by the parser, with a message of one line."""

from __future__ import annotations

from typing import List

import pytest

from mmguard.cli import main

HUGE = '9' * 30


@pytest.mark.parametrize(
    ('words', 'limit'),
    [
        (['scan', '.', '--num-classes', HUGE], '2,147,483,647'),
        (['scan', '.', '--num-classes', '-1'], ' 1'),
        (['scan', '.', '--ignore-index', HUGE], '9,223,372,036,854,775,807'),
        (['fix', '.', '--out', 'new', '--ignore-index', f'-{HUGE}'], '9,223,372,036,854,775,807'),
        (['scan', '.', '--processes', '100000000'], '1,024'),
        (['scan', '.', '--label-map', f'1:{HUGE}'], '9,223,372,036,854,775,807'),
        (['scan', '.', '--label-map', '{"1": Infinity}'], ''),
        (['scan', '.', '--label-map', '{"a":' + '[' * 100_000], ''),
        (['fix', '.', '--out', 'new', '--colours', '(' * 5000], '{(R, G, B): label, ...}'),
    ],
)
def test_what_no_command_takes(words: List[str], limit: str, capsys: pytest.CaptureFixture) -> None:
    with pytest.raises(SystemExit, match='2'):
        main(words)
    error = capsys.readouterr().err.splitlines()[-1]
    assert words[-2] in error
    assert limit in error
    assert len(error) < 300
