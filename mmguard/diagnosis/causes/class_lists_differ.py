from __future__ import annotations

from typing import Dict

from mmguard.diagnosis.class_counts import is_open_vocabulary
from mmguard.diagnosis.facts import LabelFacts
from mmguard.diagnosis.finding import Cause
from mmguard.diagnosis.views import class_lists, config_of, listing

#: Trackers train on pedestrians and are evaluated on what the challenge calls its classes.
TRACKING = 'MOTChallenge'


class ClassListsDiffer(Cause):
    """Training, validation and evaluation name their classes differently."""

    code = 'MG144'
    kinds = ('pixels', 'instances')
    needs = ('config',)
    blames_labels = False
    summary = 'The class lists of the config differ, in names or in order.'
    why = 'A label means one class in training and another in the evaluation: the table shows other names, or nan.'
    advice = (
        'Define the names once and use them everywhere: `metainfo = dict(classes=(...))`, then '
        '`dataset=dict(metainfo=metainfo, ...)` in train_dataloader, val_dataloader and test_dataloader (inside '
        'wrappers), and wherever an evaluation keeps names of its own (voc_classes, class_names.py).'
    )

    def likelihood(self, facts: LabelFacts) -> float:
        if is_open_vocabulary(config_of(facts)):
            return 0.0
        lists = {tuple(names) for path, names in class_lists(facts).items() if TRACKING not in path}
        return 0.85 if len(lists) > 1 else 0.0

    def evidence(self, facts: LabelFacts) -> str:
        return '; '.join(f'{path}: {len(names)} ({listing(names, 4)})' for path, names in class_lists(facts).items())

    def values(self, facts: LabelFacts) -> Dict[int, int]:
        return {}
