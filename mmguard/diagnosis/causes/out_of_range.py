from __future__ import annotations

from typing import Dict

from mmguard.diagnosis.facts import LabelFacts
from mmguard.diagnosis.finding import Cause
from mmguard.diagnosis.views import as_map


class OutOfRange(Cause):
    """The rest: values beyond the classes, without a known pattern."""

    code = 'MG107'
    kinds = ('pixels', 'instances')
    summary = 'Labels outside 0..{last}: {values}.'
    why = (
        'Stock losses index by label: a device-side assert, or, in focal losses without a range check, a training '
        'that runs and learns something wrong.'
    )
    advice = (
        'Look at the files: labels must be 0..{last} or the ignored value. A value that means nothing is an annotation '
        'slip: correct it, or leave it out with `label_map={ignored}`. A class is listed in metainfo.classes and '
        'counted in num_classes of every head. Another numbering is written as label_map, value: class.'
    )
    instances = (
        'Look at the annotations: labels must be 0..{last}. A slip is corrected, or left out with '
        "`dict(type='GuardInstanceLabels', num_classes={num_classes}, on_invalid='drop')`. A class is listed in "
        'metainfo.classes and counted in num_classes of every head. Another numbering is written as label_map, '
        'label: class.'
    )

    def likelihood(self, facts: LabelFacts) -> float:
        return 0.3

    def advise(self, facts: LabelFacts) -> str:
        return self.instances if facts.kind == 'instances' else self.advice

    def words(self, facts: LabelFacts) -> Dict[str, str]:
        void = 255 if facts.ignore_index is None else facts.ignore_index
        return {'ignored': as_map(dict.fromkeys(facts.values, void), 8)}
