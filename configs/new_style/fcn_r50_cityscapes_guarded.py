"""fcn_r50_cityscapes.py, guarded. In this style, importing mmguard replaces ``custom_imports``."""

from mmengine.config import read_base

with read_base():
    from .fcn_r50_cityscapes import *  # noqa: F403

from mmguard import GuardedCrossEntropyLoss, GuardSegLabels, LabelGuardHook

custom_hooks = [dict(type=LabelGuardHook)]

# Only the class of the loss changes; its arguments do not.
model['decode_head']['loss_decode'].update(type=GuardedCrossEntropyLoss)  # noqa: F405

# Right after PackSegInputs, so that the guard sees the labels that the loss gets. In validation an invalid label would
# count as a false positive of the predicted class.
guard = dict(type=GuardSegLabels, num_classes=19)
for dataloader in (train_dataloader, val_dataloader, test_dataloader):  # noqa: F405
    dataloader['dataset']['pipeline'].append(guard)
del dataloader
