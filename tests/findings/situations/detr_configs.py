"""Situations that show in the YAML of RT-DETR, D-FINE or DEIM together with its JSON."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Dict

from situation import Build, Situation, coco_json, numbered, some_boxes

FIFTEEN = numbered(*(f'thing {i}' for i in range(15)))


def rt_detr(categories: Dict[int, str], classes: int, remap: bool, included: bool = False) -> Build:
    """The YAML of RT-DETR, D-FINE or DEIM beside its JSON."""

    def build(root: Path) -> Any:
        coco_json(root / 'data/train.json', categories, some_boxes(list(categories), 30, 4))
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
        return path

    return build


SITUATIONS: Dict[str, Situation] = {
    'lyuwenyu/RT-DETR#99': Situation(
        'KeyError 0 in the table of COCO',
        ('MG162',),
        rt_detr(numbered(*'abcde', start=0), 5, True),
        first=dict(labels='ids'),
    ),
    'many outputs: 777 of custom_detection.yml': Situation(
        'num_classes was left at the 777 that D-FINE writes there as an example',
        ('MG161',),
        rt_detr(numbered('weed', 'crop', 'stone'), 777, False),
        first=dict(num_classes=4),
        never=dict(num_classes=[3]),
    ),
    'in what is included': Situation(
        'KeyError 0', ('MG162',), rt_detr(numbered('a', 'b', start=0), 2, True, included=True), first=dict(labels='ids')
    ),
}
