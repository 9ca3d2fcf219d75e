from __future__ import annotations

from mmguard.diagnosis.facts import LabelFacts
from mmguard.diagnosis.finding import Cause


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
        'If a few files hold a value that means nothing, it is an annotation slip: correct them. If it is a class, '
        'raise num_classes in every head and list it in metainfo.classes. If it is another numbering, give label_map.'
    )

    def likelihood(self, facts: LabelFacts) -> float:
        return 0.3
