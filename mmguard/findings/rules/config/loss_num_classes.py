from __future__ import annotations

from typing import Iterator

from mmguard.config.head_classes import classes_in
from mmguard.config.parts import losses
from mmguard.config.read import ReadConfig
from mmguard.findings.edits import SAFE, Edit
from mmguard.findings.finding import Finding
from mmguard.findings.rule import ConfigRule
from mmguard.text.words import counted


class LossNumClasses(ConfigRule):
    """SeesawLoss and the like count for themselves."""

    code = 'MG228'
    summary = 'num_classes of a loss is not that of its head.'
    why = 'The loss splits the scores by its own num_classes: another one than the head has is an error of shapes.'
    advice = 'Write the num_classes of the head.'

    def look(self, config: ReadConfig) -> Iterator[Finding]:
        for loss in losses(config):
            own, of_head = loss.config.get('num_classes'), classes_in(loss.owner)
            if isinstance(own, int) and of_head is not None and own != of_head and loss.owner is not None:
                yield self.at(
                    loss.at('num_classes'),
                    own,
                    f'{loss.owner.name} has {counted(of_head, "class")} ({loss.owner.path}).',
                    edits=[Edit(f'Write num_classes={of_head}.', SAFE, '', ((loss.at('num_classes'), of_head),))],
                )
