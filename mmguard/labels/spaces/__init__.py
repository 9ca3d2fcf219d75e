"""Valid labels per kind: one answer, from a built model, a run's record, or options.

:func:`mmguard.config.label_spaces.from_config` answers for a config tree. ``heads`` describes once how heads take
labels; a part of a config and a module of a model are read alike. Nothing here needs mmengine or torch.
"""

from mmguard.labels.spaces.heads import from_model, of_loss
from mmguard.labels.spaces.space import LabelSpaces, Space, from_options, from_record

__all__ = ['LabelSpaces', 'Space', 'from_model', 'from_options', 'from_record', 'of_loss']
