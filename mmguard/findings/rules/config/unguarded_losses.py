from __future__ import annotations

from typing import Iterator

from mmguard.config.guards import is_guarded
from mmguard.config.parts import losses
from mmguard.config.read import ReadConfig
from mmguard.findings.finding import INFO, Finding
from mmguard.findings.rule import ConfigRule, Example
from mmguard.findings.usual_edits import guard_losses


class UnguardedOhem(ConfigRule):
    """An OhemCrossEntropy that may find nothing to mine (F6)."""

    code = 'MG218'
    summary = 'OhemCrossEntropy without a guard: a batch without a valid pixel ends distributed training.'
    title = 'OhemCrossEntropy returns a loss without a graph where all pixels of a batch are ignored.'
    why = (
        'Where all pixels of one rank are ignored it returns a constant without a graph. DistributedDataParallel then '
        'ends with "Expected to have finished reduction in the prior iteration", or hangs.'
    )
    example = Example(wrong="dict(type='OhemCrossEntropy')", right="dict(type='GuardedOhemCrossEntropy')")
    limits = 'It does not know whether a crop can be ignored as a whole, nor whether several ranks train.'
    advice = "Write type='GuardedOhemCrossEntropy' with the same arguments."
    severity = INFO
    on_request = True

    def look(self, config: ReadConfig) -> Iterator[Finding]:
        for loss in losses(config):
            if loss.name == 'OhemCrossEntropy' and not loss.path.endswith('.loss'):
                ways = [guard_losses(config, [loss.path])]
                yield self.report_at(loss.at('type'), loss.config['type'], edits=ways)


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
    """A loss of class labels without a guard (F5, F7, F8)."""

    code = 'MG220'
    summary = 'A classification loss without a guard.'
    title = '{loss} has no guard: one label outside the classes ends the run, or is trained as background.'
    why = (
        'A single label outside the classes ends the run (index error, CUDA assert), or is trained as background '
        'without a word, depending on the loss.'
    )
    example = Example(wrong="dict(type='CrossEntropyLoss')", right="dict(type='GuardedCrossEntropyLoss')")
    limits = 'It finds nothing wrong: valid labels need no guard. Losses of your own are not listed.'
    advice = "Write type='GuardedX' for type='X', with the same arguments; the guard does not change valid labels."
    severity = INFO
    on_request = True

    def look(self, config: ReadConfig) -> Iterator[Finding]:
        for loss in losses(config):
            names = BY_LABEL.get(loss.scope, ())
            # Masks and objectness are binary: nothing can be out of range.
            if loss.name not in names or is_guarded(loss) or loss.key in ('loss_mask', 'loss_objectness', 'loss_dice'):
                continue
            ways = [guard_losses(config, [loss.path])]
            yield self.report_at(loss.at('type'), loss.config['type'], dict(loss=loss.name), edits=ways)
