"""``mmguard scan`` on a COCO JSON: whether labels are positions or ids of categories is asked for, not guessed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import List, Sequence

import pytest
from scans import codes, scan

from mmguard.cli import main
from mmguard.labels.numbering import COCO_IDS, FRAMEWORKS, IDS, POSITIONS, titles

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


@pytest.mark.parametrize('words', [[], ['--num-classes', '3']])
def test_without_a_framework_both_are_judged_and_nobody_gets_an_error(
    tmp_path: Path, capsys: pytest.CaptureFixture, words: List[str]
) -> None:
    reported = scan(capsys, write(tmp_path / 'a.json', [1, 2, 3]), *words)
    assert reported['code'] == 0
    assert codes(reported) == ['MG138'], 'no verdict that the labels are fine: that depends on who trains'
    [finding] = reported['findings']
    assert finding['severity'] == 'info'
    assert finding['cause'].startswith('Category id 3 is out of range of num_classes=3 where category_id is the label')
    assert f'({titles(IDS)}, loops of your own)' in finding['cause']
    assert f'fine where categories are renumbered ({titles(POSITIONS)})' in finding['cause']
    first, *_, last = finding['edits']
    assert first['question'].startswith('Does the training take ids as labels'), 'before any answer'
    assert first['question'].endswith('nothing is to be changed then)? With ids:')
    assert '--renumber 0' in first['text']
    assert 'Nothing is to be changed' in last['text']
    assert '3 would be out of range (4 annotations)' in finding['evidence']
    assert '--framework NAME' in finding['advice']
    assert '--labels positions' in finding['advice']
    assert '--renumber 0' in finding['advice']
    assert 'num_classes=4' in finding['advice']


def test_the_raw_ids_of_coco_are_called_so(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    [finding] = scan(capsys, write(tmp_path / 'a.json', COCO_IDS), '--num-classes', 80)['findings']
    assert finding['cause'].startswith('These are raw ids of COCO, 1..90 with gaps. Category ids 80, 81')
    [finding] = scan(capsys, write(tmp_path / 'b.json', range(1, 81)), '--num-classes', 80)['findings']
    assert 'raw ids' not in finding['cause']


def test_the_screen_and_the_page_say_both_too(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    page = tmp_path / 'page.html'
    assert main(['scan', str(write(tmp_path / 'a.json', [1, 2, 3])), '--html', str(page)]) == 0
    shown = capsys.readouterr().out
    for text in (shown, page.read_text(encoding='utf-8')):
        assert 'fine where categories are renumbered' in text.replace('\n', ' ')
        assert 'RT-DETR' in text
        assert 'Your labels are fine' not in text


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
    assert 'num_classes=4' in reported['findings'][0]['advice']
    written = [edit['text'] for edit in reported['findings'][0]['edits']]
    assert any('--renumber 0' in text for text in written) == (framework != 'torchvision'), (
        'there they are 1..3 already'
    )
    fine = scan(capsys, path, '--framework', framework, '--num-classes', 4)
    assert (fine['code'], codes(fine)) == (0, ['MG100'])


def test_ids_without_a_number_of_classes_say_how_many_outputs_they_need(
    tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    reported = scan(capsys, write(tmp_path / 'a.json', [1, 18, 90]), '--framework', 'detr')
    assert (reported['code'], codes(reported)) == (0, ['MG138'])
    assert 'the model needs num_classes=91' in reported['findings'][0]['cause']
    numbered = scan(capsys, write(tmp_path / 'b.json', [0, 1, 2]), '--framework', 'detr')
    assert codes(numbered) == ['MG100']


def test_torchvision_counts_the_background(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    path = write(tmp_path / 'a.json', [0, 1, 2])
    reported = scan(capsys, path, '--framework', 'torchvision', '--num-classes', 3)
    assert (reported['code'], codes(reported)[0]) == (1, 'MG138')
    assert reported['facts']['values'] == {'0': 4}
    assert 'background' in reported['findings'][0]['cause']
    assert 'num_classes=4' in reported['findings'][0]['advice']
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
    assert codes(remapped) == ['MG100'], 'remap_mscoco_category'
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
        assert 'MG115' not in codes(reported), '1..3 are no classes that count from 1'


def test_ids_from_0_are_fine_for_everybody(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    path = write(tmp_path / 'a.json', [0, 1, 2])
    reported = scan(capsys, path, '--num-classes', 3)
    assert (reported['code'], codes(reported)) == (0, ['MG100'])
    switch = 'remap_mscoco_category: False'
    assert switch in reported['findings'][0]['advice']
    assert switch not in scan(capsys, path, '--num-classes', 3, '--framework', 'mmdet')['findings'][0]['advice']


def test_it_is_said_of_a_coco_json_alone(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    assert main(['scan', str(tmp_path), '--framework', 'detr']) == 2
    assert '--labels and --framework say how the categories of a COCO JSON' in capsys.readouterr().err
