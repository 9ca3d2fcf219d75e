"""What a situation is, and how it is scanned."""

from __future__ import annotations

import json
from pathlib import Path
from types import MappingProxyType
from typing import Any, Callable, Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple

import numpy as np
from drawn_scenes import photo, save, save_photos
from PIL import Image
from put_file import put, put_config
from questions import assert_answers_lead_on
from targets import Build, find_unwritten, scan_sets, target_of, values_of
from voc_cases import SIZE, obj, xml

from mmguard.config.changes import change_config
from mmguard.config.read import read_config
from mmguard.findings import Finding, diagnose
from mmguard.findings.messages import unpack

SCAN, CHECK = 'scan', 'check'
Model = Dict[str, Any]
CE: Model = dict(type='CrossEntropyLoss', use_sigmoid=False)
NOTHING: Mapping[str, Any] = MappingProxyType({})


class Situation(NamedTuple):
    """What somebody meets, and what is really wrong.

    Attributes:
        truth (str): The true cause, in words, written down before the command was ever run on it.
        codes (tuple[str]): Codes that name this cause, all of them right as the first finding; empty: nothing is wrong.
        build (callable): Makes the files in a folder and returns the target of the command, or (target, options).
        first (dict): What the first edit of the first finding writes: name of a key or an option -> value.
        never (dict): What the first edit of no finding writes, it would do harm: name -> values, or ``...`` for any.
        seen (tuple[str]): Parts of the files and places that the first finding names.
        command (str): ``'scan'``, or ``'check'`` for the config alone.
    """

    truth: str
    codes: Tuple[str, ...]
    build: Build
    first: Mapping[str, Any] = NOTHING
    never: Mapping[str, Any] = NOTHING
    seen: Tuple[str, ...] = ()
    command: str = SCAN


def holds(one: Situation, root: Path) -> None:
    """Assert that the first finding names the cause, that no first edit does harm, and that JSON holds all of them."""
    found = (findings_of if one.command == SCAN else checked)(one.build, root)
    json.dumps([unpack(finding) for finding in found])
    assert_answers_lead_on(found)
    if not one.codes:
        assert found == [], one.truth
        return
    first = found[0]
    assert first.code in one.codes, f'{one.truth}\n{first}'
    named = '\n'.join([*first.files, *first.places])
    assert [part for part in one.seen if part not in named] == [], first
    assert not one.first or find_unwritten(first.edits[0], one.first) == {}, first.edits
    for finding in found:
        for name, values in values_of(finding.edits[0]).items() if finding.edits else ():
            harm = one.never.get(name, ())
            assert [value for value in values if harm is ... or value in harm] == [], finding


def findings_of(build: Build, root: Path) -> List[Finding]:
    """Findings of ``mmguard scan`` in the first data set of a target."""
    return scan_sets(*target_of(build, root))[0].findings


def checked(build: Build, root: Path) -> List[Finding]:
    """Findings of ``mmguard check`` in a config; the first edit of the first finding is enough."""
    config = read_config(str(target_of(build, root).path))
    found = diagnose(config=config)
    for edit in found[0].edits[:1] if found else ():
        again = diagnose(config=change_config(config, edit.config)) if edit.config else []
        assert found[0].code not in {finding.code for finding in again}, edit
    return found


def masks(arrays: Any, num_classes: int, with_photos: bool = False, files: Optional[Dict[str, Any]] = None) -> Any:
    """A folder of label maps, scanned with the number of classes; more settings through :func:`with_options`."""

    def build(root: Path) -> Any:
        drawn = list(arrays)
        save(root / 'masks', drawn, **(files or {}))
        options: Dict[str, Any] = dict(num_classes=num_classes)
        if with_photos:
            options['images'] = str(save_photos(root / 'photos', len(drawn)))
        return root / 'masks', options

    return build


def with_options(build: Build, **options: Any) -> Build:
    """The same with more options on the command line."""

    def rebuilt(root: Path) -> Any:
        path, known = build(root)
        return path, {**known, **options}

    return rebuilt


def write_config(root: Path, **parts: Any) -> Path:
    return put_config(root / 'my_config.py', **parts)


def train_config(
    root: Path,
    model: Model,
    data: Dict[str, Any],
    scope: str = 'mmseg',
    val: Any = None,
    look_at: str = 'train',
    **parts: Any,
) -> Any:
    """A config that trains on a data set; only the training is scanned, if ``look_at`` names no other split."""
    parts['train_dataloader'] = dict(batch_size=2, dataset=data)
    if val is not None:
        parts['val_dataloader'] = dict(batch_size=1, dataset=val)
    return write_config(root, default_scope=scope, model=model, **parts), dict(splits=(look_at,))


def old(model: Model, scope: str, **data: Any) -> Build:
    """A config of MMDetection 2.x or MMSegmentation 0.x."""

    def build(root: Path) -> Path:
        kind = dict(type='CocoDataset' if scope == 'mmdet' else 'CustomDataset', pipeline=[])
        leaf = {**kind, 'ann_file': str(root / 'train.json'), **data}
        return write_config(root, model=model, data=dict(samples_per_gpu=2, workers_per_gpu=2, train=leaf, val=leaf))

    return build


def seg_model(num_classes: int, head: Optional[Model] = None, **more: Any) -> Model:
    decode = {'type': 'FCNHead', 'num_classes': num_classes, 'loss_decode': CE, **(head or {})}
    preprocessor = dict(type='SegDataPreProcessor', seg_pad_val=255)
    return {'type': 'EncoderDecoder', 'decode_head': decode, 'data_preprocessor': preprocessor, **more}


def seg_data(root: Path, classes: Optional[Sequence[str]], split: str = 'train', **settings: Any) -> Dict[str, Any]:
    """A data set of an mmseg config: ``root/images/<split>`` and ``root/masks/<split>``."""
    loader = settings.pop('loader', {})
    data: Dict[str, Any] = dict(
        type='BaseSegDataset',
        data_root=str(root),
        data_prefix=dict(img_path=f'images/{split}', seg_map_path=f'masks/{split}'),
        pipeline=[dict(type='LoadImageFromFile'), dict(type='LoadAnnotations', **loader), dict(type='PackSegInputs')],
    )
    if classes is not None:
        data['metainfo'] = dict(classes=tuple(classes))
    return {**data, **settings}


def seg_config(
    arrays: Any,
    classes: Optional[Sequence[str]],
    model: Model,
    files: Optional[Dict[str, Any]] = None,
    val: Any = None,
    look_at: str = 'train',
    **settings: Any,
) -> Build:
    """An mmseg config with its files; ``val`` gives it a second split of other label maps."""

    def build(root: Path) -> Any:
        ending = settings.get('img_suffix', '.jpg')
        drawn = list(arrays)
        save(root / 'masks/train', drawn, **(files or {}))
        save_photos(root / 'images/train', len(drawn), ending=ending)
        parts: Dict[str, Any] = {}
        if 'Guard' in repr((model, settings)):
            parts.update(custom_imports=dict(imports=['mmguard']), custom_hooks=[dict(type='LabelGuardHook')])
        if val is not None:
            save(root / 'masks/val', val)
            save_photos(root / 'images/val', len(val), ending=ending)
            parts['val'] = seg_data(root, classes, 'val', **settings)
        return train_config(root, model, seg_data(root, classes, **settings), look_at=look_at, **parts)

    return build


Boxes = Sequence[Tuple[Any, Sequence[Any]]]


def coco_json(
    path: Path,
    categories: Mapping[Any, str],
    drawn: Sequence[Boxes],
    size: Tuple[int, int] = (320, 240),
    image: Optional[Mapping[str, Any]] = None,
    annotation: Optional[Mapping[str, Any]] = None,
    on_disk: Optional[Tuple[int, int]] = None,
    without: Sequence[str] = (),
    change: Optional[Callable[[Dict[str, Any]], None]] = None,
) -> Path:
    """A COCO file with its photographs: for each image its (category id, [x, y, w, h]), then altered by ``change``."""
    images: List[Dict[str, Any]] = []
    annotations: List[Dict[str, Any]] = []
    path.parent.mkdir(parents=True, exist_ok=True)
    for number, boxes in enumerate(drawn):
        name = f'{number:04}.jpg'
        width, height = on_disk or size
        Image.fromarray(photo(0, height // 8, width // 8)).resize((width, height)).save(path.parent / name)
        images.append({'id': number + 1, 'file_name': name, 'width': size[0], 'height': size[1], **(image or {})})
        for category, box in boxes:
            area = abs(box[2] * box[3]) if all(isinstance(part, (int, float)) for part in box) else 1.0
            one = dict(id=len(annotations) + 1, image_id=number + 1, category_id=category, bbox=list(box), area=area)
            one.update({'iscrowd': 0, **(annotation or {})})
            annotations.append({key: value for key, value in one.items() if key not in without})
    named = [dict(id=number, name=name, supercategory='thing') for number, name in categories.items()]
    data = dict(images=images, annotations=annotations, categories=named)
    if change is not None:
        change(data)
    return put(path, json.dumps(data))


def some_boxes(ids: Sequence[Any], images: int = 12, each: int = 3, seed: int = 0) -> List[List[Tuple[Any, List[int]]]]:
    """For each image ``each`` boxes inside 320 x 240, of the categories in turn."""
    random = np.random.default_rng(seed)
    drawn, turn = [], 0
    for _ in range(images):
        boxes = []
        for _ in range(each):
            x, y = int(random.integers(0, 200)), int(random.integers(0, 140))
            boxes.append((ids[turn % len(ids)], [x, y, int(random.integers(20, 110)), int(random.integers(20, 95))]))
            turn += 1
        drawn.append(boxes)
    return drawn


def json_alone(categories: Mapping[Any, str], num_classes: Optional[int], drawn: Any = None, **more: Any) -> Build:
    """A COCO JSON that is scanned without a config."""

    def build(root: Path) -> Any:
        path = coco_json(root / 'coco/train.json', categories, drawn or some_boxes(list(categories)), **more)
        return path, dict(num_classes=num_classes)

    return build


def coco_data(root: Path, classes: Any, split: str = 'train', **settings: Any) -> Dict[str, Any]:
    data: Dict[str, Any] = dict(
        type='CocoDataset',
        data_root=str(root / split),
        ann_file='ann.json',
        data_prefix=dict(img=''),
        filter_cfg=dict(filter_empty_gt=True, min_size=32),
        pipeline=[],
    )
    if classes is not None:
        data['metainfo'] = dict(classes=classes)
    return {**data, **settings}


def coco_config(
    categories: Mapping[Any, str],
    classes: Any,
    model: Model,
    drawn: Any = None,
    val: Optional[Mapping[Any, str]] = None,
    val_classes: Any = None,
    look_at: str = 'train',
    settings: Optional[Dict[str, Any]] = None,
    **more: Any,
) -> Build:
    """An mmdet config with its JSON; ``val`` gives it a second split with other categories."""

    def build(root: Path) -> Any:
        coco_json(root / 'train/ann.json', categories, drawn or some_boxes(list(categories)), **more)
        data = None
        if val is not None:
            coco_json(root / 'val/ann.json', val, some_boxes(list(val), 4))
            data = coco_data(root, classes if val_classes is None else val_classes, 'val', test_mode=True)
        return train_config(root, model, coco_data(root, classes, **(settings or {})), 'mmdet', data, look_at)

    return build


def retina(num_classes: int) -> Model:
    head = dict(type='RetinaHead', num_classes=num_classes, loss_cls=dict(type='FocalLoss', use_sigmoid=True))
    return dict(type='RetinaNet', bbox_head=head)


def faster(num_classes: int) -> Model:
    head = dict(type='Shared2FCBBoxHead', num_classes=num_classes, loss_cls=CE)
    return dict(type='FasterRCNN', roi_head=dict(type='StandardRoIHead', bbox_head=head))


def numbered(*names: str, start: int = 1) -> Dict[int, str]:
    return dict(enumerate(names, start))


VocObjects = Sequence[Tuple[str, Sequence[Any]]]


def voc_xml(root: Path, drawn: Sequence[VocObjects], size: Tuple[Any, Any] = (320, 240)) -> Path:
    """A VOC folder: for each image its (name, [xmin, ymin, xmax, ymax])."""
    for folder in ('Annotations', 'JPEGImages', 'ImageSets/Main'):
        (root / folder).mkdir(parents=True, exist_ok=True)
    for number, boxes in enumerate(drawn):
        Image.new('RGB', (320, 240)).save(root / f'JPEGImages/{number:06}.jpg')
        text = xml(*(obj(name, box) for name, box in boxes), size=SIZE.format(*size))
        (root / f'Annotations/{number:06}.xml').write_text(text)
    (root / 'ImageSets/Main/train.txt').write_text(''.join(f'{number:06}\n' for number in range(len(drawn))))
    return root


def voc_config(drawn: Sequence[VocObjects], classes: Any, model: Model, **more: Any) -> Build:
    def build(root: Path) -> Any:
        voc_xml(root / 'VOC2007', drawn, **more)
        data: Dict[str, Any] = dict(
            type='VOCDataset',
            data_root=str(root),
            ann_file='VOC2007/ImageSets/Main/train.txt',
            data_prefix=dict(sub_data_root='VOC2007/'),
            filter_cfg=dict(filter_empty_gt=True, min_size=32),
            pipeline=[],
        )
        if classes is not None:
            data['metainfo'] = dict(classes=classes)
        return train_config(root, model, data, 'mmdet')

    return build
