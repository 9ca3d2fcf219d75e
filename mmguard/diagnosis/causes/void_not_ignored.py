from __future__ import annotations

from mmguard.diagnosis.facts import LabelFacts
from mmguard.diagnosis.finding import Cause


class VoidNotIgnored(Cause):
    """255, the usual ignore value, under another ``ignore_index``."""

    code = 'MG104'
    explains = ('MG107', 'MG116', 'MG125')
    summary = '255 is the usual value of ignored pixels and of padding, but ignore_index is {ignore_index}.'
    why = 'Every unlabelled or padded pixel is out of range for the loss: a device-side assert.'
    advice = (
        'Use one ignored value everywhere: `ignore_index=255` in the head, in the losses, in the metric and in '
        'GuardSegLabels, `seg_pad_val=255` in the data preprocessor; map another void value to it with label_map.'
    )

    def likelihood(self, facts: LabelFacts) -> float:
        return 0.9 if set(facts.values) == {255} and facts.num_classes > 2 else 0.0
