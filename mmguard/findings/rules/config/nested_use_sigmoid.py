from __future__ import annotations

from typing import Iterator

from mmguard.config.guards import guarded_loss
from mmguard.config.parts import losses
from mmguard.config.read import ReadConfig
from mmguard.findings.edits import SAFE, Edit
from mmguard.findings.finding import Finding
from mmguard.findings.rule import ConfigRule


class NestedUseSigmoid(ConfigRule):
    """mmdet's heads read the config of a loss."""

    code = 'MG224'
    summary = 'use_sigmoid=True stands inside GuardedLoss(loss=dict(...)), where the heads of MMDetection do not look.'
    why = (
        'A head asks the config of its loss for use_sigmoid before the loss is built, and makes one channel more '
        'where it finds none. GuardedLoss refuses to be built that way.'
    )
    advice = "Write it flat: dict(type='GuardedLoss', loss='FocalLoss', use_sigmoid=True, ...)."

    def look(self, config: ReadConfig) -> Iterator[Finding]:
        for loss in losses(config):
            inner = loss.config.get('loss')
            if loss.name != 'GuardedLoss' or loss.scope != 'mmdet' or not isinstance(inner, dict):
                continue
            if inner.get('use_sigmoid') is True and not loss.config.get('use_sigmoid'):
                outer = {key: value for key, value in loss.config.items() if key not in ('type', 'loss')}
                flat = {**guarded_loss(inner, 'mmdet'), **outer, 'type': loss.config['type']}
                yield self.at(
                    f'{loss.at("loss")}.use_sigmoid',
                    True,
                    'The head does not see it here and would make a channel for the background.',
                    edits=[Edit(self.advice, SAFE, '', ((loss.path, flat),))],
                )
