"""Which labels are valid: the one answer, from a config tree, a built model, a run's record, or options.

How heads take labels stands in ``heads``, once; a part of a config and a module of a model are read alike. Importing
it needs neither mmengine nor torch: ``from_config`` imports :mod:`mmguard.config` when it is called.
"""

from mmguard.labels.spaces.config import from_config
from mmguard.labels.spaces.model import from_model, of_loss
from mmguard.labels.spaces.record import from_record
from mmguard.labels.spaces.space import LabelSpaces, Space, from_options

__all__ = ['LabelSpaces', 'Space', 'from_config', 'from_model', 'from_options', 'from_record', 'of_loss']
