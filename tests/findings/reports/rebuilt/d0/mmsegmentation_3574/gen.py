"""The config of a tutorial, 8 classes, and a class_weight added to the loss of the decode head."""

from common import write_masks, write_segmentation_config

write_masks(range(8))
names = ('sky', 'tree', 'road', 'grass', 'water', 'building', 'mountain', 'foreground')
head = """model = dict(
    decode_head=dict(num_classes=8, loss_decode=dict(
        type='CrossEntropyLoss', use_sigmoid=False, loss_weight=1.0,
        class_weight=[0.9, 1.0, 1.0, 0.8, 1.4, 1.1, 1.2, 1.6])),
    auxiliary_head=dict(num_classes=8))"""
write_segmentation_config('pspnet/pspnet_r50-d8_4xb2-40k_cityscapes-512x1024', names, head)
