from __future__ import annotations

from typing import Iterator

from mmguard.check.config import ReadConfig
from mmguard.check.finding import ConfigFinding
from mmguard.check.one_channel import one_channel_softmax, output_channels
from mmguard.check.rule import Rule


class OneChannelSoftmax(Rule):
    """A softmax of one number is 1."""

    code = 'MG215'
    summary = 'One output channel, and a loss that takes a softmax over the channels.'
    why = (
        'The softmax of a single channel is 1 whatever the model says: the loss of label 0 is always 0, and label 1 '
        'is an index error (CUDA assert).'
    )
    advice = 'Write use_sigmoid=True in the loss, or num_classes=2 without out_channels.'

    def find(self, config: ReadConfig) -> Iterator[ConfigFinding]:
        for loss in one_channel_softmax(config):
            head = loss.owner
            assert head is not None  # one_channel_softmax looks at losses of heads alone
            key = 'out_channels' if head.config.get('out_channels') == 1 else 'num_classes'
            advice = (
                'Write num_classes=2 without out_channels: this loss needs a channel per class.'
                if loss.name == 'OhemCrossEntropy'
                else None
            )
            yield self.at(
                head.at(key),
                output_channels(head),
                f'{loss.name} at {loss.path} takes a softmax over a single channel: it is always 1.',
                advice,
            )
