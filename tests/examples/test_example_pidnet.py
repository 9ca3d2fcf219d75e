"""examples/pidnet_mmseg.py keeps what it says."""

from __future__ import annotations

import re

import pytest
from example_scripts import output_of

pytest.importorskip('mmseg')


@pytest.mark.slow
def test_stock_pidnet_dies_and_the_guarded_one_trains_and_names_the_files() -> None:
    said = output_of('pidnet_mmseg.py')
    assert re.search(r'^stock: .*IndexError.*\b19\b', said, re.M)
    ((first, last),) = re.findall(r'^guarded: .* (\S+) -> (\S+)$', said, re.M)
    assert float(last) < float(first)
    lines = re.findall(r'ulm_00000(\d)_000019_gtFine_labelTrainIds.png: (\d+) .*?(\{.*\}|before)$', said, re.M)
    # Image 1 has a block of 1 x 10 pixels, image 3 one of 3 x 10; 4 iterations of 2 see each of the 4 images twice.
    assert lines[:2] == [('3', '30', "{'19': 30}"), ('1', '10', "{'19': 10}")]
    assert sorted(lines[2:]) == [('1', '10', 'before'), ('3', '30', 'before')]
