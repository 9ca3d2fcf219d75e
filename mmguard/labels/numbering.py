"""Numbering of COCO categories in detection frameworks."""

from __future__ import annotations

from typing import Dict, NamedTuple

#: A category's label is its position in the list, counted from 0 (``'positions'``), its ``category_id`` (``'ids'``), or
#: the index of this id in ``COCO_IDS`` (``'coco'``: ``remap_mscoco_category`` of RT-DETR, D-FINE and DEIM).
POSITIONS, IDS, COCO = NUMBERINGS = 'positions', 'ids', 'coco'
#: The ids of COCO's own 80 categories, in the order of their labels.
COCO_IDS = tuple(i for i in range(1, 91) if i not in (12, 26, 29, 30, 45, 66, 68, 69, 71, 83))


class Framework(NamedTuple):
    """Detection framework, and how its own COCO data set numbers the categories."""

    title: str  #: Name of the framework in messages.
    labels: str  #: ``'positions'`` in the list of categories, or ``'ids'``.
    ascending: bool = False  #: True if positions follow the ascending order of ids, not the order of the file.
    min_label: int = 0  #: The first class; a label below it is trained as background.
    spare: int = 0  #: Number of outputs that the model has beyond ``num_classes``; their labels are valid, too.


#: Taken from the source files named in the comments. Users who changed the numbering (``remap_mscoco_category`` of
#: RT-DETR, D-FINE and DEIM) pass ``--labels``.
FRAMEWORKS: Dict[str, Framework] = {
    # mmdet/datasets/coco.py: cat2label = {cat_id: i for i, cat_id in enumerate(self.cat_ids)}, in the file's order.
    'mmdet': Framework('mmdet', POSITIONS),
    # detectron2/data/datasets/coco.py: id_map = {v: i for i, v in enumerate(sorted(coco_api.getCatIds()))}.
    'detectron2': Framework('detectron2', POSITIONS, ascending=True),
    # yolox/data/datasets/coco.py: class_ids = sorted(getCatIds()), cls = class_ids.index(category_id).
    'yolox': Framework('YOLOX', POSITIONS, ascending=True),
    # facebookresearch/detr, datasets/coco.py: classes = [obj["category_id"] for obj in anno].
    'detr': Framework('DETR', IDS),
    # lyuwenyu/RT-DETR, src/data/coco/coco_dataset.py: DETR's, unless remap_mscoco_category (only for COCO's own 80).
    'rt-detr': Framework('RT-DETR', IDS),
    # Peterande/D-FINE, src/data/dataset/coco_dataset.py of 2025: RT-DETR's data set, with the same switch.
    'd-fine': Framework('D-FINE', IDS),
    # Intellindust-AI-Lab/DEIM and DEIMv2, engine/data/dataset/coco_dataset.py: D-FINE's.
    'deim': Framework('DEIM', IDS),
    # formats/coco/rfdetr.py has the versions and layouts; rfdetr/models/lwdetr.py: num_classes = args.num_classes + 1.
    'rf-detr': Framework('RF-DETR (from 1.5 on, of a Roboflow layout)', POSITIONS, ascending=True, spare=1),
    # transformers/models/detr/image_processing_detr.py, and the processors of similar models: DETR's.
    'transformers': Framework('Hugging Face transformers', IDS),
    # references/detection/coco_utils.py: DETR's; models/detection/faster_rcnn.py: num_classes counts the background, 0.
    'torchvision': Framework('torchvision', IDS, min_label=1),
}


def get_framework_titles(labels: str) -> str:
    """Return the titles of the frameworks that use a numbering, separated by commas.

    Example:
        >>> get_framework_titles('positions')
        'mmdet, detectron2, YOLOX, RF-DETR (from 1.5 on, of a Roboflow layout)'
    """
    return ', '.join(framework.title for framework in FRAMEWORKS.values() if framework.labels == labels)
