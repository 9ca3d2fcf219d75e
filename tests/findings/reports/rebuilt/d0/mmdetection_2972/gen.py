"""Boxes of an SSD: two are wholly outside their image, and a transform of the pipeline clips them."""

from common import write_coco

names = dict(enumerate(('bolt', 'nut', 'washer'), 1))
write_coco('data/train.json', 'data/train', names, 16, {5: [[171, 30, 22, 18]], 11: [[40, 124, 30, 25]]})
