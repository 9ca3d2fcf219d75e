"""Small files and configs that hold what a report describes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Dict, List, Mapping, Optional, Sequence

import numpy as np
from PIL import Image
from screens import fits_a_screen

from mmguard.findings import Finding
from mmguard.tools.scan.engine import scan_here
from mmguard.tools.scan.options import ScanOptions
from mmguard.tools.scan.run import run_plan
from mmguard.tools.scan.target import plan_of

SIZE = 48


def blocks(*values: int, dtype: Any = np.uint8, size: int = SIZE) -> np.ndarray:
    """A label map of squares, each value in several of them, the first one the most frequent."""
    side = 8
    order = [*values, *values[:1] * (len(values) // 3 + 1)]
    cells = np.arange((size // side) ** 2) % len(order)
    squares = np.array(order, dtype=dtype)[cells].reshape(size // side, size // side)
    return squares.repeat(side, 0).repeat(side, 1)


def write_labels(
    folder: Path, *labels: np.ndarray, mode: Optional[str] = None, ending: str = '.png', stem: str = '{:04}'
) -> Path:
    """Writes label maps, numbered; mode ``'P'`` with VOC's first colours as the palette."""
    folder.mkdir(parents=True, exist_ok=True)
    for number, label in enumerate(labels):
        image = Image.fromarray(label)
        if mode == 'P':
            image.putpalette([0, 0, 0, 128, 0, 0, 0, 128, 0, 128, 128, 0, 0, 0, 128, 128, 0, 128] + [0] * 750)
        elif mode is not None:
            image = image.convert(mode)
        image.save(folder / (stem.format(number) + ending))
    return folder


def write_coco(
    path: Path,
    categories: Mapping[int, str],
    boxes: Sequence[Sequence[float]] = (),
    images: int = 4,
    size: int = 100,
    empty: int = 0,
) -> Path:
    """A COCO JSON: each image but the last ``empty`` has one box per category, or ``boxes``, with ids in turn."""
    ids = list(categories)
    annotations: List[Dict[str, Any]] = []
    for image in range(images - empty):
        for place, box in enumerate(boxes or [[10 + 5 * i, 10, 20, 20] for i in range(len(ids))]):
            annotations.append(
                dict(
                    id=len(annotations) + 1,
                    image_id=image + 1,
                    category_id=ids[place % len(ids)],
                    bbox=list(box),
                    area=max(box[2], 0) * max(box[3], 0),
                    iscrowd=0,
                )
            )
    data = dict(
        images=[dict(id=i + 1, file_name=f'{i + 1}.jpg', width=size, height=size) for i in range(images)],
        annotations=annotations,
        categories=[dict(id=i, name=name) for i, name in categories.items()],
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    for image in data['images']:
        Image.new('RGB', (size, size)).save(path.parent / image['file_name'])
    path.write_text(json.dumps(data), encoding='utf-8')
    return path


def write_seg_config(
    root: Path,
    labels: Sequence[np.ndarray],
    classes: Sequence[str],
    head: Mapping[str, Any],
    dataset: Optional[Mapping[str, Any]] = None,
    loader: Optional[Mapping[str, Any]] = None,
    mode: Optional[str] = None,
) -> Path:
    """A segmentation config with its training data: images, label maps, one decode head."""
    write_labels(root / 'labels', *labels, mode=mode)
    for number, label in enumerate(labels):
        (root / 'images').mkdir(exist_ok=True)
        Image.fromarray(np.zeros((*label.shape[:2], 3), np.uint8)).save(root / 'images' / f'{number:04}.jpg')
    data = dict(
        type='BaseSegDataset',
        data_root=str(root),
        data_prefix=dict(img_path='images', seg_map_path='labels'),
        metainfo=dict(classes=tuple(classes)),
        pipeline=[dict(type='LoadImageFromFile'), dict(type='LoadAnnotations', **(loader or {}))],
        **(dataset or {}),
    )
    model = dict(
        type='EncoderDecoder',
        decode_head={'type': 'FCNHead', 'num_classes': len(classes), **head},
        data_preprocessor=dict(type='SegDataPreProcessor', seg_pad_val=255),
    )
    return write_config(root, default_scope='mmseg', model=model, train_dataloader=dict(batch_size=2, dataset=data))


def write_det_config(root: Path, model: Mapping[str, Any], dataset: Mapping[str, Any], **more: Any) -> Path:
    """A detection config whose training data is ``dataset``."""
    loader = dict(batch_size=2, dataset=dict(dataset))
    return write_config(root, default_scope='mmdet', model=dict(model), train_dataloader=loader, **more)


def write_config(root: Path, **parts: Any) -> Path:
    """A config file of these parts."""
    path = root / 'config.py'
    path.write_text(''.join(f'{name} = {part!r}\n' for name, part in parts.items()), encoding='utf-8')
    return path


def coco_dataset(root: Path, file: Path, classes: Optional[Sequence[str]], **more: Any) -> Dict[str, Any]:
    """A ``CocoDataset`` of a JSON in ``root``."""
    settings: Dict[str, Any] = dict(type='CocoDataset', data_root=str(root), ann_file=file.name, pipeline=[])
    settings['data_prefix'] = dict(img='')
    if classes is not None:
        settings['metainfo'] = dict(classes=tuple(classes))
    return {**settings, 'filter_cfg': dict(filter_empty_gt=True, min_size=32), **more}


def scanned(target: Path, **options: Any) -> List[Finding]:
    """What ``mmguard scan`` finds in the first data set of a target."""
    plan = plan_of(str(target), ScanOptions(**options))
    assert not plan.failed, plan.failed
    found = run_plan(plan, scan_here)[0].findings
    for finding in found:
        fits_a_screen(finding)
    return found
