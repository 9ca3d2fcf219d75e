"""``mmguard scan`` on a COCO JSON: whether labels are positions or ids of categories is asked for, not guessed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Dict, List, Sequence

import pytest
from scans import codes, scan

from mmguard.cli import main
from mmguard.labels.numbering import COCO_IDS, FRAMEWORKS, IDS, POSITIONS

pytest.importorskip('rich')

RENUMBERING = [name for name, framework in FRAMEWORKS.items() if framework.labels == POSITIONS]
TAKING_IDS = [name for name, framework in FRAMEWORKS.items() if framework.labels == IDS]


def write(path: Path, ids: Sequence[int]) -> Path:
    """A COCO file of four images with one box of each category."""
    categories = [dict(id=number, name=f'name of {number}') for number in ids]
    images = [dict(id=number, file_name=f'{number}.jpg', width=64, height=64) for number in range(1, 5)]
    boxes = [dict(image_id=image['id'], category_id=number, bbox=[1, 2, 30, 40]) for image in images for number in ids]
    annotations = [dict(box, id=place, area=1200, iscrowd=0) for place, box in enumerate(boxes)]
    path.write_text(json.dumps(dict(images=images, annotations=annotations, categories=categories)))
    return path


def offered(reported: Dict[str, Any]) -> List[Dict[str, Any]]:
    """The options and the changes of files that the edits of the first finding write."""
    edits = reported['findings'][0]['edits']
    return [
        {**edit['options'], **dict(pair for file in edit['files'].values() for pair in file.items())} for edit in edits
    ]


@pytest.mark.parametrize('words', [[], ['--num-classes', '3']])
def test_without_a_framework_both_are_judged_and_nobody_gets_an_error(
    tmp_path: Path, capsys: pytest.CaptureFixture, words: List[str]
) -> None:
    reported = scan(capsys, write(tmp_path / 'a.json', [1, 2, 3]), *words)
    assert reported['code'] == 0
    # No verdict that the labels are fine: that depends on who trains.
    assert [(finding['code'], finding['severity']) for finding in reported['findings']] == [('MG138', 'info')]
    # Without a number of classes nothing is known to be wrong.
    assert offered(reported) == [{'renumber': 0}, {'num_classes': 4}, {'labels': 'positions'}] * bool(words)
    assert {edit['applicability'] for edit in reported['findings'][0]['edits']} == ({'asks'} if words else set())


def test_the_raw_ids_of_coco_are_known(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    coco = {'labels': 'coco'}
    assert coco in offered(scan(capsys, write(tmp_path / 'a.json', COCO_IDS), '--num-classes', 80))
    assert coco not in offered(scan(capsys, write(tmp_path / 'b.json', range(1, 81)), '--num-classes', 80))


def test_the_screen_and_the_page_say_both_too(
    tmp_path: Path, capsys: pytest.CaptureFixture, monkeypatch: pytest.MonkeyPatch, snapshot: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(['scan', str(write(Path('a.json'), [1, 2, 3])), '--html', 'page.html']) == 0
    snapshot('scan', 'category ids of which nobody said who trains on them', capsys.readouterr().out)
    assert 'MG138' in Path('page.html').read_text(encoding='utf-8')
    assert 'MG100' not in Path('page.html').read_text(encoding='utf-8')


@pytest.mark.parametrize('framework', RENUMBERING)
def test_who_renumbers_has_no_finding_whatever_the_ids(
    tmp_path: Path, capsys: pytest.CaptureFixture, framework: str
) -> None:
    path = write(tmp_path / 'a.json', [1, 18, 90])
    for words in ([], ['--num-classes', '3']):
        reported = scan(capsys, path, '--framework', framework, *words)
        assert (reported['code'], codes(reported)) == (0, ['MG100'])
        assert reported['facts']['histogram'] == {'0': 4, '1': 4, '2': 4}


@pytest.mark.parametrize('framework', TAKING_IDS)
def test_who_takes_ids_is_warned_of_those_out_of_range(
    tmp_path: Path, capsys: pytest.CaptureFixture, framework: str
) -> None:
    path = write(tmp_path / 'a.json', [1, 2, 3])
    reported = scan(capsys, path, '--framework', framework, '--num-classes', 3)
    assert (reported['code'], codes(reported)[0]) == (1, 'MG138')
    assert reported['findings'][0]['severity'] == 'error'
    assert reported['facts']['values'] == {'3': 4}
    # For torchvision they are 1..3 already.
    assert offered(reported) == [{'renumber': 0}] * (framework != 'torchvision') + [{'num_classes': 4}]
    fine = scan(capsys, path, '--framework', framework, '--num-classes', 4)
    assert (fine['code'], codes(fine)) == (0, ['MG100'])


def test_of_ids_without_a_number_of_classes_none_is_changed(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    reported = scan(capsys, write(tmp_path / 'a.json', [1, 18, 90]), '--framework', 'detr')
    assert (reported['code'], codes(reported)) == (0, ['MG138'])
    assert offered(reported) == []
    numbered = scan(capsys, write(tmp_path / 'b.json', [0, 1, 2]), '--framework', 'detr')
    assert codes(numbered) == ['MG100']


def test_torchvision_counts_the_background(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    path = write(tmp_path / 'a.json', [0, 1, 2])
    reported = scan(capsys, path, '--framework', 'torchvision', '--num-classes', 3)
    assert (reported['code'], codes(reported)[0]) == (1, 'MG138')
    assert reported['facts']['values'] == {'0': 4}
    assert offered(reported) == [{'num_classes': 4, 'renumber': 1}]
    assert codes(scan(capsys, path, '--framework', 'detr', '--num-classes', 3)) == ['MG100']
    assert codes(scan(capsys, write(path, [1, 2, 3]), '--framework', 'torchvision')) == ['MG100']


def test_positions_are_those_of_the_file_or_of_ascending_ids(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    path = write(tmp_path / 'a.json', [7, 3, 5])
    named = {name: scan(capsys, path, '--framework', name)['facts']['class_names'] for name in RENUMBERING}
    assert named['mmdet'] == ['name of 7', 'name of 3', 'name of 5']
    assert named['detectron2'] == named['yolox'] == ['name of 3', 'name of 5', 'name of 7']


def test_labels_says_what_a_switch_of_the_framework_changed(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    path = write(tmp_path / 'a.json', [1, 2, 3])
    remapped = scan(capsys, path, '--framework', 'rt-detr', '--labels', 'positions', '--num-classes', 3)
    assert codes(remapped) == ['MG100']
    assert codes(scan(capsys, path, '--labels', 'positions', '--num-classes', 3)) == ['MG100']
    assert codes(scan(capsys, path, '--labels', 'ids', '--num-classes', 3))[0] == 'MG138'


def test_an_id_that_no_category_has_comes_before_the_shift_and_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    path = write(tmp_path / 'a.json', [1, 2])
    data = json.loads(path.read_text())
    data['annotations'][5]['category_id'] = 3
    path.write_text(json.dumps(data))
    for words in ([], ['--labels', 'ids']):
        reported = scan(capsys, path, '--num-classes', 2, *words)
        assert codes(reported)[:2] == ['MG149', 'MG138']
        assert reported['findings'][0]['files'] == ['3.jpg: annotation 5']
        assert 'MG115' not in codes(reported)


def test_ids_from_0_are_called_fine_where_it_is_known_who_trains(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    path = write(tmp_path / 'a.json', [0, 1, 2])
    assert codes(scan(capsys, path, '--num-classes', 3)) == []
    for words in (['--framework', 'detectron2'], ['--framework', 'detr'], ['--labels', 'ids']):
        reported = scan(capsys, path, '--num-classes', 3, *words)
        assert (reported['code'], codes(reported)) == (0, ['MG100'])


def test_it_is_said_of_a_coco_json_alone(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    assert main(['scan', str(tmp_path), '--framework', 'detr']) == 2
    assert '--framework' in capsys.readouterr().err


@pytest.mark.parametrize(
    ('ids', 'groups', 'fits'),
    [
        ([1, 2, 3], ['tool', 'tool', 'car part'], True),
        ([0, 1, 2, 3, 4], ['none', *['fish'] * 4], True),
        ([2, 5], ['nut', 'nut'], False),
        ([0, 1], ['none', 'none'], True),
        ([1, 2, 3], ['none', 'none', 'bird'], True),
    ],
)
def test_rf_detr_counts_the_categories_of_a_group_and_one_more(
    tmp_path: Path, capsys: pytest.CaptureFixture, ids: List[int], groups: List[str], fits: bool
) -> None:
    path = write(tmp_path / 'a.json', ids)
    data = json.loads(path.read_text())
    for category, group in zip(data['categories'], groups):
        category['supercategory'] = group
    path.write_text(json.dumps(data))
    reported = scan(capsys, path, '--framework', 'rf-detr')
    assert ('MG138' in codes(reported)) is not fits
    # All ids fit if every category is counted: the supercategory is the fault.
    assert ('MG134' in codes(reported)) is (groups.count('none') > 1)
    found = [finding for finding in reported['findings'] if finding['code'] == 'MG138']
    for finding in found:
        assert '--labels' not in finding['advice']
        assert 'num_classes' in finding['advice']
        assert finding['edits'] == []
