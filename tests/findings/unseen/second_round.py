"""A second round, written after the first had been sanitized, and again before any scan was run on it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Dict

import numpy as np
from annotation_files import VOC_GOOD, rewritten, voc
from detection_configs import NAMES, PETS
from drawn_scenes import VOID, coloured, each, save, save_photos, scenes
from mask_values import blobs, unlabelled_zero
from PIL import Image
from segmentation_configs import FIVE
from situation import (
    CE,
    Situation,
    coco_config,
    coco_data,
    coco_json,
    json_alone,
    masks,
    numbered,
    retina,
    seg_config,
    seg_model,
    some_boxes,
    voc_xml,
    with_options,
    write_config,
)

LABELME = [(0, 0, 0), (128, 0, 0), (0, 128, 0), (128, 128, 0), (0, 0, 128), (128, 0, 128), (0, 128, 128)]
VIRIDIS = [(68, 1, 84, 255), (49, 104, 142, 255), (53, 183, 121, 255), (253, 231, 37, 255)]
TEN = [f'c{i}' for i in range(10)]


def grayed(label: np.ndarray) -> Image.Image:
    """The label drawn in labelme's palette, opened by somebody with .convert('L')."""
    image = Image.fromarray(label)
    image.putpalette([part for colour in LABELME for part in colour])
    return image.convert('L')


def visualisations_beside(root: Path) -> Any:
    """The export wrote label and coloured picture into one folder."""
    drawn = scenes(range(4), 6)
    save(root / 'masks', drawn, '{:03}_label')
    save(root / 'masks', each(drawn, lambda label: coloured(label, LABELME[:4])), '{:03}_viz')
    return root / 'masks', dict(num_classes=4)


def few_of_other_size(root: Path) -> Any:
    """Two label maps were drawn on thumbnails."""
    drawn = scenes(range(5), 12)
    drawn[3], drawn[8] = drawn[3][::2, ::2], drawn[8][::2, ::2]
    save(root / 'masks', drawn)
    save_photos(root / 'photos', 12)
    return root / 'masks', dict(num_classes=5, images=str(root / 'photos'))


def loader_alone_reduces(root: Path) -> Any:
    """LoadAnnotations(reduce_zero_label=True) was copied from ADE20K, the data set does not say so."""
    names = ['background', 'A', 'B', 'C']
    return seg_config(scenes(range(4), 6), names, seg_model(4), loader=dict(reduce_zero_label=True))(root)


def windows_paths(data: Dict[str, Any]) -> None:
    for one in data['images']:
        one['file_name'] = 'images\\train\\' + one['file_name']


def absolute_paths(data: Dict[str, Any]) -> None:
    for one in data['images']:
        one['file_name'] = '/home/anna/pets/' + one['file_name']


def config_of(change: Any, classes: Any = NAMES, categories: Any = None) -> Any:
    """A detection config whose JSON was changed."""

    def build(root: Path) -> Any:
        known = PETS if categories is None else categories
        data = coco_json(root / 'train/ann.json', known, some_boxes(list(known)))
        change(data)
        (root / 'train/ann.json').write_text(json.dumps(data), encoding='utf-8')
        loader = dict(dataset=coco_data(root, classes))
        parts = dict(default_scope='mmdet', model=retina(len(classes)), train_dataloader=loader)
        return write_config(root, **parts), dict(splits=('train',))

    return build


def names_are_numbers(data: Dict[str, Any]) -> None:
    for number, one in enumerate(data['categories'], 1):
        one['name'] = number


def cat_twice(data: Dict[str, Any]) -> None:
    data['categories'].append(dict(id=7, name='cat'))
    for one in data['annotations'][::4]:
        one['category_id'] = 7


def centres(data: Dict[str, Any]) -> None:
    for one in data['annotations']:
        x, y, w, h = one['bbox']
        one['bbox'] = [x + w / 2, y + h / 2, w, h]


def doubled(data: Dict[str, Any]) -> None:
    for one in data['annotations']:
        one['bbox'] = [2 * part for part in one['bbox']]


def empty_boxes(data: Dict[str, Any]) -> None:
    for one in data['annotations'][::5]:
        one['bbox'] = [0, 0, 0, 0]


def rotated(data: Dict[str, Any]) -> None:
    for one in data['annotations']:
        one['bbox'].append(0.3)


def no_boxes(data: Dict[str, Any]) -> None:
    for one in data['annotations']:
        x, y, w, h = one.pop('bbox')
        one['segmentation'] = [[x, y, x + w, y, x + w, y + h, x, y + h]]


def voc_swapped_size(root: Path) -> Any:
    """An exporter confused width and height; the pictures are 320 x 240."""
    return voc_xml(root / 'VOC', VOC_GOOD, size=(240, 320)), {}


def voc_with_sizes(root: Path) -> Any:
    """xmax and ymax hold width and height."""
    drawn = [[('cat', [120, 90, 40, 60]), ('dog', [30, 120, 150, 70])] for _ in range(6)]
    return voc_xml(root / 'VOC', drawn), {}


def validation_lacks_a_category(root: Path) -> Any:
    """No dog in the validation pictures: the exporter left the category out. mmdet then calls cows dogs."""
    coco_json(root / 'train/ann.json', PETS, some_boxes([1, 2, 3]))
    coco_json(root / 'val/ann.json', {1: 'cat', 3: 'cow'}, some_boxes([1, 3], 5))
    parts = dict(
        train_dataloader=dict(dataset=coco_data(root, NAMES)),
        val_dataloader=dict(dataset=coco_data(root, NAMES, 'val', test_mode=True)),
    )
    return write_config(root, default_scope='mmdet', model=retina(3), **parts), dict(splits=('val',))


def water(root: Path) -> Any:
    """classes=('water') without its comma, as reported."""
    build = seg_config(blobs(1, 6), None, seg_model(1), reduce_zero_label=True, metainfo=dict(classes='water'))
    return build(root)


FINE = ('MG100',)

SITUATIONS: Dict[str, Situation] = {
    'open-mmlab/mmsegmentation#2081': Situation(
        'labelme palette PNGs converted to gray: 38, 75, 113, 15, 53, 90 instead of 1..6',
        ('MG121', 'MG125'),
        masks(each(scenes(range(7), 6), grayed), 7),
        ('38: 1', '90: 6'),
    ),
    'open-mmlab/mmsegmentation#1601': Situation(
        'config derived from ADE20K: reduce_zero_label=True, 0 is the background of three classes',
        ('MG124',),
        seg_config(scenes(range(3), 6), ['background', 'tissue', 'tumour'], seg_model(3), reduce_zero_label=True),
        ('reduce_zero_label=False',),
    ),
    'open-mmlab/mmsegmentation#789': Situation(
        'reduce_zero_label=True in LoadAnnotations alone: the last class is never seen',
        ('MG124',),
        loader_alone_reduces,
        ('reduce_zero_label=False',),
    ),
    'open-mmlab/mmsegmentation#3505': Situation(
        "classes=('water') is a string", ('MG140', 'MG201', 'MG204'), water, ("('water',)",)
    ),
    'kornia/kornia#839': Situation(
        'VOC with 255 borders is right; the dice loss makes one-hot vectors of 255',
        FINE,
        masks(scenes([0, 5, 12, 15, 20], 6, border=VOID), 21),
        ('one-hot',),
    ),
    'Lightning-AI/torchmetrics#2849': Situation(
        'six classes and 255: right; the metric does not know the ignored value',
        FINE,
        masks(scenes([*range(6), VOID], 6), 6),
        ('ignore_index=255',),
    ),
    'meetps/pytorch-semseg#67': Situation(
        'void is 250, and 250 is ignored: right',
        FINE,
        with_options(masks(scenes([*range(19), 250], 5), 19), ignore_index=250),
    ),
    'pytorch-semseg, void is 255': Situation(
        'ignore_index=250 of the code, 255 in the files',
        ('MG104',),
        with_options(masks(scenes([*range(19), VOID], 5), 19), ignore_index=250),
        ('255',),
    ),
    'blackfeather-wang/ISDA#10': Situation(
        '255 was replaced by 19 of 19 classes', ('MG102',), masks(scenes(range(20), 5), 19), ('label_map={19: 255}',)
    ),
    'open-mmlab/mmsegmentation#417': Situation(
        'two classes, right labels; the dice loss counted one class', FINE, masks(blobs(1, 6), 2)
    ),
    'plt.imsave with viridis': Situation(
        'plt.imsave drew the classes in colours',
        ('MG120',),
        masks(each(scenes(range(4), 5), lambda label: coloured(label, VIRIDIS)), 4),
        ('(253, 231, 37)',),
    ),
    'plt.imsave in gray': Situation(
        'plt.imsave(cmap="gray") stretched 0..3 over RGBA',
        ('MG120',),
        masks(each(scenes(range(4), 5), lambda label: coloured(label, [(85 * i,) * 3 + (255,) for i in range(4)])), 4),
        ('85: 1', '255: 3'),
    ),
    'six gray levels': Situation(
        '255 / 5 apart', ('MG125',), masks(each(scenes(range(6), 6), lambda label: label * 51), 6), ('51: 1', '255: 5')
    ),
    'visualisations beside the labels': Situation(
        'half of the files are coloured pictures of the other half', ('MG120',), visualisations_beside, ('6 files',)
    ),
    'weights of 19 classes kept, five of ones own': Situation(
        'head and class_weight still have 19 classes, the list five',
        ('MG201', 'MG214'),
        seg_config(scenes(range(5), 6), FIVE, seg_model(19, dict(loss_decode={**CE, 'class_weight': [1.0] * 19}))),
        ('num_classes',),
    ),
    'DeepGlobe roads': Situation(
        'white roads in RGB: 0 and 255 in three equal channels',
        ('MG120', 'MG103'),
        masks(each(blobs(255, 6), lambda label: np.dstack([label] * 3)), 2, files=dict(stem='{:06}_mask')),
        ('> 127',),
    ),
    'Kvasir': Situation(
        'masks are JPEG: 0..7 and 248..255',
        ('MG136',),
        masks(blobs(255, 6), 2, with_photos=True, files=dict(ending='.jpg', quality=90)),
        ('PNG',),
    ),
    'GTA5': Situation(
        'palette PNGs of raw Cityscapes ids',
        ('MG101',),
        masks(scenes([0, 4, 5, 7, 8, 11, 17, 21, 23, 24, 26, 33], 5), 19, files=dict(palette=LABELME * 5)),
        ('labelTrainIds',),
    ),
    'SUN RGB-D': Situation(
        '0 is unlabelled, classes are 1..37',
        ('MG102', 'MG115'),
        masks(unlabelled_zero(37), 37),
        ('reduce_zero_label=True',),
    ),
    'NYU, 16 bits': Situation(
        '0 is unlabelled, classes are 1..40, saved in 16 bits',
        ('MG102', 'MG115'),
        masks(each(unlabelled_zero(40), lambda label: label.astype(np.uint16)), 40),
        ('reduce_zero_label=True',),
    ),
    'two labels on thumbnails': Situation('two files of another size', ('MG130',), few_of_other_size, ('2 files',)),
    'OHEM on one channel': Situation(
        'num_classes=2, out_channels=1 with OhemCrossEntropy',
        ('MG215',),
        seg_config(
            blobs(1, 6),
            ['ground', 'crack'],
            seg_model(2, dict(out_channels=1, loss_decode=dict(type='OhemCrossEntropy', thres=0.9, min_kept=100))),
        ),
        ('two channels',),
    ),
    'a class was added to the files': Situation(
        'the annotators added a sixth class, the config knows five: half of the files hold it',
        ('MG102', 'MG108'),
        seg_config(scenes(range(6), 10, keep=0.6), FIVE, seg_model(5)),
        ('num_classes=6',),
    ),
    'two classes were added': Situation(
        'the files hold ten classes, config and head eight',
        ('MG107',),
        seg_config(scenes(range(10), 10, keep=0.8), TEN[:8], seg_model(8)),
        ('num_classes=10',),
    ),
    'the head is two short of the list': Situation(
        'ten names, ten classes, head of eight',
        ('MG108', 'MG201'),
        seg_config(scenes(range(10), 10, keep=0.8), TEN, seg_model(8)),
        ('num_classes=10',),
    ),
    'signed void': Situation(
        'void is -1 in 32-bit files: it becomes 255 on loading, but plain code sees -1',
        ('MG122', 'MG105'),
        masks(
            each(scenes([0, 1, 2, VOID], 6), lambda x: np.where(x == VOID, -1, x.astype(np.int32)).astype(np.int32)),
            3,
            files=dict(ending='.tif'),
        ),
        ('-1',),
    ),
    'crops without a label': Situation(
        'a third of the tiles is 255 alone, with OHEM',
        ('MG128',),
        seg_config(
            scenes(range(5), 6) + [np.full((60, 80), VOID, np.uint8)] * 3,
            FIVE,
            seg_model(5, dict(loss_decode=dict(type='OhemCrossEntropy', thres=0.7, min_kept=100000))),
        ),
        ('3 files',),
    ),
    'roboflow/rf-detr#413': Situation(
        'ids 1..3 without a category 0', ('MG138', 'MG115'), json_alone(numbered('car', 'bus', 'van'), 3), ('0..2',)
    ),
    'open-mmlab/mmdetection#4053': Situation(
        'camera traps: categories in the order 6, 1, 30, 9; the config lists them otherwise',
        ('MG141',),
        coco_config(
            {6: 'bobcat', 1: 'opossum', 30: 'empty', 9: 'coyote'},
            ('opossum', 'bobcat', 'coyote', 'empty'),
            retina(4),
        ),
        ("'bobcat', 'opossum', 'empty', 'coyote'",),
    ),
    'cvondrick/vatic#90': Situation(
        'width and height are swapped in the XML', ('MG175', 'MG152', 'MG109'), voc_swapped_size, ('swapped',)
    ),
    'pytorch/vision#1128': Situation(
        'xmax and ymax hold width and height', ('MG109',), voc_with_sizes, ('two corners',)
    ),
    'names are numbers': Situation(
        '"name": 1 in the JSON, classes=("1", "2", "3") in the config: nothing is found',
        ('MG140', 'MG176', 'MG174'),
        config_of(names_are_numbers, ('1', '2', '3')),
        ('"name"',),
        ('lfs',),
    ),
    'paths of Windows': Situation(
        'file_name holds backslashes and folders', ('MG150',), config_of(windows_paths), ('file_name',)
    ),
    'paths of another machine': Situation(
        'file_name is absolute', ('MG150',), config_of(absolute_paths), ('file_name',)
    ),
    'cat twice': Situation(
        'two categories are called cat', ('MG147', 'MG177'), config_of(cat_twice), ('cat',), ('num_classes=4',)
    ),
    'centres': Situation(
        'bbox holds the centre, width and height: many boxes reach over the edge',
        ('MG152',),
        rewritten(centres),
        ('the centre',),
    ),
    'boxes of twice the size': Situation(
        'annotated on pictures of twice the size; the JSON tells the present one',
        ('MG109', 'MG152'),
        rewritten(doubled),
        ('scale',),
    ),
    'boxes of nothing': Situation(
        'pictures without object got a box 0, 0, 0, 0', ('MG109',), rewritten(empty_boxes), ('0, 0, 0, 0',)
    ),
    'rotated boxes': Situation('five numbers', ('MG176',), rewritten(rotated), ('four numbers',), ('lfs',)),
    'polygons alone': Situation('no bbox, only segmentation', ('MG153',), rewritten(no_boxes), ('bbox',)),
    'the validation lacks a category': Situation(
        'the file of the validation does not list "dog": labels behind it move down',
        ('MG140',),
        validation_lacks_a_category,
        ('"categories"', "'dog'"),
        ("classes=('cat', 'cow',)",),
    ),
    'many empty pictures under RetinaNet': Situation(
        'filter_empty_gt=False, a third without objects',
        ('MG146',),
        coco_config(
            PETS,
            NAMES,
            retina(3),
            some_boxes([1, 2, 3], 20) + [[]] * 10,
            settings=dict(filter_cfg=dict(filter_empty_gt=False)),
        ),
        ('filter_empty_gt=True',),
    ),
    'divergence': Situation(
        'the loss is nan because of the learning rate: the labels are fine',
        FINE,
        coco_config(PETS, NAMES, retina(3)),
        ('learning rate',),
    ),
    'VOC: difficult throughout': Situation(
        'every object is difficult: nothing is trained on',
        ('MG174',),
        lambda root: (_difficult(root), {}),
        ('difficult',),
        ('labels are fine',),
    ),
    'VOC: an XML is cut off': Situation(
        'one XML is empty, one ends in the middle', ('MG132',), lambda root: (_cut(root), {}), ('Copy or export',)
    ),
    'VOC: a blank in a name': Situation(
        '"dog" and "dog " in the XML files', ('MG177',), voc([[('dog ', [10, 20, 90, 110])], *VOC_GOOD], 2), ("'dog '",)
    ),
}


def _difficult(root: Path) -> Path:
    voc_xml(root / 'VOC', VOC_GOOD)
    for path in (root / 'VOC/Annotations').glob('*.xml'):
        path.write_text(path.read_text().replace('<difficult>0', '<difficult>1'))
    return root / 'VOC'


def _cut(root: Path) -> Path:
    voc_xml(root / 'VOC', VOC_GOOD)
    (root / 'VOC/Annotations/000002.xml').write_text('')
    path = root / 'VOC/Annotations/000005.xml'
    path.write_text(path.read_text()[:120])
    return root / 'VOC'
