"""The config next to this one, guarded. In this style the imports do what ``custom_imports`` does elsewhere."""

from mmengine.config import read_base

with read_base():
    from .fcn_r50_cityscapes import *  # noqa: F403

from mmguard import GuardedCrossEntropyLoss, GuardSegLabels, LabelGuardHook

custom_hooks = [dict(type=LabelGuardHook)]

# All arguments of the stock loss stay; only the class changes.
model['decode_head']['loss_decode'].update(type=GuardedCrossEntropyLoss)  # noqa: F405

# Right after PackSegInputs: the guard sees what the loss will see. In validation an invalid label would count as a
# false positive of whatever is predicted there.
guard = dict(type=GuardSegLabels, num_classes=19)
for dataloader in (train_dataloader, val_dataloader, test_dataloader):  # noqa: F405
    dataloader['dataset']['pipeline'].append(guard)
del dataloader
