"""Kinds of causes in class lists and categories of detection, written down before any scan was run on them."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Dict, NamedTuple, Tuple

from annotation_files import COCO_IDS
from detection_configs import NAMES
from situation import (
    Build,
    coco_config,
    coco_data,
    coco_json,
    faster,
    json_alone,
    numbered,
    retina,
    some_boxes,
    with_options,
    write_config,
)


class Asked(NamedTuple):
    """What somebody meets, and what the first finding is to say.

    Attributes:
        truth (str): The true cause, in words.
        codes (tuple[str]): Codes that name it; empty: nothing is wrong.
        build (callable): Makes the files; returns the target, or (target, options).
        command (str): ``'scan'``, or ``'check'`` for the config alone.
        says (tuple[str]): What the first finding says.
        first (tuple[str]): What its first edit says, else its advice.
        never (tuple[str]): What the first edit of no finding says: it would do harm.
    """

    truth: str
    codes: Tuple[str, ...]
    build: Build
    command: str = 'scan'
    says: Tuple[str, ...] = ()
    first: Tuple[str, ...] = ()
    never: Tuple[str, ...] = ()


COCO = {number: f'thing {number}' for number in COCO_IDS}
BY_TEXT = {1: 'a', 10: 'j', 11: 'k', 2: 'b', 3: 'c', 4: 'd', 5: 'e', 6: 'f', 7: 'g', 8: 'h', 9: 'i'}


def splits(model: Any, train: Any, val: Any, kind: str = 'CocoDataset') -> Build:
    """A config alone, with the class list of each split, or none."""

    def build(root: Path) -> Path:
        loaders = {
            f'{split}_dataloader': dict(dataset={**coco_data(root, names, split), 'type': kind})
            for split, names in (('train', train), ('val', val))
        }
        return write_config(root, default_scope='mmdet', model=model, **loaders)

    return build


def wrapped(model: Any, *wrappers: str, key: str = 'metainfo') -> Build:
    """The class list at the outermost of some wrappers."""

    def build(root: Path) -> Path:
        data = coco_data(root, None)
        for wrapper in wrappers:
            data = dict(type=wrapper, dataset=data)
        data[key] = dict(classes=NAMES) if key == 'metainfo' else NAMES
        val = dict(dataset=coco_data(root, NAMES, 'val'))
        return write_config(
            root, default_scope='mmdet', model=model, train_dataloader=dict(dataset=data), val_dataloader=val
        )

    return build


def joined(first: Dict[int, str], second: Dict[int, str], classes: Tuple[str, ...]) -> Build:
    """Two files that are trained together."""

    def build(root: Path) -> Any:
        for name, categories in (('a', first), ('b', second)):
            coco_json(root / name / 'ann.json', categories, some_boxes(list(categories), 6))
        both = dict(type='ConcatDataset', datasets=[coco_data(root, classes, name) for name in 'ab'])
        model = retina(len(classes))
        return write_config(root, default_scope='mmdet', model=model, train_dataloader=dict(dataset=both)), {
            'splits': ('train',)
        }

    return build


def rt_detr(categories: Dict[int, str], classes: int, remap: Any, included: bool = False, used: Any = None) -> Build:
    """The YAML of RT-DETR, D-FINE or DEIM beside its JSON."""

    def build(root: Path) -> Any:
        ids = list(categories) if used is None else list(used)
        coco_json(root / 'data/train.json', categories, some_boxes(ids, 30, 4))
        data = (
            f'num_classes: {classes}\nremap_mscoco_category: {remap}\ntrain_dataloader:\n  type: DataLoader\n  dataset:'
            f'\n    type: CocoDetection\n    img_folder: {root}/data\n    ann_file: {root}/data/train.json\n'
        )
        path = root / 'rtdetr_r50vd.yml'
        path.write_text(data, encoding='utf-8')
        if included:
            (root / 'dataset').mkdir()
            (root / 'dataset/own.yml').write_text(data, encoding='utf-8')
            path.write_text("__include__: ['dataset/own.yml']\nRTDETR:\n  backbone: PResNet\n", encoding='utf-8')
        return path, {}

    return build


def ids_of(build: Build, framework: str) -> Build:
    return with_options(build, framework=framework)


CHECK = 'check'
FOUR = numbered('bolt', 'nut', 'pin', 'rod')
FIFTEEN = numbered(*(f'thing {i}' for i in range(15)))

FALL_BACK: Dict[str, Asked] = {
    'the validation falls back': Asked(
        'metainfo of the training alone',
        ('MG204',),
        splits(retina(3), NAMES, None),
        CHECK,
        ('val_dataloader',),
        ("'cat'",),
        ('person',),
    ),
    'metainfo at RepeatDataset': Asked(
        'a wrapper takes none', ('MG203',), wrapped(retina(3), 'RepeatDataset'), CHECK, never=('person',)
    ),
    'classes at two wrappers': Asked(
        'wrappers take none',
        ('MG203',),
        wrapped(faster(3), 'ClassBalancedDataset', 'RepeatDataset', key='classes'),
        CHECK,
        never=('person',),
    ),
    'near: COCO itself': Asked('80 and 80', (), splits(retina(80), None, None), CHECK),
}
BACKGROUND: Dict[str, Asked] = {
    'first, with one head': Asked(
        'background is no class of mmdet',
        ('MG160',),
        splits(retina(3), ('background', 'cat', 'dog'), ('background', 'cat', 'dog')),
        CHECK,
        ("'background'",),
        ("('cat', 'dog',)", 'num_classes=2'),
    ),
    'a category of the file': Asked(
        'nothing has it', ('MG160',), json_alone({0: 'background', 1: 'cat', 2: 'dog'}, 3, some_boxes([1, 2]))
    ),
    'in the file and in the config': Asked(
        'both list it; one label is never seen',
        ('MG160',),
        coco_config({1: '__background__', 2: 'cat', 3: 'dog'}, ('__background__', 'cat', 'dog'), faster(2)),
        never=('num_classes=3',),
    ),
    'near: category 0 for torchvision': Asked(
        '0 is the background there',
        (),
        ids_of(json_alone({0: 'background', 1: 'cat', 2: 'dog'}, 3, some_boxes([1, 2])), 'torchvision'),
    ),
    'near: names that begin so': Asked(
        'nothing', (), coco_config({1: 'backpack', 2: 'bg_car'}, ('backpack', 'bg_car'), faster(2))
    ),
}
ORDER: Dict[str, Asked] = {
    'two files trained together': Asked(
        'the label of a class differs between the files',
        ('MG141', 'MG178'),
        joined(numbered('cat', 'dog', 'cow'), numbered('cow', 'cat', 'dog', start=0), NAMES),
    ),
    'ids in the order of texts, file alone': Asked(
        'who numbers by the file and who by ids differ', ('MG141',), json_alone(BY_TEXT, 11), says=('as texts',)
    ),
}
OUTPUTS: Dict[str, Asked] = {
    '4 of 80': Asked('num_classes was never set', ('MG161',), json_alone(FOUR, 80), says=('80', '4')),
    '1 of 20': Asked('num_classes of VOC', ('MG161',), json_alone({1: 'ship'}, 20)),
}
REMAP: Dict[str, Asked] = {
    'ids from 0': Asked(
        'KeyError 0 in the table of COCO',
        ('MG162',),
        rt_detr({i: f'c{i}' for i in range(5)}, 5, True),
        first=('remap_mscoco_category: False',),
    ),
    'fifteen classes': Asked(
        '12 is no id of COCO', ('MG162',), rt_detr(FIFTEEN, 15, True), says=('12',), first=('remap_mscoco_category',)
    ),
    'in what is included': Asked(
        'KeyError 0', ('MG162',), rt_detr(numbered('a', 'b', start=0), 2, True, included=True)
    ),
    'off, ids from 1': Asked(
        '15 is beyond 0..14', ('MG138',), rt_detr(FIFTEEN, 15, False), says=('num_classes=16',), never=('mmdet',)
    ),
    'off, COCO itself': Asked(
        'ids to 90, 80 classes', ('MG138', 'MG162'), rt_detr(COCO, 80, False), says=('remap_mscoco_category: True',)
    ),
    'near: ids 1..5': Asked('the table gives 0..4', (), rt_detr(numbered(*'abcde'), 5, True)),
}
ORDINARY: Dict[str, Asked] = {
    **{
        f'near: {framework}': Asked('renumbered', (), ids_of(json_alone(FIFTEEN, 15), framework))
        for framework in ('mmdet', 'detectron2', 'yolox')
    },
}
KINDS = {
    f'{kind}: {name}': one
    for kind, table in (
        ('fall back', FALL_BACK),
        ('background', BACKGROUND),
        ('order', ORDER),
        ('outputs', OUTPUTS),
        ('remap', REMAP),
        ('ordinary', ORDINARY),
    )
    for name, one in table.items()
}
