"""RF-DETR's own data sets deliver the labels that ``scan --framework rf-detr`` counts."""

from __future__ import annotations

import io
import json
from collections import Counter
from contextlib import redirect_stdout
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Dict, NamedTuple, Sequence

import pytest
from coco_cases import ann, coco
from explained_logs import check_known, find_code
from pictures import picture
from put_file import put
from scans import codes, scan

from mmguard.labels.numbering import COCO_IDS, FRAMEWORKS

pytest.importorskip('rfdetr')
pytest.importorskip('rich')

from rfdetr import RFDETRNano
from rfdetr.datasets import build_dataset
from rfdetr.detr import RFDETR

#: ``dataset_file`` -> annotation file and image folder of the training set.
LAYOUTS = {
    'roboflow': ('train/_annotations.coco.json', 'train'),
    'coco': ('annotations/instances_train2017.json', 'train2017'),
    'o365': ('zhiyuan_objv2_train_val_wo_5k.json', '.'),
}
SIZE = 64


class Categories(NamedTuple):
    ids: Sequence[int]
    #: Supercategory of each; the name of category N is ``'c' + str(N)``.
    above: Sequence[str]
    #: Ids without an annotation.
    bare: Sequence[int] = ()


def flat(*ids: int, above: str = 'none') -> Categories:
    return Categories(ids, [above] * len(ids))


LISTS = {
    'from 0': flat(0, 1, 2),
    'from 1': flat(1, 2, 3),
    'gaps': flat(1, 3, 7),
    'in another order': flat(7, 3, 5, above='thing'),
    'one': flat(1),
    'of COCO': flat(*COCO_IDS, above='thing'),
    'huge ids': flat(2905442, 2905443, 2905445),
    'root': Categories([0, 1, 2, 3], ['none', 'c0', 'c0', 'c0'], [0]),
    'annotated root': Categories([0, 1, 2, 3], ['none', 'c0', 'c0', 'c0']),
    'root at the end': Categories([1, 2, 3], ['c3', 'c3', 'none'], [3]),
    'two levels': Categories([0, 1, 2, 3, 4], ['none', 'c0', 'c1', 'c1', 'c0'], [0, 1]),
    'their own parents': Categories([1, 2, 3], ['c1', 'none', 'c2'], [2]),
    'each the parent of another': Categories([1, 2], ['c2', 'c1'], [1]),
}


def write(root: Path, file: str, images: str, listed: Categories) -> Path:
    """Two images with a box of each category that is not bare."""
    used = [(image, number) for image in (1, 2) for number in listed.ids if number not in listed.bare]
    boxes = [ann(place, image, number, (1, 2, 30, 40)) for place, (image, number) in enumerate(used)]
    record = coco(boxes, 2, {number: f'c{number}' for number in listed.ids}, size=(SIZE, SIZE), first_image=1)
    for image in record['images']:
        put(root / images / image['file_name'], picture(SIZE, SIZE))
    for category, word in zip(record['categories'], listed.above):
        category['supercategory'] = word
    return put(root / file, json.dumps(record))


def deliver(root: Path, layout: str, split: str = 'train') -> Dict[int, int]:
    """Label -> boxes that their data set delivers."""
    args = SimpleNamespace(
        dataset_file=layout,
        dataset_dir=str(root),
        coco_path=str(root),
        square_resize_div_64=True,
        segmentation_head=False,
        multi_scale=False,
        expanded_scales=False,
        patch_size=16,
        num_windows=4,
        scale_jitter=False,
    )
    with redirect_stdout(io.StringIO()):  # pycocotools prints
        return Counter(label for _, target in build_dataset(split, args, SIZE) for label in target['labels'].tolist())


def check(reported: Dict[str, Any], delivered: Dict[int, int], outputs: int) -> None:
    """The labels are those of their data set; there is an error only if the model has no output for one of them."""
    facts = reported['facts']
    assert {int(label): n for label, n in facts.get('histogram', {}).items()} == delivered
    beyond = {str(label): n for label, n in delivered.items() if label >= outputs}
    assert facts.get('values', {}) == beyond
    assert any(finding['severity'] == 'error' for finding in reported['findings']) is bool(beyond)


@pytest.mark.parametrize('name', LISTS)
def test_a_roboflow_layout(tmp_path: Path, capsys: pytest.CaptureFixture, name: str) -> None:
    file = write(tmp_path, *LAYOUTS['roboflow'], LISTS[name])
    outputs = RFDETR._detect_num_classes_for_training(str(tmp_path)) + 1
    delivered = deliver(tmp_path, 'roboflow')
    reported = scan(capsys, file, '--framework', 'rf-detr')
    check(reported, delivered, outputs)
    assert codes(reported) == ['MG100']
    assert reported['facts']['num_classes'] + 1 == outputs
    # Too small a model, as of num_classes=... in the call.
    check(scan(capsys, file, '--framework', 'rf-detr', '--num-classes', 1), delivered, 2)


@pytest.mark.parametrize('layout', ['coco', 'o365'])
@pytest.mark.parametrize('name', LISTS)
def test_ids_are_the_labels_of_other_layouts(
    tmp_path: Path, capsys: pytest.CaptureFixture, name: str, layout: str
) -> None:
    file = write(tmp_path, *LAYOUTS[layout], LISTS[name])
    for number in (len(LISTS[name].ids), max(LISTS[name].ids), 90):
        reported = scan(capsys, file, '--framework', 'rf-detr', '--num-classes', number)
        check(reported, deliver(tmp_path, layout), number + 1)


@pytest.mark.parametrize('name', LISTS)
def test_valid_has_the_labels_of_train(tmp_path: Path, capsys: pytest.CaptureFixture, name: str) -> None:
    write(tmp_path, *LAYOUTS['roboflow'], LISTS[name])
    everywhere = LISTS[name]._replace(bare=())
    file = write(tmp_path, 'valid/_annotations.coco.json', 'valid', everywhere)
    reported = scan(capsys, file, '--framework', 'rf-detr')
    try:
        delivered = deliver(tmp_path, 'roboflow', 'val')
    except KeyError:  # "Unknown category_id": train has no annotation of a grouping category
        assert (reported['code'], codes(reported)) == (1, ['MG394'])
    else:
        check(reported, delivered, RFDETR._detect_num_classes_for_training(str(tmp_path)) + 1)


def test_an_unlisted_id_ends_their_training(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    file = write(tmp_path, *LAYOUTS['roboflow'], flat(1, 2))
    data = json.loads(file.read_text())
    data['annotations'][1]['category_id'] = 5
    file.write_text(json.dumps(data))
    with pytest.raises(KeyError, match='Unknown category_id 5') as raised:
        deliver(tmp_path, 'roboflow')
    assert find_code(f'KeyError: {raised.value}') == 'MG379'
    reported = scan(capsys, file, '--framework', 'rf-detr')
    assert (reported['code'], codes(reported)[0]) == (1, 'MG149')
    check_known('MG379', 'unlisted-id', lambda: deliver(tmp_path, 'roboflow'))


def test_the_model_has_an_output_more_than_num_classes() -> None:
    model = RFDETRNano(num_classes=3, pretrain_weights=None, device='cpu').model.model
    assert model.class_embed.out_features == 3 + FRAMEWORKS['rf-detr'].spare
