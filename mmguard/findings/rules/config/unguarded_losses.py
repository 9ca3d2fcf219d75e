from __future__ import annotations

from typing import Iterator

from mmguard.config.guards import is_guarded
from mmguard.config.parts import losses
from mmguard.config.read import ReadConfig
from mmguard.findings.finding import INFO, Finding
from mmguard.findings.rule import ConfigRule, Example
from mmguard.findings.usual_edits import guard_losses

#: Classification losses that an invalid label ends, or spoils without a word.
BY_LABEL = {
    'mmseg': ('CrossEntropyLoss', 'OhemCrossEntropy', 'FocalLoss', 'DiceLoss', 'LovaszLoss', 'TverskyLoss'),
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
    """A loss of class labels without a guard (F5 to F8)."""

    code = 'MG220'
    aliases = ('MG218',)
    summary = 'A classification loss without a guard.'
    title = '{loss} has no guard: one label outside the classes ends the run, or is trained as background.'
    title_ohem = '{loss} returns a loss without a graph where all pixels of a batch are ignored.'
    why = (
        'A single label outside the classes ends the run (index error, CUDA assert), or is trained as background '
        'without a word, depending on the loss. Where all pixels of one rank are ignored, OhemCrossEntropy returns a '
        'constant: DistributedDataParallel ends with "Expected to have finished reduction in the prior iteration".'
    )
    example = Example(wrong="dict(type='CrossEntropyLoss')", right="dict(type='GuardedCrossEntropyLoss')")
    limits = 'It finds nothing wrong: valid labels need no guard. Losses of your own are not listed.'
    advice = "Write type='GuardedX' for type='X', with the same arguments; the guard does not change valid labels."
    severity = INFO
    on_request = True

    def look(self, config: ReadConfig) -> Iterator[Finding]:
        for loss in losses(config):
            # Masks and objectness are binary: nothing can be out of range.
            is_binary = loss.key in ('loss_mask', 'loss_objectness', 'loss_dice')
            if loss.name not in BY_LABEL.get(loss.scope, ()) or is_guarded(loss) or is_binary:
                continue
            title = self.title_ohem if loss.name == 'OhemCrossEntropy' else ''
            ways = [guard_losses(config, [loss.path])]
            yield self.report_at(loss.at('type'), loss.config['type'], dict(loss=loss.name), title, edits=ways)
