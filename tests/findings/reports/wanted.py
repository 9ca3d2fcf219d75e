"""What the first finding of a report says beside its cause: the edit that would have helped its writer."""

from __future__ import annotations

from typing import Dict, Tuple

GUARDED = ("type='GuardedCrossEntropyLoss'", 'The labels need no change')
FOREGROUND = ('label_map={255: 1}', 'Do not ignore 255')
NAMES = ('metainfo=dict(classes=',)
FROM_ZERO = ('--renumber 0',)
FILTERED = ('filter_empty_gt=True',)

WANTED: Dict[str, Tuple[str, ...]] = {
    **dict.fromkeys([f'mmsegmentation#{n}' for n in (3864, 3831, 3724, 3568)], GUARDED),
    'XuJiacong/PIDNet#68': GUARDED,
    'mmsegmentation#980': ('class_weight=[1.0] * 5',),
    'mmsegmentation#3811': ('4 weights', 'no object'),
    'mmsegmentation#2607': ('Take the sampler out', 'two channels'),
    'mmsegmentation#2201': ('use_sigmoid=True', 'num_classes=2'),
    'mmsegmentation#3080': ('num_classes=2',),
    **dict.fromkeys([f'mmsegmentation#{n}' for n in (1180, 1609, 3753)], FOREGROUND),
    'LiheYoung/UniMatch#29': FOREGROUND,
    'mmsegmentation#3617': ('(rgb[..., 0] > 127)',),
    'mmsegmentation#1719': ('label_map={38: 1}',),
    'mmsegmentation#1488': ('turn colours into indices',),
    'mmsegmentation#2471': ('turn colours into indices',),
    'mmsegmentation#1338': ('PNG', 'threshold'),
    'mmsegmentation#566': ('2: 255, 3: 255, 4: 255',),
    'mmsegmentation#42-a': ('num_classes is right',),
    'mmsegmentation#42-b': ('num_classes=6',),
    'NVlabs/SegFormer#92': ('{60: 1, 120: 2, 180: 3}',),
    'mmsegmentation#2425': ('reduce_zero_label=False',),
    'mmsegmentation#789': ('reduce_zero_label=False',),
    'mmsegmentation#300': ('seg_pad_val=100',),
    'mmsegmentation#578': ('Leave these files out',),
    'mmsegmentation#3755': ('mmguard env',),
    'fyu/drn#9': ('label_map={0: 255', '7: 0'),
    'milesial/Pytorch-UNet#258': ('num_classes=4',),
    'VainF/DeepLabV3Plus-Pytorch#91': ('225',),
    'tensorflow/models#3739': ('label_map={128: 1}',),
    'CompVis/taming-transformers#8': ('label = rgb[..., 0]',),
    'mmdetection#4828': NAMES,
    'mmdetection#12009': NAMES,
    'mmdetection#9606': ('train_dataloader.dataset.dataset.metainfo',),
    'mmdetection#8734': ('num_classes=1', 'roi_head.bbox_head'),
    'mmdetection#6218': ('num_classes=3', 'mask_head'),
    'mmdetection#9610': ("classes=('cat', 'dog', 'cow',)",),
    'mmdetection#3068': ("classes=('ship',)", 'num_classes=1'),
    'mmdetection#4327': ('num_classes=3',),
    'LiWentomng/BoxInstSeg#9': ('class_weight=[1.0, 0.1]',),
    'mmdetection#2999': ('wholly outside', '0010.jpg'),
    **dict.fromkeys([f'mmdetection#{n}' for n in (3563, 1979, 7116)], FILTERED),
    'mmdetection#2047': ('Remove it from `metainfo.classes`',),
    'mmdetection#1732': ('--classes angle,top,head',),
    **dict.fromkeys(['lyuwenyu/RT-DETR#672', 'Peterande/D-FINE#81', 'facebookresearch/3detr#46'], ('--drop-empty',)),
    **dict.fromkeys(['lyuwenyu/RT-DETR#70', 'lyuwenyu/RT-DETR#346', 'Peterande/D-FINE#89'], FROM_ZERO),
    **dict.fromkeys(['Intellindust-AI-Lab/DEIMv2#64', 'roboflow/rf-detr#413'], FROM_ZERO),
    'kuangliu/pytorch-retinanet#24': FROM_ZERO,
    'ArgoHA/D-FINE-seg#4': ('mmguard env',),
    'facebookresearch/detectron2#546': ('MODEL.RETINANET.NUM_CLASSES',),
    'sovit-123/fasterrcnn-pytorch-training-pipeline#44': ('000008.xml',),
    'nnUNet#2500': ('{2: 1, 3: 2, 4: 3, 5: 4}',),
    'nnUNet#1777': ('{255: 1}',),
    'nnUNet#2404': ('(seg > 127)', 'without loss'),
    'nnUNet#1007': ('labelsTr/case_000.nii.gz', 'Put the segmentations into labelsTr'),
    'nnUNet#946': ('"1": "NAME OF 1"',),
    'nnUNet#1183': ('{4: 3}',),
    'nnUNet#274': ('{5: 4}',),
    'nnUNet#982': ('205: 5', '500: 1'),
    'nnUNet#37': ('{3: 2}',),
    'nnUNet#898': ('655', 'labelsTr/case_004.nii.gz'),
    'nnUNet#1419': ('preprocess them anew',),
    'nnUNet#1098': ('memory, hardware',),
}
