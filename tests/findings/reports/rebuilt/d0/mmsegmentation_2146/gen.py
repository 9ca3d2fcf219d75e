"""Labelme masks in the form of VOC, 0 the background and 1..6; reduce_zero_label=True, and 7 classes."""

from common import write_masks, write_segmentation_config

write_masks(range(7), palette=True)
names = ('_background_', 'leaf', 'stem', 'root', 'flower', 'fruit', 'soil')
heads = 'model = dict(decode_head=dict(num_classes=7), auxiliary_head=dict(num_classes=7))'
write_segmentation_config('deeplabv3plus/deeplabv3plus_r50-d8_4xb4-20k_voc12aug-512x512', names, heads, zero=True)
