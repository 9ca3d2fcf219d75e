from __future__ import annotations

from typing import Iterator

from mmguard.config.guards import is_guarded
from mmguard.config.parts import losses
from mmguard.config.read import ReadConfig
from mmguard.findings.finding import INFO, Finding
from mmguard.findings.rule import ConfigRule
from mmguard.findings.usual_edits import guarded

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


class UnguardedLosses(ConfigRule):
    """F5, F7, F8."""

    code = 'MG220'
    summary = 'A classification loss without a guard.'
    why = (
        'A single label outside the classes ends the run (index error, CUDA assert), or is trained as background '
        'without a word, depending on the loss.'
    )
    advice = 'Type X becomes GuardedX: CrossEntropyLoss becomes GuardedCrossEntropyLoss.'
    severity = INFO
    on_request = True

    def look(self, config: ReadConfig) -> Iterator[Finding]:
        for loss in losses(config):
            names = BY_LABEL.get(loss.scope, ())
            # Masks and objectness are binary: nothing can be out of range.
            if loss.name not in names or is_guarded(loss) or loss.key in ('loss_mask', 'loss_objectness', 'loss_dice'):
                continue
            yield self.at(
                loss.at('type'),
                loss.config['type'],
                'One label outside the classes ends the run, or is trained as background.',
                edits=[guarded(config, [loss.path], f"Write type='Guarded{loss.name}' with the same arguments.")],
            )
