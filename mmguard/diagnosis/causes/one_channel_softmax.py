from __future__ import annotations

from mmguard.diagnosis.facts import LabelFacts
from mmguard.diagnosis.finding import Cause
from mmguard.diagnosis.views import config_of, listing


class OneChannelSoftmax(Cause):
    """A softmax over a single output channel."""

    code = 'MG112'
    explains = ('MG102', 'MG107')
    needs = ()
    blames_labels = False
    summary = 'One output channel together with a softmax loss, or with OHEM.'
    why = 'The softmax of one channel is always 1: label 1 is out of range, and label 0 gives loss 0 for ever.'
    advice = (
        'Either two channels, `num_classes=2` (background, object) with the softmax loss, or one with a sigmoid: '
        "`num_classes=2, out_channels=1, threshold=0.5` and `loss_decode=dict(type='CrossEntropyLoss', "
        'use_sigmoid=True)`. OhemCrossEntropy needs the two channels.'
    )

    def likelihood(self, facts: LabelFacts) -> float:
        if config_of(facts).one_channel_softmax:
            return 0.96
        return 0.93 if self._two_labels(facts) else 0.0

    def evidence(self, facts: LabelFacts) -> str:
        return listing(config_of(facts).one_channel_softmax) or f'num_classes=1, {facts.evidence}'

    def _two_labels(self, facts: LabelFacts) -> bool:
        return facts.num_classes == 1 and set(facts.values) == {1}
