from __future__ import annotations

from typing import Dict

from mmguard.diagnosis.facts import LabelFacts
from mmguard.diagnosis.finding import Cause
from mmguard.diagnosis.views import as_map, ids_of, is_rare, is_whole, trained


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

    many = (
        'The files hold {number} labels without a gap, 0..{most}; the head knows {num_classes} of them. If all are '
        'classes, write `num_classes={number}` in every head (aux heads, too), and list {number} names in '
        '`metainfo=dict(classes=(...))`. Those that are none are mapped to the ignored label: `label_map={{{most}: '
        '{void}}}`, one entry each.'
    )

    def likelihood(self, facts: LabelFacts) -> float:
        return 0.3

    def advise(self, facts: LabelFacts) -> str:
        if facts.kind == 'instances':
            return self.instances
        return self.many if self._continues(facts) else self.advice

    def _continues(self, facts: LabelFacts) -> bool:
        """Whether the labels simply go on behind num_classes, in many files: classes, and no slips."""
        ids = ids_of(trained(facts))
        whole = is_whole(facts) and ids == set(range(len(ids)))
        return whole and len(facts.values) > 1 and not is_rare(facts) and set(facts.values) <= ids

    def words(self, facts: LabelFacts) -> Dict[str, object]:
        void = 255 if facts.ignore_index is None else facts.ignore_index
        most = max(ids_of(trained(facts)), default=0)
        return {'number': most + 1, 'most': most, 'ignored': as_map(dict.fromkeys(facts.values, void), 8)}
