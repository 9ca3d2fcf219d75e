from __future__ import annotations

from typing import Iterator

from mmguard.check.config import ReadConfig
from mmguard.check.finding import INFO, ConfigFinding
from mmguard.check.guards import is_guarded
from mmguard.check.parts import losses
from mmguard.check.rule import Rule

#: Classification losses that an invalid label ends, or spoils without a word.
BY_LABEL = {
    'mmseg': ('CrossEntropyLoss', 'FocalLoss', 'DiceLoss', 'LovaszLoss', 'TverskyLoss'),
    'mmdet': (
        'CrossEntropyLoss',
        'CrossEntropyCustomLoss',
        'FocalLoss',
        'FocalCustomLoss',
        'QualityFocalLoss',
        'SeesawLoss',
        'EQLV2Loss',
        'GHMC',
    ),
}


class UnguardedLosses(Rule):
    """F5, F7, F8."""

    code = 'MG220'
    summary = 'A classification loss without a guard.'
    why = (
        'A single label outside the classes ends the run (index error, CUDA assert), or is trained as background '
        'without a word, depending on the loss.'
    )
    advice = 'Type X becomes GuardedX: GuardedCrossEntropyLoss; any other loss is wrapped in GuardedLoss.'
    severity = INFO
    on_request = True

    def find(self, config: ReadConfig) -> Iterator[ConfigFinding]:
        for loss in losses(config):
            names = BY_LABEL.get(loss.scope, ())
            # Masks and objectness are binary: nothing can be out of range.
            if loss.name not in names or is_guarded(loss) or loss.key in ('loss_mask', 'loss_objectness', 'loss_dice'):
                continue
            guarded = (
                "type='GuardedCrossEntropyLoss'"
                if loss.name == 'CrossEntropyLoss'
                else f"type='GuardedLoss', loss={loss.name!r}"
            )
            yield self.at(
                loss.at('type'),
                loss.config['type'],
                'One label outside the classes ends the run, or is trained as background.',
                f'Write {guarded} with the same arguments.',
            )
