"""Guarded counterparts of ``torch.nn``'s losses, with the same names, arguments and state.

Imports :mod:`mmguard.functional` and what is below it; no framework.
"""

from mmguard.nn.cross_entropy import BCEWithLogitsLoss, CrossEntropyLoss

__all__ = ['BCEWithLogitsLoss', 'CrossEntropyLoss']
