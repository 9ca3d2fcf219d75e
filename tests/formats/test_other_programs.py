"""Files of formats that are not read: what they are is said, and what to do."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Dict, Tuple

import numpy as np
import pytest
from pictures import encode, picture
from PIL import Image
from put_file import put

from mmguard.cli import main

_BOX = '<box label="cat" xtl="5" ytl="5" xbr="25" ybr="20"></box>'
_CORNERS = ''.join(f'<{name}>9</{name}>' for name in ('x_left_top', 'y_left_top', 'x_right_top', 'y_right_top'))
_TO_COCO = '-f coco_instances -o coco'
#: Place of a file -> what is in it, and what is said.
FILES: Dict[str, Tuple[bytes, str]] = {
    'Annotations/train/7.xml': (
        b'<annotation><filename>7.jpg</filename><folder>a</folder><imagesize><nrows>9</nrows></imagesize>'
        b'<object><name>cat</name><polygon><pt><x>1</x><y>1</y></pt></polygon></object></annotation>',
        f'-if label_me {_TO_COCO}',
    ),
    'annotations/train.json': (
        b'{"dm_format_version": "1.0", "categories": {"label": {"labels": []}}, "items": [{"annotations": []}]}',
        f'-if datumaro {_TO_COCO}',
    ),
    'annotations/train-annotations-bbox.csv': (
        b'ImageID,Source,LabelName,Confidence\na,x,/m/01,1\n',
        'OpenImages',
    ),
    'trainval/7.mat': (b'MATLAB 5.0 MAT-file, Platform: GLNXA64' + bytes(100), 'pascal_context.py'),
    'cvat/annotations.xml': (
        '<?xml version="1.0"?>\n<annotations><version>1.1</version>\n<image id="0" name="7.jpg" width="64" height="48">'
        f'{_BOX}</image></annotations>'.encode(),
        f'-if cvat {_TO_COCO}',
    ),
    'video/annotations.xml': (
        f'<annotations><meta><job/></meta><track id="0" label="cat">{_BOX}</track></annotations>'.encode(),
        f'-if cvat {_TO_COCO}',
    ),
    'drawn/7.json': (
        b'{"version": "5.4.1", "flags": {}, "shapes": [{"label": "cat", "points": [[1, 1], [9, 9]]}]}',
        'labelme2coco.py',
    ),
    'old/7.json': (b'{"imageData": "iVBORw0KGgo=", "imagePath": "7.jpg", "shapes": []}', 'labelme2coco.py'),
    'gtFine/train/ulm/7_gtFine_polygons.json': (
        b'{"imgHeight": 48, "imgWidth": 64, "objects": [{"label": "road", "polygon": [[1, 1], [9, 1], [9, 9]]}]}',
        'tools/dataset_converters/cityscapes.py',
    ),
    'labelTxt/P0007.txt': (
        b'imagesource:GoogleEarth\ngsd:0.1\n5.0 5.0 25.0 5.0 25.0 20.0 5.0 20.0 large-vehicle 0\n',
        'tools/data/dota/dota2coco.py',
    ),
    'Oriented/00007.xml': (
        f'<annotation><object><name>ship</name><robndbox>{_CORNERS}</robndbox></object></annotation>'.encode(),
        'horizontal',
    ),
    'FullDataSet/100000007.xml': (
        b'<HRSC_Image><HRSC_Objects><HRSC_Object><mbox_ang>0.1</mbox_ang></HRSC_Object></HRSC_Objects></HRSC_Image>',
        'mmguard apply CONFIG',
    ),
    'target/007.json': (b'{"labels": ["dent"], "boxes": [[1, 2, 30, 40]]}', 'mmguard.detection.guard_targets'),
    'boxes/007.json': (b'{\n "boxes": [],\n "scores": [],\n "labels": []\n}', 'mmguard.detection.guard_targets'),
    'saved/train/data-00000-of-00001.arrow': (b'\xff\xff\xff\xff' + bytes(60), "row['label'].save("),
    'hub/data/train-00000-of-00002.parquet': (b'PAR1' + bytes(60) + b'PAR1', "row['label'].save("),
    'objects/metadata.jsonl': (
        b'{"file_name": "7.jpg", "objects": {"bbox": [[1, 1, 9, 9]], "categories": [0]}}\n',
        "row['label'].save(",
    ),
    'whole/metadata.csv': (b'file_name,label\n7.jpg,cat\n', "row['label'].save("),
    'kitti/infos_train.pkl': (pickle.dumps(dict(metainfo={}, data_list=[])), 'MMDetection3D'),
    'sequences/00/labels/000007.label': (bytes(16), 'SemanticKITTI'),
}  # fmt: skip


@pytest.mark.parametrize('name', sorted(FILES))
def test_what_they_are_is_said(name: str, tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    content, said = FILES[name]
    file = put(tmp_path / 'set' / name, content)
    (tmp_path / 'set/a.csv').write_text('name,number\n')
    put(tmp_path / 'set/images/7.jpg', picture())
    for target in (tmp_path / 'set', file.parent, file):
        assert main(['scan', str(target)]) == 2
        assert said in capsys.readouterr().err, target
        assert main(['fix', str(target), '--out', str(tmp_path / 'fixed')]) == 2
        assert said in capsys.readouterr().err, target
    assert not (tmp_path / 'fixed').exists()


def test_a_folder_of_label_maps_may_hold_what_they_were_drawn_with(tmp_path: Path) -> None:
    for number in range(12):
        Image.fromarray(np.arange(48 * 64, dtype=np.uint16).reshape(48, 64) % 2 > 0).save(tmp_path / f'{number}.png')
    for number, code in ((0, 0), (1, 2)):
        (tmp_path / f'{number}.json').write_text('{"shapes": [], "imagePath": "0.png"}')
        assert main(['scan', str(tmp_path), '--num-classes', '2']) == code
    assert main(['scan', str(tmp_path), '--num-classes', '2', '--suffix', '.png']) == 0


_CSV = 'filename,width,height,class,xmin,ymin,xmax,ymax\na.jpg,40,32,cat,1,2,3,4\n'
#: File that is named if nothing was read -> its content, and a part of the next step: a converter, an export or a call.
OTHER_FORMATS: Dict[str, Tuple[str, str]] = {
    'via.json': ('{"a.jpg9": {"filename": "a.jpg", "regions": [{"shape_attributes": {"x": 1}}]}}', 'COCO'),
    'createml.json': ('[{"image": "a.jpg", "annotations": [{"label": "cat", "coordinates": {"x": 1}}]}]', 'COCO'),
    'ann/a.jpg.json': ('{"objects": [{"classTitle": "cat", "geometryType": "bitmap"}]}', 'COCO'),
    'studio.json': ('[{"annotations": [{"result": [{"from_name": "label", "type": "brushlabels"}]}]}]', 'COCO'),
    'bdd.json': ('[{"name": "a.jpg", "labels": [{"category": "car", "box2d": {"x1": 1}}]}]', 'COCO'),
    'geo.geojson': ('{"type": "FeatureCollection", "features": []}', 'rasterize'),
    'model.json': (
        '{"architectures": ["SegformerForSemanticSegmentation"], "model_type": "segformer"}',
        'check_target',
    ),
    'cvat.xml': ('<annotations><version>1.1</version><image id="0" name="a.jpg"/></annotations>', 'datum convert'),
    'label_2/000000.txt': (
        'Car 0.00 0 -1.58 587.01 173.33 614.12 200.12 1.65 1.67 3.64 -0.65 1.71 46.70 -1.59\n',
        'kitti',
    ),
    'gt/gt.txt': ('1,1,912,484,97,109,0,7,1\n', 'mot_seq'),
    'visdrone.txt': ('684,8,273,116,0,4,0,0\n', 'COCO'),
    'wider.txt': ('0--Parade/a.jpg\n1\n449 330 122 149 0 0 0 0 0 0 \n', 'wider_face'),
    'named.txt': ('cat 0.5 0.5 0.1 0.1\n', 'YOLO'),
    'commas.txt': ('0,0.5,0.5,0.1,0.1\n', 'YOLO'),
    'list.txt': ('data/a.jpg 1,2,30,31,0 4,5,20,21,1\n', 'COCO'),
    'boxes.csv': (_CSV, 'COCO'),
    'rle.csv': ('ImageId,EncodedPixels\na.jpg,1 3 10 5\n', 'check_target'),
    'lines.jsonl': ('{"image": "a.jpg", "bbox": [1, 2, 3, 4]}\n', 'COCO'),
    'train.tfrecord': ('....', 'tf_detection_api'),
    'masks.h5': ('....', 'check_target'),
    'masks.npz': ('....', 'check_target'),
    'mask.pt': ('....', 'check_target'),
    'zarr/.zarray': ('{"zarr_format": 2}', 'check_target'),
    'sheet.xlsx': ('....', 'check_target'),
}


@pytest.mark.parametrize('as_folder', [False, True])
@pytest.mark.parametrize('name', OTHER_FORMATS)
def test_a_format_that_is_not_read_is_code_2_with_a_next_step(
    name: str, as_folder: bool, tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    text, step = OTHER_FORMATS[name]
    file = put(tmp_path / 'set' / name, text)
    target = tmp_path / 'set' if as_folder else file
    assert main(['scan', str(target), '--num-classes', '2']) == 2
    captured = capsys.readouterr()
    assert captured.out == ''
    assert [part for part in (str(target), step) if part not in captured.err] == []


_BELOW = ('boxes.csv', 'lines.jsonl', 'mask.pt', 'named.txt', 'rle.csv', 'via.json')


@pytest.mark.parametrize(('name', 'folder'), [*((one, '') for one in FILES), *((one, 'masks') for one in _BELOW)])
def test_label_maps_beside_them_are_read(name: str, folder: str, tmp_path: Path) -> None:
    content = OTHER_FORMATS[name][0].encode() if folder else FILES[name][0]
    (tmp_path / Path(name).name).write_bytes(content)
    put(tmp_path / folder / 'a.png', encode(np.zeros((48, 64), np.uint8)))
    assert main(['scan', str(tmp_path), '--num-classes', '2', '--suffix', '.png']) in (0, 1)
    if not name.endswith(('.xml', '/7.json')):  # among which label maps are no label maps without being asked for
        assert main(['scan', str(tmp_path), '--num-classes', '2']) in (0, 1)


def test_label_maps_that_were_drawn_of_polygons_are_read(tmp_path: Path) -> None:
    stem = str(tmp_path / '7_gtFine_')
    Path(f'{stem}polygons.json').write_bytes(FILES['gtFine/train/ulm/7_gtFine_polygons.json'][0])
    Image.fromarray(np.arange(48 * 64 * 3, dtype=np.uint8).reshape(48, 64, 3)).save(f'{stem}color.png')
    Image.fromarray(np.zeros((48, 64), np.uint8)).save(f'{stem}labelTrainIds.png')
    assert main(['scan', str(tmp_path), '--num-classes', '19']) in (0, 1)


@pytest.mark.parametrize(
    ('name', 'content'),
    [
        ('a.txt', '0 0.5 0.5 0.2 0.2\n'),
        ('a.txt', '0 0.1 0.1 0.4 0.1 0.4 0.4 0.1 0.4\n'),
        ('metadata.jsonl', '{"file_name": "a.png", "text": "a street"}\n'),
    ],
    ids=['boxes of YOLO', 'oriented boxes of YOLO', 'captions'],
)
def test_others_are_not_taken_for_them(name: str, content: str, tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    (tmp_path / name).write_text(content)
    Image.fromarray(np.zeros((48, 64, 3), np.uint8)).save(tmp_path / 'a.png')
    main(['scan', str(tmp_path)])
    said = capsys.readouterr().err
    hints = {hint for _, hint in FILES.values()}
    assert len(hints) > 3
    assert not [hint for hint in hints if hint in said]


@pytest.mark.parametrize('folder', ['', 'txt', 'annotations/boxes'])
@pytest.mark.parametrize(('ending', 'texts', 'code'), [('.jpg', 5, 2), ('.jpg', 1, 1), ('.png', 5, 1)])
def test_photos_with_a_text_file_for_each_are_no_label_maps(
    folder: str, ending: str, texts: int, code: int, tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    where = tmp_path / 'birds'
    for number in range(5):
        photo = np.random.default_rng(number).integers(0, 256, (24, 32, 3), dtype=np.uint8)
        put(where / f'{number}{ending}', encode(photo, 'JPEG' if ending == '.jpg' else 'PNG'))
        if number < texts:
            put(where / folder / f'{number}.txt', 'heron 3 4 17 20\n')
    assert main(['scan', str(where)]) == code
    assert ('data.yaml' in capsys.readouterr().err) == (code == 2)
