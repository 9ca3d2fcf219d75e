"""A Lovasz loss for two channels that takes one."""

from __future__ import annotations

from typing import Iterator

from mmguard.config.losses import get_output_channels
from mmguard.config.parts import find_head_losses, find_heads
from mmguard.config.read import ReadConfig
from mmguard.findings.finding import Finding
from mmguard.findings.rule import ConfigRule, Example
from mmguard.findings.usual_edits import propose


class BinaryLovasz(ConfigRule):
    code = 'MG235'
    summary = "LovaszLoss(loss_type='binary') needs one output channel."
    title = "LovaszLoss(loss_type='binary') takes one output channel, but the head has {channels}."
    why = 'It flattens the scores with all channels, and the labels without: the first batch ends with an IndexError.'
    example = Example(
        wrong="num_classes=2, loss_decode=dict(type='LovaszLoss', loss_type='binary')",
        right="num_classes=2, loss_decode=dict(type='LovaszLoss', loss_type='multi_class')",
    )
    limits = 'It does not judge binary losses of your own.'
    advice = "Write loss_type='multi_class' in the loss, or out_channels=1 in the head."

    def look(self, config: ReadConfig) -> Iterator[Finding]:
        for head in find_heads(config):
            channels = get_output_channels(head)
            for loss in find_head_losses(config, head) if channels > 1 else ():
                if loss.name.endswith('LovaszLoss') and loss.config.get('loss_type') == 'binary':
                    place = loss.place('loss_type')
                    asked = 'Does each pixel have one of several classes?'
                    otherwise = 'Write out_channels=1 in the head.'
                    edit = propose(
                        'Take its multi-class form.', (place, 'multi_class'), question=asked, if_not=otherwise
                    )
                    yield self.report_at(place, 'binary', {'channels': channels}, edits=[edit])
