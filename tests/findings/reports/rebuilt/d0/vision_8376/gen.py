"""VisDrone as a COCO JSON for fasterrcnn_resnet50_fpn, ids 1 to 10: one box has no height."""

from common import write_coco

names = ['pedestrian', 'people', 'bicycle', 'car', 'van', 'truck', 'tricycle', 'awning-tricycle', 'bus', 'motor']
write_coco('data/train.json', 'data/train', dict(enumerate(names, 1)), 20, {13: [[69, 91, 9, 0]]})
