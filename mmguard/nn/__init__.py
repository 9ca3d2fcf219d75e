"""Guarded counterparts of ``torch.nn``'s losses, with the same names, arguments and state.

Does not import a framework, or anything above :mod:`mmguard.functional`.
"""

from mmguard.nn.cross_entropy import BCEWithLogitsLoss, CrossEntropyLoss

__all__ = ['BCEWithLogitsLoss', 'CrossEntropyLoss']
