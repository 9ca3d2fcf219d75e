from __future__ import annotations

from typing import Iterator

from mmguard.config.head_classes import classes_in
from mmguard.config.parts import losses
from mmguard.config.read import ReadConfig
from mmguard.findings.finding import Finding
from mmguard.findings.rule import ConfigRule, Example
from mmguard.findings.usual_edits import propose
from mmguard.text import quantity


class LossNumClasses(ConfigRule):
    """A loss with a num_classes of its own, as SeesawLoss, that is not that of its head."""

    code = 'MG228'
    summary = 'num_classes of a loss is not that of its head.'
    title = 'The loss has num_classes={given}, but {head} has {classes} ({place}).'
    why = 'The loss splits the scores by its own num_classes: another one than the head has is an error of shapes.'
    example = Example(wrong='num_classes=5 in the head, 80 in SeesawLoss', right='num_classes=5 in both')
    limits = 'If the number of the head is wrong, too, MG201 says so.'
    advice = 'Write the num_classes of the head in the loss.'

    def look(self, config: ReadConfig) -> Iterator[Finding]:
        for loss in losses(config):
            place, given, of_head = loss.at('num_classes'), loss.config.get('num_classes'), classes_in(loss.owner)
            if isinstance(given, int) and of_head is not None and given != of_head and loss.owner is not None:
                head = loss.owner
                words = dict(given=given, head=head.name, classes=quantity(of_head, 'class'), place=head.path)
                edit = propose('Write the number of classes of the head.', (place, of_head))
                yield self.report_at(place, given, words, edits=[edit])
