"""`mmguard scan` and `mmguard report` that are interrupted leave no half page, no half JSON, and no process."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from interruptions import check

from mmguard import Tally
from mmguard.log.tally_log import TallyLog

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1200)]


@pytest.mark.parametrize('processes', [1, 2])
def test_an_interrupted_scan_of_maps(processes: int, maps: Path, tmp_path: Path) -> None:
    place = tmp_path / 'place'
    out = ['--json', place / 'a.json', '--html', place / 'a.html']
    check(['scan', maps, '--num-classes', 3, '--processes', processes, *out], place)


def test_an_interrupted_scan_of_annotations(tmp_path: Path) -> None:
    images = [dict(id=n, file_name=f'{n}.jpg', width=100, height=100) for n in range(100)]
    annotations = [dict(id=n, image_id=n % 100, category_id=1, bbox=[50, 50, 60, 60]) for n in range(500)]
    path = tmp_path / 'train.json'
    path.write_text(json.dumps(dict(images=images, annotations=annotations, categories=[dict(id=1, name='cat')])))
    place = tmp_path / 'place'
    check(['scan', path, '--json', place / 'a.json', '--html', place / 'a.html'], place)


def test_an_interrupted_report(tmp_path: Path) -> None:
    log = TallyLog(str(tmp_path / 'run'), num_classes=19)
    for iteration in range(1, 200):
        log.write(iteration, [Tally(4096, skipped=3, values={77: 3}, source=f'{iteration % 9}.png')])
    place = tmp_path / 'place'
    check(['report', log.path, '--json', place / 'a.json', '--html', place / 'a.html'], place)
