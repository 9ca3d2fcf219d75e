"""Edits about annotation files, boxes: the right one is offered and followed, one that does harm is not."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, Dict, List, Tuple

import pytest
from annotation_files import GOOD, VOC_GOOD, corners, minus_one, rewritten, voc, with_key
from detection_configs import NAMES, PETS
from situation import (
    coco_config,
    faster,
    json_alone,
    numbered,
    retina,
    some_boxes,
    voc_config,
    voc_xml,
    with_options,
    write_config,
)
from targets import Build, Scan, find_unwritten, scan, scan_target, values_of, write_edit

from mmguard.cli import main
from mmguard.config.read import read_config
from mmguard.findings.config_edits import set_classes_and_heads
from mmguard.findings.edits import Edit
from mmguard.findings.engine import Split, count_trained_classes, holds, search, select_rules

THREE = {0: 'cat', 1: 'dog', 2: 'cow'}


def turned_sizes(data: Dict[str, Any]) -> None:
    for one in data['images']:
        one['width'], one['height'] = one['height'], one['width']
    for place, one in enumerate(data['annotations']):
        one['bbox'] = [200 + place % 9 * 10, 30, 40, 50]


def rows_first(boxes: List[Any]) -> List[Any]:
    """y1, x1, y2, x2, as TensorFlow's detection API writes them."""
    return [[(i, [y, x, y + h, x + w]) for i, (x, y, w, h) in image] for image in boxes]


def follow(before: Scan, edit: Edit, root: Path) -> Scan:
    """Write an edit, and scan again."""
    return scan_target(write_edit(before.target, edit, root))


def centred(box: List[int]) -> List[float]:
    x, y, w, h = box
    return [min(x + w / 2 + 100, 320 - w / 2), min(y + h / 2 + 50, 240 - h / 2), w, h]


def scaled(data: Dict[str, Any]) -> None:
    """x was multiplied by the width of another image; 5 of the 36 boxes are so far right that they end outside."""
    for place, one in enumerate(data['annotations']):
        one['bbox'] = [280, 90, 60 + place, 40] if place % 7 == 0 else [30 + place, 60, 80, 50]


def turned(box: List[int]) -> List[int]:
    x, y, w, h = box
    return [x + w, y + h, -w, -h]


def slips(number: int) -> Build:
    """So many boxes lie outside of their images."""
    return rewritten(lambda data: [one.update(bbox=[330, 40, 20, 20]) for one in data['annotations'][:number]])


def of_one_id(data: Dict[str, Any]) -> None:
    for image in data['images'][6:]:
        image['id'] -= 6


def of_two_folders(data: Dict[str, Any]) -> None:
    """day/0000.jpg and night/0000.jpg: the one that is there is not both."""
    for number, image in enumerate(data['images']):
        image['file_name'] = f'{("day", "night")[number % 2]}/{number // 2:04}.jpg'


def with_images(build: Build) -> Build:
    """The folder of the images is said."""
    return lambda root: with_options(build, images=str(root / 'coco'))(root)


EMPTY = GOOD + [[]] * 6

#: Code, situation, applicability of the first edit, and what it writes. More of them are in situations/.
OFFERED: List[Tuple[str, Build, str, Dict[str, Any]]] = [
    ('MG109', slips(2), 'asks', {}),
    ('MG109', voc([[('cat', [10, 20, 10, 80]), ('dog', [5, 5, 60, 60])], *VOC_GOOD]), 'asks', {}),
    ('MG109', rewritten(with_key('bbox', [0, 0, 0, 0], 5)), 'asks', {}),
    ('MG137', with_options(json_alone({8823411: 'cat', 8823412: 'dog'}, 2), labels='ids'), 'safe', dict(renumber=0)),
    ('MG140', coco_config(PETS, None, retina(3)), 'safe', dict(classes=NAMES)),
    ('MG140', coco_config(PETS, None, retina(80)), 'asks', dict(classes=NAMES, num_classes=3)),
    ('MG140', coco_config(PETS, ('cat', 'Dog', 'cow'), retina(3)), 'safe', dict(classes=NAMES)),
    ('MG141', coco_config(PETS, ('cat', 'cow', 'dog'), retina(3)), 'safe', dict(classes=NAMES)),
    ('MG147', rewritten(with_key('id', lambda number: number % 20)), 'safe', {}),
    ('MG153', json_alone(THREE, 3, GOOD, without=('area',)), 'safe', {}),
    ('MG174', rewritten(with_key('image_id', str)), 'safe', {}),
    ('MG174', rewritten(with_key('area', 0)), 'safe', {}),
]


@pytest.mark.parametrize(
    ('code', 'build'),
    [
        ('MG109', rewritten(with_key('bbox', turned, 3))),
        ('MG109', rewritten(turned_sizes)),
        ('MG109', voc([[(n, [x, y, 60, 50]) for n, (x, y, _, _) in boxes] for boxes in VOC_GOOD])),
        ('MG152', rewritten(with_key('bbox', centred))),
        ('MG152', rewritten(scaled)),
        ('MG172', json_alone(THREE, 3, rows_first(GOOD))),
    ],
)
def test_boxes_in_another_format_get_no_edit(code: str, build: Build, tmp_path: Path) -> None:
    found = scan(build, tmp_path / 'set')
    assert (found.first.code, found.first.edits) == (code, ())
    assert main(['fix', str(found.target.path), '-o', str(tmp_path / 'out')]) == 2
    assert not (tmp_path / 'out').exists()


def crops(root: Path) -> Any:
    """A config that keeps images without an object, and rejects crops without one."""
    steps = [dict(type='LoadImageFromFile'), dict(type='LoadAnnotations'), dict(type='RandomCrop', crop_size=(64, 64))]
    settings = dict(filter_cfg=dict(filter_empty_gt=False), pipeline=steps)
    return coco_config(numbered(*NAMES, start=0), NAMES, faster(3), EMPTY, settings=settings)(root)


@pytest.mark.parametrize(
    ('codes', 'build'),
    [
        (['MG146'], json_alone(THREE, 3, EMPTY)),
        (
            ['MG146'],
            with_options(json_alone(numbered(*'abcde', start=0), 5, [*some_boxes(range(5)), []]), framework='detr'),
        ),
        (['MG146'], coco_config(numbered(*NAMES, start=0), NAMES, retina(3), EMPTY, settings=dict(filter_cfg={}))),
        (['MG233'], crops),
    ],
)
def test_images_without_an_object_are_not_left_out(codes: List[str], build: Build, tmp_path: Path) -> None:
    found = [one for one in scan(build, tmp_path / 'set').results[0].findings if one.code != 'MG100']
    assert [one.code for one in found] == codes
    written = [dict(edit.config) for one in found for edit in one.edits]
    assert [list(one.values()) for one in written] == ([[True]] if codes == ['MG233'] else [])
    assert not any('filter' in place for one in written for place in one)


@pytest.mark.parametrize(
    'build',
    [
        coco_config(numbered('ship', 'boat', 'raft'), ('ship',), faster(1)),
        coco_config(PETS, NAMES[:2], retina(2)),
        voc_config(VOC_GOOD, ('dog',), retina(1)),
    ],
)
def test_classes_that_the_heads_count_were_chosen(build: Build, tmp_path: Path) -> None:
    found = scan(build, tmp_path / 'set').results[0].findings
    assert [(one.code, one.edits) for one in found if one.severity != 'info'] == [('MG154', ())]


@pytest.mark.parametrize(
    ('ids', 'options'),
    [
        ((1, 2), dict(framework='rf-detr')),
        ((1, 3, 7, 8), dict(framework='detr')),
        ((2, 5, 11), dict(framework='torchvision')),
        ((1, 2, 3, 4, 5), {}),
    ],
)
def test_ids_are_changed_only_after_a_question_if_nobody_counted_the_classes_of_the_model(
    ids: Tuple[int, ...], options: Dict[str, Any], tmp_path: Path
) -> None:
    found = scan(with_options(json_alone({i: f'kind {i}' for i in ids}, None), **options), tmp_path / 'set')
    said = found.results[0].findings
    assert {one.severity for one in said} == {'info'}
    assert all(edit.question for one in said for edit in one.edits)


@pytest.mark.parametrize(('code', 'build', 'applicability', 'writes'), OFFERED)
def test_the_edit_is_offered_and_closes_the_case(
    code: str, build: Build, applicability: str, writes: Dict[str, Any], tmp_path: Path
) -> None:
    before = scan(build, tmp_path / 'set')
    assert before.first.code == code
    edit = before.first.edits[0]
    assert (edit.applicability, find_unwritten(edit, writes)) == (applicability, {})
    after = follow(before, edit, tmp_path)
    assert [finding.code for finding in after.results[0].findings if finding.severity != 'info'] == []
    named = count_trained_classes(after.labels)
    assert sum(named.values()) >= sum(count_trained_classes(before.labels).values())
    assert set(named) == set(range(after.labels.num_classes)), 'every class still has its labels'


def test_a_split_without_a_class_list_gets_that_of_the_training_in_its_order(tmp_path: Path) -> None:
    """Of XML files, which list no categories: the alphabet would turn the classes of the training."""
    drawn = [[('vest', [20, 30, 90, 120]), ('helmet', [100, 50, 200, 180])]] * 6
    build = voc_splits(drawn, [boxes[::-1] for boxes in drawn], ('vest', 'helmet'), 2, metainfo={})
    results = scan(build, tmp_path).results
    (finding,) = [one for result in results for one in result.findings if one.code == 'MG140']
    assert [('vest', 'helmet') in values_of(edit)['classes'] for edit in finding.edits].index(True) == 0


@pytest.mark.parametrize('names', [NAMES, ('person', 'car', 'helmet'), ('dog', 'hen', 'cow', 'goose'), ('cup', 'mug')])
def test_names_that_are_coco_s_as_well_do_not_make_its_list_an_answer(names: tuple, tmp_path: Path) -> None:
    """Nobody wrote that list: the data set type has it, and most of the user's classes are not in it."""
    found = scan(coco_config(dict(enumerate(names, 1)), None, retina(len(names))), tmp_path / 'set')
    edits = [edit for finding in found.results[0].findings for edit in finding.edits]
    assert edits
    assert not [edit for edit in edits if 80 in values_of(edit).get('num_classes', ())]


STRING, TUPLE = 'classes is a string', 'The config names classes that are missing in the annotations'

#: Categories, class list, beginning of the title of MG140 (empty: no such finding), classes of the first edit.
LETTERS: List[Tuple[Tuple[str, ...], Any, str, Any]] = [
    (('A', 'B', 'C'), ('A', 'B', 'C'), '', None),
    (('A', 'B', 'AB'), ('A', 'B'), '', None),
    (('a', 'b', 'c'), ('A', 'B', 'C'), TUPLE, ('a', 'b', 'c')),
    (('apple', 'bear', 'cow'), ('A', 'B', 'C'), TUPLE, ('apple', 'bear', 'cow')),
    (('person',), 'person', STRING, ('person',)),
    (('person',), tuple('person'), STRING, ('person',)),
    (('apple', 'bear', 'cow'), 'ABC', STRING, None),
]


@pytest.mark.parametrize(('categories', 'classes', 'title', 'written'), LETTERS)
def test_names_of_one_letter_are_no_string(
    categories: Tuple[str, ...], classes: Any, title: str, written: Any, tmp_path: Path
) -> None:
    build = coco_config(dict(enumerate(categories)), classes, retina(len(classes)))
    found = [one for one in scan(build, tmp_path).results[0].findings if one.code == 'MG140']
    assert [bool(title) and one.title.startswith(title) for one in found] == [True] * bool(title)
    offered = [values_of(edit)['classes'] for one in found for edit in one.edits[:1]]
    assert offered == ([] if written is None else [[written]])


def test_orders_that_differ_in_two_files_are_made_one(tmp_path: Path) -> None:
    """Train and val list their categories in different orders; the config has that of neither."""
    build = coco_config(PETS, ('cow', 'cat', 'dog'), retina(3), val={1: 'dog', 2: 'cat', 3: 'cow'})
    before = scan(with_options(build, splits=('train', 'val')), tmp_path)
    assert [result.findings[0].code for result in before.results] == ['MG141', 'MG141']
    (edit,) = before.first.edits
    assert list(edit.files) == [str(tmp_path / split / 'ann.json') for split in ('train', 'val')]
    after = follow(before, edit, tmp_path)
    assert [result.findings[0].code for result in after.results] == ['MG100', 'MG100']
    for split in ('train', 'val'):
        listed = json.loads((tmp_path / split / 'ann.json').read_text())['categories']
        assert [category['name'] for category in listed] == ['cow', 'cat', 'dog']


def drawn(*rows: str) -> List[Any]:
    """XML files with an object for each name, one row for a file."""
    return [[(name, [20, 30, 90, 120]) for name in row.split()] for row in rows]


def voc_splits(train: List[Any], val: List[Any], classes: Any, heads: int, **of_val: Any) -> Build:
    """A config with two splits of XML files; ``of_val``: keys of the data set of the validation."""

    def build(root: Path) -> Any:
        path, _ = voc_config(train, classes, retina(heads))(root)
        voc_xml(root / 'val/VOC2007', val)
        parts = dict(read_config(str(path)).data)
        data = dict(parts['train_dataloader']['dataset'], data_root=str(root / 'val'), test_mode=True, **of_val)
        path = write_config(root, **parts, val_dataloader=dict(batch_size=1, dataset=data))
        return path, dict(splits=('train', 'val'))

    return build


@pytest.mark.parametrize(
    ('build', 'names', 'heads'),
    [
        (voc_splits(drawn('b c d', 'c d', 'e'), drawn('c', 'd e'), ('k0', 'k1', 'k2', 'k3'), 4), 'b c d e', 4),
        (voc_splits(drawn('ship crane', 'buoy') * 3, drawn('ship'), ('hull', 'mast'), 2), 'buoy crane ship', 3),
        (voc_splits(drawn('zebu yak'), drawn('yak ox', 'zebu'), None, 20), 'ox yak zebu', 3),
    ],
)
def test_the_classes_of_all_splits_are_listed_by_one_edit(build: Build, names: str, heads: int, tmp_path: Path) -> None:
    before = scan(build, tmp_path)
    edits = [edit for result in before.results for one in result.findings for edit in one.edits]
    assert [one.code for result in before.results for one in result.findings] == ['MG140', 'MG140']
    assert {edit.number for edit in edits} == {1}
    assert all(sorted(values_of(edit)['classes'][0]) == names.split() for edit in edits)
    after = follow(before, edits[0], tmp_path)
    found = [one for result in after.results for one in result.findings if one.severity != 'info']
    assert (found, after.labels.num_classes) == ([], heads)


def test_a_class_of_another_split_is_not_left_out(tmp_path: Path) -> None:
    """Edits that a rule should not have made: each fits the validation, and leaves out a class of the training."""
    build = voc_splits(drawn('b c d', 'c d', 'e'), drawn('c', 'd e'), ('k0', 'k1', 'k2', 'k3'), 4)
    rules = select_rules()
    results = scan(build, tmp_path).results
    assert len(results) == 2
    for result in results:
        splits = [Split(facts, search(facts, rules)) for facts in (result.known, *result.known.others)]
        for names, is_right in ((['c', 'd', 'e'], False), (['b', 'c', 'd', 'e'], True), (['c', 'd', 'e', 'f'], False)):
            edit = set_classes_and_heads(result.known, names)
            assert holds(edit, result.findings[0], splits, rules) == is_right


def test_categories_that_one_file_lacks_are_not_dropped(tmp_path: Path) -> None:
    build = coco_config(PETS, ('x', 'y', 'z'), retina(3), val={1: 'cat', 2: 'dog'})
    results = scan(with_options(build, splits=('train', 'val')), tmp_path).results
    assert len(results) == 2
    for result in results:
        assert result.findings[0].code == 'MG140'
        assert not any('cow' not in names for edit in result.findings[0].edits for names in values_of(edit)['classes'])


@pytest.mark.parametrize('name', ['ship', 'vascular bundle', '\u7ef4\u7ba1\u675f'])
def test_a_string_for_a_list_is_one_finding_with_one_edit(name: str, tmp_path: Path) -> None:
    files = [[(name, [20, 30, 90, 120])]] * 4
    results = scan(voc_splits(files, files, name, 1), tmp_path).results
    assert [one.code for result in results for one in result.findings] == ['MG140', 'MG140']
    assert {edit.number for result in results for one in result.findings for edit in one.edits} == {1}


@pytest.mark.parametrize('classes', [None, 3, 5])
@pytest.mark.parametrize('ids', [(0, 1, 2), (0, 1, 2, 3, 4), (0, 2, 7)])
def test_torchvision_gets_no_number_of_classes_that_keeps_id_0(ids: Any, classes: Any, tmp_path: Path) -> None:
    build = with_options(json_alone({i: f'kind {i}' for i in ids}, classes), framework='torchvision')
    found = [one for one in scan(build, tmp_path / 'set').results[0].findings if one.code == 'MG581']
    assert found
    for one in found:
        numbers = {int(number) for number in re.findall(r'num_classes=(\d+)', f'{one.advice} {one.edits}')}
        assert numbers <= {len(ids) + 1}


# ---- what would do harm


@pytest.mark.parametrize(
    ('build', 'conversions'),
    [
        (json_alone(THREE, 3, corners(some_boxes([0, 1, 2], 2, 3))), 1),  # six corners, some of them visibly wrong
        (slips(12), 0),
    ],
)
def test_boxes_are_not_dropped_or_clamped_where_the_format_may_be_another(
    build: Build, conversions: int, tmp_path: Path
) -> None:
    edits = [edit for finding in scan(build, tmp_path / 'set').results[0].findings for edit in finding.edits]
    assert len(edits) == conversions
    assert [edit for edit in edits if not all('boxes' in options for options in edit.files.values())] == []


def test_boxes_that_cannot_be_used_name_their_files(tmp_path: Path) -> None:
    over = rewritten(lambda data: data['annotations'][3].update(bbox=[300, 20, 60, 40]))
    finding = scan(over, tmp_path / 'set').results[0].findings[0]
    assert (finding.code, finding.files) == ('MG152', ('0001.jpg: 300, 20, 60, 40',))


def test_too_few_outputs_are_counted_for_the_numbering_that_is_asked_for(tmp_path: Path) -> None:
    """Three categories, 1 to 3: three outputs where they are renumbered; with them DETR trains id 3 as no object."""
    first = scan(rewritten(lambda data: None, 2, PETS), tmp_path / 'set').first
    assert first.code == 'MG108'
    (edit,) = first.edits
    assert edit.question
    assert edit.options == {'num_classes': 3, 'labels': 'positions'}


def test_half_of_the_ids_count_from_0(tmp_path: Path) -> None:
    """Adding 1 to all of them would move the half that is right."""
    first = scan(rewritten(with_key('category_id', minus_one, 2), None, PETS), tmp_path / 'set').first
    assert first.code == 'MG149'
    assert not any('label_map' in options for edit in first.edits for options in edit.files.values())


@pytest.mark.parametrize(
    ('code', 'build'), [('MG147', rewritten(of_one_id)), ('MG150', with_images(rewritten(of_two_folders)))]
)
def test_ambiguous_images_get_no_edit(code: str, build: Build, tmp_path: Path) -> None:
    first = scan(build, tmp_path / 'set').first
    assert (first.code, first.edits) == (code, ())


def test_a_file_too_large_to_copy_is_not_tried(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr('mmguard.scanning.run.LARGEST', 100)
    first = scan(json_alone(THREE, 3, corners(GOOD)), tmp_path / 'set').first
    assert first.code == 'MG172'
    assert not first.edits
