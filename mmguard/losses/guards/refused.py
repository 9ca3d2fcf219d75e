"""Losses that GuardedLoss refuses, and the reasons."""

from __future__ import annotations

#: Refused only because another registered class guards it.
USE_OWN_CLASS = (
    "it has a guarded class of its own, which also corrects its own faults. Write type='GuardedCrossEntropyLoss' "
    'with the same arguments'
)
_NO_LABELS = 'its target holds no class labels, so no label can be out of range. Use it as it is'
_BOXES = 'its targets are boxes or distances, not class labels. Use it as it is and guard the classification loss'
_IDENTITIES = 'it compares identities or pairs with each other, and any integer is one. Use it as it is'

#: Losses of mmdet without class labels.
_OF_MMDET = {
    _BOXES: (
        'BalancedL1Loss',
        'BoundedIoULoss',
        'CIoULoss',
        'DIoULoss',
        'DistributionFocalLoss',
        'EIoULoss',
        'GHMR',
        'GIoULoss',
        'IoULoss',
        'L1Loss',
        'MSELoss',
        'SIoULoss',
        'SmoothL1Loss',
    ),
    _NO_LABELS: ('KnowledgeDistillationKLDivLoss',),
    _IDENTITIES: ('AssociativeEmbeddingLoss', 'L2Loss', 'MarginL2Loss', 'TripletLoss'),
    'it builds a classification loss of its own. Guard that one: write its loss_cls as GuardedLoss': ('DDQAuxLoss',),
}

#: Losses of mmrotate and mmdet3d.
_OF_OTHERS = {
    _BOXES: (
        'mmrotate.BCConvexGIoULoss',
        'mmrotate.ConvexGIoULoss',
        'mmrotate.GDLoss',
        'mmrotate.GDLoss_v1',
        'mmrotate.H2RBoxConsistencyLoss',
        'mmrotate.H2RBoxV2ConsistencyLoss',
        'mmrotate.KFLoss',
        'mmrotate.RotatedIoULoss',
        'mmrotate.SpatialBorderLoss',
        'mmdet3d.AxisAlignedIoULoss',
        'mmdet3d.ChamferDistance',
        'mmdet3d.MultiBinLoss',
        'mmdet3d.RotatedIoU3DLoss',
        'mmdet3d.UncertainL1Loss',
        'mmdet3d.UncertainSmoothL1Loss',
    ),
    _NO_LABELS: ('mmrotate.SmoothFocalLoss', 'mmdet3d.PAConvRegularizationLoss'),
}

#: Losses of mmpretrain that compare images or features with each other.
_OF_MMPRETRAIN = ('CAELoss', 'CosineSimilarityLoss', 'CrossCorrelationLoss', 'PixelReconstructionLoss', 'SwAVLoss')

REASONS = {
    'mmseg.CrossEntropyLoss': USE_OWN_CLASS,
    'mmdet.CrossEntropyLoss': USE_OWN_CLASS,
    'mmseg.HuasdorffDisstanceLoss': (
        'it sets ignored pixels to class 0 and trains on them, so an invalid pixel would be trained as class 0. '
        'Sanitize the labels in the pipeline with GuardSegLabels, or use another loss'
    ),
    'mmseg.KLDivLoss': _NO_LABELS,
    'mmseg.SiLogLoss': _NO_LABELS,
    **{f'mmpretrain.{name}': _NO_LABELS for name in _OF_MMPRETRAIN},
    **{f'mmdet.{name}': reason for reason, names in _OF_MMDET.items() for name in names},
    **{name: reason for reason, names in _OF_OTHERS.items() for name in names},
    'mmyolo.IoULoss': _BOXES,
    'mmyolo.OksLoss': _BOXES,
}
