"""The plot of a log: where it begins, and where it ends."""

from __future__ import annotations

from pathlib import Path
from typing import List

import pytest

from mmguard import Tally
from mmguard.cli import main
from mmguard.log.tally_log import TallyLog


@pytest.mark.parametrize('places', [[3], [3, 4], [1, 30], [999, 20_000]], ids=str)
def test_the_ends_of_the_axis(places: List[int], tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    with TallyLog(str(tmp_path), num_classes=4) as log:
        for place in places:
            log.write(place, [Tally(10, 1, 0, {7: 1}, 'a.png')], kind='pixels')
    main(['report', str(tmp_path), '--html', str(tmp_path / 'page.html')])
    axis = next(line for line in capsys.readouterr().out.splitlines() if line.split()[:1] == ['iteration'])
    numbers = [f'{place:,}' for place in places]
    assert axis.split()[1:] == numbers
    page = (tmp_path / 'page.html').read_text(encoding='utf-8')
    assert f'<span>iteration {numbers[0]}</span><span>{"".join(numbers[1:])}</span>' in page
