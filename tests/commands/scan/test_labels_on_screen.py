"""The table of labels of a COCO and of a VOC scan: how many files hold each, and what each is called."""

from __future__ import annotations

from pathlib import Path
from typing import Any, List

import coco_cases
import pytest
from coco_cases import ann, write
from voc_cases import obj, xml

from mmguard.cli import main
from mmguard.commands.page.html import build_page
from mmguard.formats.coco.read import scan_coco
from mmguard.formats.voc import scan_voc
from mmguard.scanning.config_instances import merge_facts
from mmguard.scanning.run import SetResult

pytest.importorskip('rich')

#: Category ids of the annotations of each image: 7 twice in one, 9 in two, 30 in none.
IDS = [[7, 7, 9], [9], [20], []]
NAMES = {7: 'cat', 9: 'dog', 20: 'horse', 30: 'sheep'}


@pytest.fixture
def coco(tmp_path: Path) -> Path:
    pairs = [(image, category) for image, ids in enumerate(IDS) for category in ids]
    record = coco_cases.coco([ann(number, *pair) for number, pair in enumerate(pairs)], len(IDS))
    record['categories'] = [dict(id=number, name=name) for number, name in NAMES.items()]
    return Path(write(tmp_path, record))


@pytest.fixture
def voc(tmp_path: Path) -> Path:
    folder = tmp_path / 'voc' / 'Annotations'
    folder.mkdir(parents=True)
    for image, ids in enumerate(IDS):
        (folder / f'{image}.xml').write_text(xml(*(obj(NAMES[number]) for number in ids)))
    return folder.parent


def rows(capsys: pytest.CaptureFixture, *words: Any) -> List[List[str]]:
    """Label, name, instances and files of each row."""
    main(['scan', *map(str, words)])
    cells = [line.replace('┃', '│').split('│') for line in capsys.readouterr().out.splitlines() if '│' in line]
    return [
        [row[0].strip(), row[1].strip(), row[2].strip(), row[4].strip()] for row in cells if row[0].strip().isdigit()
    ]


def test_files_of_a_voc_scan(voc: Path, capsys: pytest.CaptureFixture) -> None:
    assert rows(capsys, voc) == [['0', 'cat', '2', '1'], ['1', 'dog', '2', '2'], ['2', 'horse', '1', '1']]


def test_names_of_category_ids(coco: Path, capsys: pytest.CaptureFixture) -> None:
    expected = [['7', 'cat', '2', '1'], ['9', 'dog', '2', '2'], ['20', 'invalid: horse', '1', '1']]
    assert rows(capsys, coco, '--num-classes', 10, '--labels', 'ids') == expected
    made = build_page('labels', [SetResult(scan_coco(str(coco), 10, labels='ids'), name='train')])
    assert all(f'<td>{name}</td>' in made for name in ('cat', 'dog', 'horse'))


def test_files_of_data_sets_that_are_trained_on_together(coco: Path, voc: Path) -> None:
    parts = [scan_coco(str(coco)), scan_voc(str(voc))]
    together = merge_facts(parts).annotations
    assert together.files_with_class == {0: 2, 1: 4, 2: 2}
