"""One of the 8 classes of Cityscapes; the class list is given to the RepeatDataset of the base config."""

from common import TRAIN, write_coco, write_detection_config

names = ('person', 'rider', 'car', 'truck', 'bus', 'train', 'motorcycle', 'bicycle')
categories = dict(zip((24, 25, 26, 27, 28, 31, 32, 33), names))
for split, count in (('train', 12), ('val', 6)):
    write_coco(f'data/{split}.json', f'data/{split}', categories, count)
wrapper, inner = TRAIN.split(', ', 1)
head = ', roi_head=dict(bbox_head=dict(num_classes=1))'
write_detection_config(
    'cityscapes/faster-rcnn_r50_fpn_1x_cityscapes', ('person',), head, f'{wrapper}, dataset=dict({inner})'
)
