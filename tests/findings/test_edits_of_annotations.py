"""Edits about annotation files, boxes and volumes: the right one is offered and followed, one that does harm is not."""

from __future__ import annotations

import json
import shlex
import shutil
from pathlib import Path
from typing import Any, Dict, List, NamedTuple, Tuple

import numpy as np
import pytest
from annotation_files import GOOD, VOC_GOOD, corners, counts_from_zero, normalised, rewritten, voc
from detection_configs import NAMES, PETS, SITUATIONS
from situation import (
    coco_config,
    coco_data,
    coco_json,
    json_alone,
    retina,
    some_boxes,
    voc_config,
    voc_xml,
    with_options,
    write_config,
)
from volume_sets import LIVER, organs, volumes

from mmguard.cli import main
from mmguard.config.changes import changed
from mmguard.config.read import read_config
from mmguard.findings import Finding
from mmguard.findings.edits import Edit, trained_classes
from mmguard.findings.facts import LabelFacts
from mmguard.tools.scan.engine import scan_here
from mmguard.tools.scan.options import ScanOptions
from mmguard.tools.scan.run import SetResult, run_plan
from mmguard.tools.scan.target import plan_of

PARENT = {0: 'pets', 1: 'cat', 2: 'dog'}
THREE = {0: 'cat', 1: 'dog', 2: 'cow'}


def turned_sizes(data: Dict[str, Any]) -> None:
    for one in data['images']:
        one['width'], one['height'] = one['height'], one['width']
    for place, one in enumerate(data['annotations']):
        one['bbox'] = [200 + place % 9 * 10, 30, 40, 50]


def doubled(data: Dict[str, Any]) -> None:
    for one in data['annotations']:
        one['bbox'] = [2 * part for part in one['bbox']]


def empty_boxes(data: Dict[str, Any]) -> None:
    for one in data['annotations'][::5]:
        one['bbox'] = [0, 0, 0, 0]


def rows_first(boxes: List[Any]) -> List[Any]:
    """y1, x1, y2, x2, as TensorFlow's detection API writes them."""
    return [[(i, [y, x, y + h, x + w]) for i, (x, y, w, h) in image] for image in boxes]


class Scan(NamedTuple):
    path: Path
    options: Dict[str, Any]
    results: List[SetResult]

    @property
    def first(self) -> Finding:
        return self.results[0].findings[0]

    @property
    def labels(self) -> LabelFacts:
        return self.results[0].facts


def scan(target: Any) -> Scan:
    path, options = target if isinstance(target, tuple) else (target, {})
    return Scan(Path(path), options, run_plan(plan_of(str(path), ScanOptions(**options)), scan_here))


def follow(before: Scan, edit: Edit, root: Path) -> Scan:
    """What a reader does: the command is run, its copy takes the place of the original, the config is rewritten."""
    commands = [line for line in edit.text.split('`') if line.startswith('mmguard fix')]
    assert len(commands) == len(edit.files)
    for number, (line, (path, _)) in enumerate(zip(commands, edit.files)):
        words = shlex.split(line)
        assert words[:3] == ['mmguard', 'fix', path]
        out = root / f'fixed_{number}'
        words[words.index('--out') + 1] = str(out)
        assert main(words[1:]) == 0
        if Path(path).is_dir():
            shutil.rmtree(path)
            shutil.copytree(out, path)
            (Path(path) / 'manifest.json').unlink()
        else:
            shutil.copyfile(out / Path(path).name, path)
    path, options = before.path, dict(before.options)
    if edit.config:
        tree = changed(read_config(str(path)), edit.config)
        path = root / 'edited.py'
        path.write_text(''.join(f'{key} = {part!r}\n' for key, part in tree.data.items()))
    elif edit.options:
        options.update(edit.options)
    return scan((path, options))


def slips(number: int) -> Any:
    """So many boxes lie outside of their images."""

    def change(data: Dict[str, Any]) -> None:
        for annotation in data['annotations'][:number]:
            annotation['bbox'] = [330, 40, 20, 20]

    return rewritten(change)


def with_key(key: str, value: Any, every: int = 1) -> Any:
    def change(data: Dict[str, Any]) -> None:
        for annotation in data['annotations'][::every]:
            annotation[key] = value

    return rewritten(change)


def without_key(key: str) -> Any:
    return json_alone(THREE, 3, GOOD, without=(key,))


def as_text(key: str) -> Any:
    def change(data: Dict[str, Any]) -> None:
        for annotation in data['annotations']:
            annotation[key] = str(annotation[key])

    return rewritten(change)


def centred(data: Dict[str, Any]) -> None:
    for annotation in data['annotations']:
        x, y, w, h = annotation['bbox']
        annotation['bbox'] = [x + w / 2 + 100, y + h / 2 + 50, w, h]
        annotation['bbox'][:2] = [min(annotation['bbox'][0], 320 - w / 2), min(annotation['bbox'][1], 240 - h / 2)]


def turned(data: Dict[str, Any]) -> None:
    for annotation in data['annotations'][::3]:
        x, y, w, h = annotation['bbox']
        annotation['bbox'] = [x + w, y + h, -w, -h]


def twice(data: Dict[str, Any]) -> None:
    data['categories'].append({'id': 7, 'name': 'cat'})
    for annotation in data['annotations'][::6]:
        annotation['category_id'] = 7


def repeated_ids(data: Dict[str, Any]) -> None:
    for annotation in data['annotations']:
        annotation['id'] = annotation['id'] % 20


#: Code -> (situation, applicability of the first edit, what it must say).
OFFERED: List[Tuple[str, Any, str, str]] = [
    ('MG109', slips(2), 'safe', 'which leaves them out'),
    ('MG109', voc([[('cat', [10, 20, 10, 80]), ('dog', [5, 5, 60, 60])], *VOC_GOOD]), 'safe', 'which leaves them out'),
    ('MG109', rewritten(empty_boxes), 'asks', 'which leaves them out'),
    (
        'MG115',
        with_options(json_alone(PARENT, 2, some_boxes([1, 2])), labels='ids'),
        'asks',
        '--classes cat,dog --renumber 0',
    ),
    ('MG137', with_options(json_alone({8823411: 'cat', 8823412: 'dog'}, 2), labels='ids'), 'safe', '--renumber 0'),
    ('MG140', coco_config(PETS, None, retina(3)), 'safe', "classes=('cat', 'dog', 'cow',)"),
    ('MG140', coco_config(PETS, ('cat', 'Dog', 'cow'), retina(3)), 'safe', "'Dog' is 'dog' there"),
    ('MG141', coco_config(PETS, ('cat', 'cow', 'dog'), retina(3)), 'safe', "classes=('cat', 'dog', 'cow',)"),
    ('MG145', SITUATIONS['all images are too small'].build, 'asks', 'min_size=1'),
    ('MG146', SITUATIONS['DINO with empty images'].build, 'asks', 'filter_empty_gt=True'),
    ('MG146', json_alone(THREE, 3, GOOD + [[]] * 6), 'asks', '--drop-empty'),
    ('MG147', rewritten(repeated_ids), 'safe', 'numbers the annotations anew'),
    ('MG147', rewritten(twice, None), 'asks', '--label-map 7:0'),
    ('MG149', rewritten(counts_from_zero, None, PETS), 'asks', '--label-map 0:1,1:2,2:3'),
    ('MG150', SITUATIONS['the folder twice'].build, 'safe', "data_prefix=dict(img='')"),
    ('MG150', SITUATIONS['the ending in another case'].build, 'asks', '--images'),
    ('MG152', voc([[('cat', [0, 0, 80, 90])], *VOC_GOOD]), 'safe', 'minus-one'),
    ('MG153', without_key('area'), 'safe', 'area'),
    ('MG154', SITUATIONS['a class was forgotten in the list'].build, 'asks', "classes=('cat', 'dog', 'cow',)"),
    ('MG172', json_alone(THREE, 3, corners(GOOD)), 'asks', '--boxes corners'),
    ('MG173', json_alone(THREE, 3, normalised(GOOD)), 'asks', '--boxes fractions'),
    ('MG174', with_key('iscrowd', 1), 'asks', '--no-crowds'),
    ('MG174', as_text('image_id'), 'safe', 'makes numbers'),
    ('MG174', with_key('area', 0), 'safe', 'areas of the boxes'),
    ('MG176', as_text('category_id'), 'safe', 'makes numbers'),
]


#: Boxes in a format that no edit converts: what to look at is said, and nothing is clamped or dropped.
OTHER_FORMATS: List[Tuple[str, Any, str]] = [
    ('MG109', rewritten(turned), 'another corner'),
    ('MG109', rewritten(turned_sizes), 'swapped'),
    ('MG109', voc([[(n, [x, y, 60, 50]) for n, (x, y, _, _) in boxes] for boxes in VOC_GOOD]), 'xmin + w'),
    ('MG152', rewritten(centred), 'the centre'),
    ('MG172', json_alone(THREE, 3, rows_first(GOOD)), 'y1, x1, y2, x2'),
]


@pytest.mark.parametrize(('code', 'build', 'says'), OTHER_FORMATS)
def test_boxes_in_another_format_are_shown_and_neither_clamped_nor_dropped(
    code: str, build: Any, says: str, tmp_path: Path, capsys: Any
) -> None:
    target, options = build(tmp_path / 'set')
    found = scan((target, options))
    assert (found.first.code, found.first.edits) == (code, ())
    assert says in found.first.advice
    assert main(['fix', str(target), '-o', str(tmp_path / 'out')]) == 2
    assert says in capsys.readouterr().err
    assert not (tmp_path / 'out').exists()


@pytest.mark.parametrize(('code', 'build', 'applicability', 'says'), OFFERED)
def test_the_edit_is_offered_and_closes_the_case(
    code: str, build: Any, applicability: str, says: str, tmp_path: Path
) -> None:
    before = scan(build(tmp_path / 'set'))
    assert before.first.code == code
    assert before.first.edits, before.first.advice
    edit = before.first.edits[0]
    assert (edit.applicability, says in edit.text) == (applicability, True), edit.text
    after = follow(before, edit, tmp_path)
    severe = [finding for finding in after.results[0].findings if finding.severity != 'info']
    assert not severe, severe
    named = trained_classes(after.labels)
    assert sum(named.values()) >= sum(trained_classes(before.labels).values())
    assert set(named) == set(range(after.labels.num_classes)), 'every class still has its labels'


def test_a_set_without_metainfo_is_never_given_the_classes_of_its_type(tmp_path: Path) -> None:
    found = scan(coco_config(PETS, None, retina(80))(tmp_path / 'set'))
    assert found.first.code == 'MG140'
    edit = found.first.edits[0]
    assert "classes=('cat', 'dog', 'cow',)" in edit.text
    assert '`num_classes=3`' in edit.text
    after = follow(found, edit, tmp_path)
    assert [finding.code for finding in after.results[0].findings] == ['MG100']
    for finding in found.results[0].findings:
        assert not any('num_classes=80' in edit.text for edit in finding.edits)


def test_a_split_without_a_class_list_gets_that_of_the_training_in_its_order(tmp_path: Path) -> None:
    """Of XML files, which list no categories: the alphabet would turn the classes of the training."""
    drawn = [[('vest', [20, 30, 90, 120]), ('helmet', [100, 50, 200, 180])]] * 6
    path, _ = voc_config(drawn, ('vest', 'helmet'), retina(2))(tmp_path)
    parts = dict(read_config(str(path)).data)
    data = dict(parts['train_dataloader']['dataset'], data_root=str(tmp_path / 'val'), test_mode=True)
    del data['metainfo']
    voc_xml(tmp_path / 'val/VOC2007', [boxes[::-1] for boxes in drawn])
    path = write_config(tmp_path, **parts, val_dataloader=dict(batch_size=1, dataset=data))
    found = scan((path, dict(splits=('train', 'val'))))
    (finding,) = [one for result in found.results for one in result.findings if one.code == 'MG140']
    assert [edit.text for edit in finding.edits if "classes=('vest', 'helmet',)" in edit.text] == [
        finding.edits[0].text
    ]


@pytest.mark.parametrize('names', [('person', 'car', 'helmet'), ('dog', 'hen', 'cow', 'goose'), ('cup', 'mug')])
def test_names_that_are_coco_s_as_well_do_not_make_its_list_an_answer(names: tuple, tmp_path: Path) -> None:
    """Nobody wrote that list: the data set type has it, and most of the user's classes are not in it."""
    found = scan(coco_config(dict(enumerate(names, 1)), None, retina(len(names)))(tmp_path / 'set'))
    assert 'MG201' in [finding.code for finding in found.results[0].findings]
    for finding in found.results[0].findings:
        assert not any('num_classes=80' in edit.text for edit in finding.edits), finding.edits


@pytest.mark.parametrize('box', [[0, 0, 80, 90], [0, 12, 50, 60], [30, 0, 90, 44]])
def test_corners_that_count_from_0_are_raised_or_not_subtracted_from(box: list, tmp_path: Path) -> None:
    found = scan(voc([[('cat', box)], *VOC_GOOD])(tmp_path / 'set'))
    (edit,) = found.first.edits
    assert edit.text.index('add 1 to all corners') < edit.text.index('mmguard fix'), edit.text
    assert 'these boxes alone' in edit.text


def two_orders(root: Path) -> Any:
    """Train and val list their categories in different orders; the config has that of neither."""
    val = {1: 'dog', 2: 'cat', 3: 'cow'}
    coco_json(root / 'train/ann.json', PETS, some_boxes([1, 2, 3]))
    coco_json(root / 'val/ann.json', val, some_boxes([1, 2, 3], 4))
    classes = ('cow', 'cat', 'dog')
    parts = dict(
        train_dataloader=dict(dataset=coco_data(root, classes)),
        val_dataloader=dict(dataset=coco_data(root, classes, 'val', test_mode=True)),
    )
    return write_config(root, default_scope='mmdet', model=retina(3), **parts)


def test_orders_that_differ_in_two_files_are_made_one(tmp_path: Path) -> None:
    before = scan(two_orders(tmp_path))
    assert [result.findings[0].code for result in before.results] == ['MG141', 'MG141']
    (edit,) = before.first.edits
    assert [path for path, _ in edit.files] == [str(tmp_path / split / 'ann.json') for split in ('train', 'val')]
    after = follow(before, edit, tmp_path)
    assert [result.findings[0].code for result in after.results] == ['MG100', 'MG100']
    for split in ('train', 'val'):
        listed = json.loads((tmp_path / split / 'ann.json').read_text())['categories']
        assert [category['name'] for category in listed] == ['cow', 'cat', 'dog']


def test_a_category_that_the_validation_lacks_is_listed_there(tmp_path: Path) -> None:
    coco_json(tmp_path / 'train/ann.json', PETS, some_boxes([1, 2, 3]))
    coco_json(tmp_path / 'val/ann.json', {1: 'cat', 3: 'cow'}, some_boxes([1, 3], 5))
    parts = dict(
        train_dataloader=dict(dataset=coco_data(tmp_path, NAMES)),
        val_dataloader=dict(dataset=coco_data(tmp_path, NAMES, 'val', test_mode=True)),
    )
    before = scan(write_config(tmp_path, default_scope='mmdet', model=retina(3), **parts))
    val = next(result for result in before.results if result.name == 'val')
    (edit,) = val.findings[0].edits
    after = follow(before, edit, tmp_path)
    assert {result.findings[0].code for result in after.results} == {'MG100'}


# ---- what would do harm


@pytest.mark.parametrize(
    'build',
    [
        json_alone(THREE, 3, corners(some_boxes([0, 1, 2], 2, 3))),  # six corners, some of them visibly wrong
        rewritten(centred),
        voc([[(n, [x, y, 60, 50]) for n, (x, y, _, _) in boxes] for boxes in VOC_GOOD]),
        slips(12),
    ],
)
def test_boxes_are_not_dropped_or_clamped_where_the_format_may_be_another(build: Any, tmp_path: Path) -> None:
    for finding in scan(build(tmp_path / 'set')).results[0].findings:
        for edit in finding.edits:
            assert all('boxes' in dict(options) for _, options in edit.files), edit.text


def test_boxes_that_cannot_be_used_name_their_files(tmp_path: Path) -> None:
    over = rewritten(lambda data: data['annotations'][3].update(bbox=[300, 20, 60, 40]))
    (finding,) = scan(over(tmp_path / 'set')).results[0].findings
    assert finding.code == 'MG152'
    assert finding.files == ('0001.jpg: 300, 20, 60, 40',)
    assert 'minus-one' not in finding.advice


def test_minus_one_is_said_where_nothing_else_is_seen(tmp_path: Path) -> None:
    below = scan(voc([[('cat', [-20, 0, 80, 90])], *VOC_GOOD])(tmp_path / 'below'))
    assert below.first.code == 'MG152'
    assert 'minus-one' not in below.first.advice


def test_too_few_outputs_have_another_number_for_each_numbering(tmp_path: Path) -> None:
    """Three categories, 1 to 3: three outputs where they are renumbered; with them DETR trains id 3 as no object."""
    target, options = rewritten(lambda data: None, 2, PETS)(tmp_path / 'set')
    first = scan((target, options)).first
    assert first.code == 'MG108'
    assert [edit.applicability for edit in first.edits] == ['asks', 'asks']
    assert [dict(edit.options) for edit in first.edits] == [
        {'num_classes': 3, 'labels': 'positions'},
        {'num_classes': 4, 'labels': 'ids'},
    ]


def test_half_of_the_ids_count_from_0(tmp_path: Path) -> None:
    """Adding 1 to all of them would move the half that is right."""

    def half(data: Dict[str, Any]) -> None:
        for annotation in data['annotations'][::2]:
            annotation['category_id'] -= 1

    first = scan(rewritten(half, None, PETS)(tmp_path / 'set')).first
    assert first.code == 'MG149'
    assert not any('label_map' in dict(options) for edit in first.edits for _, options in edit.files)
    assert 'add 1' not in first.advice


def test_two_images_with_one_id_are_left_to_the_user(tmp_path: Path) -> None:
    def same_ids(data: Dict[str, Any]) -> None:
        for image in data['images'][6:]:
            image['id'] -= 6

    first = scan(rewritten(same_ids)(tmp_path / 'set')).first
    assert first.code == 'MG147'
    assert not first.edits
    assert 'Merge the files again' in first.advice


def test_two_images_of_one_name_are_not_made_one(tmp_path: Path) -> None:
    """day/0000.jpg and night/0000.jpg: the one that is there is not both."""

    def of_two_folders(data: Dict[str, Any]) -> None:
        for number, image in enumerate(data['images']):
            image['file_name'] = f'{("day", "night")[number % 2]}/{number // 2:04}.jpg'

    path, options = rewritten(of_two_folders)(tmp_path / 'set')
    first = scan((path, {**options, 'images': str(path.parent)})).first
    assert first.code == 'MG150'
    assert not first.edits


def test_a_file_too_large_to_copy_is_not_tried(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr('mmguard.tools.scan.tried.LARGEST', 100)
    first = scan(json_alone(THREE, 3, corners(GOOD))(tmp_path / 'set')).first
    assert first.code == 'MG172'
    assert not first.edits


# ---- volumes


def write_volumes(root: Path, edit: Edit) -> None:
    """What the text of an edit says, by hand."""
    nibabel = pytest.importorskip('nibabel')
    ((path, options),) = edit.files
    assert path == str(root)
    changes = dict(options)
    content = json.loads((root / 'dataset.json').read_text())
    (root / 'dataset.json').write_text(json.dumps({**content, **dict(changes.get('dataset_json', ()))}))
    for file in (root / 'labelsTr').iterdir():
        volume = nibabel.load(str(file))
        old = np.asarray(volume.dataobj)
        new = old.copy()
        for value, label in changes.get('label_map', ()):
            new[old == value] = label
        nibabel.save(nibabel.Nifti1Image(new, volume.affine), str(file))


@pytest.mark.parametrize(
    ('values', 'labels', 'code', 'question', 'text'),
    [
        ((1, 2, 9), None, 'MG185', 'Does 9 mark what nobody annotated?', '"ignore": 3'),
        ((1, 2, 255), None, 'MG185', 'Does 255 mark what nobody annotated?', '"ignore": 3'),
        ((1, 2, 3), None, 'MG185', 'Is 3 a class that was forgotten?', '"NAME": 3'),
        ((1, 4), None, 'MG185', "Is 4 'tumor'?", '{4: 2}'),
        ((1, 4), {'background': 0, 'liver': 1, 'tumor': 4}, 'MG181', '', '"tumor": 2'),
    ],
)
def test_edits_of_volumes(values: Any, labels: Any, code: str, question: str, text: str, tmp_path: Path) -> None:
    pytest.importorskip('nibabel')
    root = volumes(LIVER if labels is None else labels, organs(*values), 3)(tmp_path)
    before = scan(root)
    assert before.first.code == code
    edit = before.first.edits[0]
    assert (edit.applicability, edit.question) == ('manual', question)
    assert text in edit.text
    write_volumes(root, edit)
    after = scan(root)
    assert [finding.code for finding in after.results[0].findings] == ['MG195']
    assert sum(after.labels.histogram.values()) == sum(before.labels.histogram.values())
    assert after.labels.histogram[0] == before.labels.histogram[0], 'nothing becomes background'


def test_the_number_of_cases_is_asked_for(tmp_path: Path) -> None:
    pytest.importorskip('nibabel')
    root = volumes(LIVER, organs(1, 2), 3, numTraining=5)(tmp_path)
    first = scan(root).first
    assert (first.code, first.edits[0].question) == ('MG183', 'Are all cases there?')
    write_volumes(root, first.edits[0])
    assert scan(root).first.code == 'MG195'
