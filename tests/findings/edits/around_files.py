"""Stock configs around files that are scanned without one, with the number of classes and the map that were said."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Dict, List

from mmengine.config import Config
from PIL import Image
from targets import Target, scan_sets

from mmguard.findings.facts import LabelFacts
from mmguard.formats.options import ScanOptions
from mmguard.labels.numbering import FRAMEWORKS, IDS
from mmguard.scanning.target import plan_of


def config_around(target: Target, root: Path) -> Config:
    """A config of mmseg or mmdet that trains on these files.

    Args:
        target (Target): A folder of label maps, a COCO JSON or a VOC folder, and the options of its scan.
        root (Path): A folder for photographs that are drawn where there are none.
    """
    said = ScanOptions(**target.options)
    facts = scan_sets(*target)[0].facts
    if facts.kind == 'pixels':
        source = plan_of(str(target.path), said).sources[0]
        return _of_maps([Path(item.path) for item in source.items()], target.path, said, root)
    return _of_boxes(target.path, said, facts)


def _of_maps(files: List[Path], folder: Path, said: ScanOptions, root: Path) -> Config:
    settings = said.settings()
    names = [str(file.relative_to(folder)) for file in files]
    for file, name in zip(files, names):
        photograph = root / f'drawn/{name}.png'
        photograph.parent.mkdir(parents=True, exist_ok=True)
        with Image.open(file) as label:
            Image.effect_noise(label.size, 60).convert('RGB').save(photograph)
    (root / 'drawn/files.txt').write_text('\n'.join(names), encoding='utf-8')
    # What the map leaves over would otherwise be ignored without a word.
    guard = dict(
        type='GuardSegLabels',
        num_classes=settings.num_classes,
        ignore_index=settings.ignore_index,
        on_invalid='raise',
        label_map=dict(settings.label_map),
    )
    data = dict(
        type='BaseSegDataset',
        ann_file=str(root / 'drawn/files.txt'),
        data_prefix=dict(img_path=str(root / 'drawn'), seg_map_path=str(folder)),
        img_suffix='.png',
        seg_map_suffix='',
        reduce_zero_label=said.reduce_zero_label,
        metainfo=dict(classes=[f'class {number}' for number in range(settings.num_classes)]),
        pipeline=[
            dict(type='LoadImageFromFile'),
            dict(type='LoadAnnotations'),
            *([guard] if settings.label_map else []),
            dict(type='PackSegInputs'),
        ],
    )
    head = dict(type='FCNHead', num_classes=settings.num_classes, ignore_index=settings.ignore_index)
    preprocessor = dict(type='SegDataPreProcessor', seg_pad_val=settings.ignore_index)
    model = dict(type='EncoderDecoder', decode_head=head, data_preprocessor=preprocessor)
    return Config(dict(default_scope='mmseg', model=model, train_dataloader=dict(dataset=data)))


def _of_boxes(path: Path, said: ScanOptions, facts: LabelFacts) -> Config:
    assert facts.annotations is not None
    categories = facts.annotations.categories
    data: Dict[str, Any] = dict(data_of_boxes(path, facts), filter_cfg=dict(filter_empty_gt=True, min_size=32))
    parts: Dict[str, Any] = {}
    if not path.is_dir():
        folder = Path(said.images or path.parent)
        _draw_missing(path, folder)
        data.update(data_prefix=dict(img=str(folder)))
        framework = FRAMEWORKS.get(said.framework or '')
        if IDS in (said.labels, framework and framework.labels):
            parts.update(labels_of_categories=list(categories))
    head = dict(type='Shared2FCBBoxHead', num_classes=said.num_classes or len(categories))
    model = dict(type='FasterRCNN', roi_head=dict(type='StandardRoIHead', bbox_head=head))
    return Config(dict(default_scope='mmdet', model=model, train_dataloader=dict(dataset=data), **parts))


def data_of_boxes(path: Path, facts: LabelFacts) -> Dict[str, Any]:
    """mmdet's data set of a COCO JSON, or of a VOC folder."""
    assert facts.annotations is not None
    metainfo = dict(classes=[str(name) for name in facts.annotations.categories.values()])
    if path.is_dir():
        place = dict(data_root=str(path), ann_file='ImageSets/Main/train.txt', data_prefix=dict(sub_data_root=''))
        return dict(type='XMLDataset', metainfo=metainfo, **place)
    return dict(type='CocoDataset', metainfo=metainfo, ann_file=str(path), data_prefix=dict(img=str(path.parent)))


def _draw_missing(file: Path, folder: Path) -> None:
    for image in json.loads(file.read_text(encoding='utf-8'))['images']:
        place = folder / image['file_name']
        if not place.exists():
            Image.new('RGB', (int(image['width']), int(image['height']))).save(place)
