"""``mmguard scan`` on a COCO JSON: whether labels are positions or ids of categories is asked for, not guessed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Dict, List, Optional, Sequence, Tuple

import pytest
from put_file import put
from scans import codes, scan

from mmguard.cli import main
from mmguard.formats.coco import rfdetr
from mmguard.labels.numbering import COCO_IDS, FRAMEWORKS, IDS, POSITIONS

pytest.importorskip('rich')

RENUMBERING = [name for name, framework in FRAMEWORKS.items() if framework.labels == POSITIONS and name != 'rf-detr']
TAKING_IDS = [name for name, framework in FRAMEWORKS.items() if framework.labels == IDS]


def write(path: Path, ids: Sequence[int]) -> Path:
    """A COCO file of four images with one box of each category."""
    categories = [dict(id=number, name=f'name of {number}') for number in ids]
    images = [dict(id=number, file_name=f'{number}.jpg', width=64, height=64) for number in range(1, 5)]
    boxes = [dict(image_id=image['id'], category_id=number, bbox=[1, 2, 30, 40]) for image in images for number in ids]
    annotations = [dict(box, id=place, area=1200, iscrowd=0) for place, box in enumerate(boxes)]
    return put(path, json.dumps(dict(images=images, annotations=annotations, categories=categories)))


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


@pytest.mark.parametrize(('there', 'offers'), [([1, 2, 3], True), ([2, 3, 1], False), ([1, 2], False)])
@pytest.mark.parametrize('layout', ['{}.json', '{}/_annotations.coco.json'])
def test_one_split_is_not_renumbered_if_another_lists_other_categories(
    tmp_path: Path, capsys: pytest.CaptureFixture, layout: str, there: List[int], offers: bool
) -> None:
    for split, ids in (('train', [1, 2, 3]), ('valid', there)):
        write(tmp_path / layout.format(split), ids)
    edits = offered(scan(capsys, tmp_path / layout.format('train'), '--labels', 'ids'))
    assert ({'renumber': 0} in edits) is offers


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


def test_of_ids_without_a_number_of_classes_none_is_changed_unasked(
    tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    reported = scan(capsys, write(tmp_path / 'a.json', [1, 18, 90]), '--framework', 'detr')
    assert (reported['code'], codes(reported)) == (0, ['MG138'])
    assert offered(reported) == [{'renumber': 0}]
    assert [edit['applicability'] for edit in reported['findings'][0]['edits']] == ['asks']
    numbered = scan(capsys, write(tmp_path / 'b.json', [0, 1, 2]), '--framework', 'detr')
    assert codes(numbered) == ['MG100']


def test_torchvision_counts_the_background(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    path = write(tmp_path / 'a.json', [0, 1, 2])
    reported = scan(capsys, path, '--framework', 'torchvision', '--num-classes', 3)
    assert (reported['code'], codes(reported)[0]) == (1, 'MG581')
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


def install(monkeypatch: pytest.MonkeyPatch, *release: int) -> None:
    """RF-DETR of this release is installed, or none is."""
    monkeypatch.setattr(rfdetr, 'read_release', lambda: release or None)


def write_groups(path: Path, ids: Sequence[int], groups: Sequence[str], bare: Sequence[int] = ()) -> Path:
    """A COCO file whose categories have these supercategories; no annotation has an id of ``bare``."""
    data = json.loads(write(path, ids).read_text())
    for category, group in zip(data['categories'], groups):
        category['supercategory'] = group
    data['annotations'] = [one for one in data['annotations'] if one['category_id'] not in bare]
    return put(path, json.dumps(data))


@pytest.mark.parametrize(
    ('ids', 'groups', 'old_codes', 'code'),
    [
        ([1, 2, 3], ['tool', 'tool', 'car part'], [], ''),
        ([0, 1, 2, 3, 4], ['none', *['fish'] * 4], [], ''),
        ([2, 5], ['nut', 'nut'], ['MG138'], ''),
        ([0, 1], ['none', 'none'], ['MG134'], 'MG134'),
        ([1, 2, 3], ['none', 'none', 'bird'], ['MG134'], 'MG134'),
    ],
)
def test_rf_detr_before_1_6_counts_the_categories_of_a_group_and_one_more(
    tmp_path: Path,
    capsys: pytest.CaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
    ids: List[int],
    groups: List[str],
    old_codes: List[str],
    code: str,
) -> None:
    path = write_groups(tmp_path / 'train' / '_annotations.coco.json', ids, groups)
    fine = ['MG100']
    for release, expected in {
        (1, 4, 3): old_codes or fine,
        (1, 5, 2): [code] if code else fine,
        (1, 6, 0): fine,
        (1, 11, 2): fine,
    }.items():
        install(monkeypatch, *release)
        reported = scan(capsys, path, '--framework', 'rf-detr')
        assert [one for one in codes(reported) if one != 'MG100' or expected == fine] == expected, release
        found = [finding for finding in reported['findings'] if finding['code'] == 'MG138']
        for finding in found:
            assert '--labels' not in finding['advice']
            assert 'num_classes' in finding['advice']
            assert all(edit['applicability'] == 'asks' for edit in finding['edits'])


@pytest.mark.parametrize(
    ('release', 'histogram', 'expected'),
    [
        ((1, 4, 3), [2, 3], ['MG100']),
        ((1, 5, 0), [2, 3], ['MG134', 'MG135']),
        ((1, 9, 1), [2, 3], ['MG134', 'MG135']),
        ((1, 9, 2), [0, 1], ['MG100']),
        ((), [0, 1], ['MG134']),
    ],
)
def test_an_empty_supercategory_has_no_label_from_1_9_2_on(
    tmp_path: Path,
    capsys: pytest.CaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
    release: Tuple[int, ...],
    histogram: List[int],
    expected: List[str],
) -> None:
    groups = ['none', 'name of 0', 'name of 1', 'name of 1']
    path = write_groups(tmp_path / 'train' / '_annotations.coco.json', range(4), groups, bare=[0, 1])
    install(monkeypatch, *release)
    reported = scan(capsys, path, '--framework', 'rf-detr')
    assert (reported['code'], codes(reported)) == (0, expected)
    assert list(map(int, reported['facts']['histogram'])) == histogram
    assert reported['facts'].get('values', {}) == {}


@pytest.mark.parametrize(
    ('name', 'release', 'histogram', 'severity'),
    [
        ('train/_annotations.coco.json', (1, 4, 3), [1, 3, 7], 'error'),
        ('train/_annotations.coco.json', (1, 5, 0), [0, 1, 2], ''),
        ('train/_annotations.coco.json', (1, 11, 2), [0, 1, 2], ''),
        ('train/_annotations.coco.json', (), [0, 1, 2], 'warning'),
        ('train/instances_train2017.json', (1, 11, 2), [1, 3, 7], 'error'),
        ('train/zhiyuan_objv2_minival5k.json', (), [1, 3, 7], 'error'),
        ('train/a.json', (1, 11, 2), [0, 1, 2], 'warning'),
    ],
)
def test_who_renumbers_is_the_release_of_rf_detr_and_the_layout(
    tmp_path: Path,
    capsys: pytest.CaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    release: Tuple[int, ...],
    histogram: List[int],
    severity: str,
) -> None:
    path = write_groups(tmp_path / name, [7, 1, 3], ['thing'] * 3)
    install(monkeypatch, *release)
    reported = scan(capsys, path, '--framework', 'rf-detr', '--num-classes', 3)
    assert list(map(int, reported['facts']['histogram'])) == histogram
    found = {finding['code']: finding['severity'] for finding in reported['findings']}
    assert found.get('MG138', '') == severity
    assert set(found) - {'MG116'} == ({'MG138'} if severity else {'MG100'})
    rewriting = [{'renumber': 0}, {'num_classes': 7}]
    offers = {'': [], 'error': rewriting, 'warning': [*rewriting, {'labels': 'positions'}]}
    shown = [finding['edits'] for finding in reported['findings'] if finding['code'] == 'MG138']
    assert (offered(reported) if shown else []) == offers[severity]
    # The user knows better.
    for labels, count in ('positions', 0), ('ids', 1):
        said = scan(capsys, path, '--framework', 'rf-detr', '--num-classes', 3, '--labels', labels)
        assert codes(said).count('MG138') == count


def test_ids_that_every_release_takes_are_fine(
    tmp_path: Path, capsys: pytest.CaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(monkeypatch)
    for ids in [0, 1, 2], [1, 2, 3]:
        path = write_groups(tmp_path / 'train' / '_annotations.coco.json', ids, ['thing'] * 3)
        assert codes(scan(capsys, path, '--framework', 'rf-detr')) == ['MG100']


#: Ids, num_classes, and the label of each id with ``remap_mscoco_category: True``; ``None``: KeyError.
#: Read in src/data/dataset/coco_dataset.py (D-FINE), engine/data/dataset/coco_dataset.py (DEIM, DEIMv2) of 2025:
#: ``mscoco_category2label = {k: i for i, k in enumerate(mscoco_category2name.keys())}``.
MAPPED: List[Tuple[Sequence[int], int, List[Optional[int]]]] = [
    ([0, 1, 2], 3, [None, 0, 1]),
    ([1, 2, 3], 3, [0, 1, 2]),
    ([1, 2, 3], 2, [0, 1, 2]),
    ([1, 3, 7], 3, [0, 2, 6]),
    ([1, 3, 7], 7, [0, 2, 6]),
    ([7, 3, 5], 8, [6, 2, 4]),
    ([11, 12, 13], 20, [10, None, 11]),
    ([1], 1, [0]),
    ([0], 1, [None]),
    ([90], 80, [79]),
    ([91], 80, [None]),
    (COCO_IDS, 80, list(range(80))),
    (range(1, 81), 80, [COCO_IDS.index(number) if number in COCO_IDS else None for number in range(1, 81)]),
    ([2905442, 2905443], 2, [None, None]),
]


@pytest.mark.parametrize('framework', ['rt-detr', 'd-fine', 'deim'])
@pytest.mark.parametrize('switch', [True, False, None])
@pytest.mark.parametrize(('ids', 'number', 'mapped'), MAPPED)
def test_the_switch_of_d_fine_and_deim(
    tmp_path: Path,
    capsys: pytest.CaptureFixture,
    ids: Sequence[int],
    number: int,
    mapped: List[Optional[int]],
    switch: Optional[bool],
    framework: str,
) -> None:
    path = write(tmp_path / 'a.json', ids)
    config = tmp_path / 'own.yml'
    lines = [
        "__include__: ['dataset.yml']",
        f'num_classes: {number}',
        *([] if switch is None else [f'remap_mscoco_category: {switch}']),  # False, by default
        f"train_dataloader: {{dataset: {{type: CocoDetection, ann_file: '{path}'}}}}",
    ]
    config.write_text('\n'.join(lines))
    (tmp_path / 'dataset.yml').write_text('task: detection\n')
    labels = mapped if switch else ids
    delivered = {str(label): 4 for label in labels if label is not None}
    invalid = {label: 4 for label in delivered if int(label) >= number}
    options = () if framework == 'rt-detr' else ('--framework', framework)
    reported = scan(capsys, config, *options)
    facts = reported['facts']
    assert facts.get('histogram', {}) == delivered
    assert facts.get('values', {}) == invalid
    errors = [finding['code'] for finding in reported['findings'] if finding['severity'] == 'error']
    assert bool(errors) is bool(invalid or None in labels)
