from __future__ import annotations

from typing import Iterator

from mmguard.config.guards import is_guarded
from mmguard.config.parts import losses
from mmguard.config.read import ReadConfig
from mmguard.findings.finding import WARNING, Finding
from mmguard.findings.rule import ConfigRule, Facts
from mmguard.findings.usual_edits import guarded

#: Losses of mmseg that train on ignored pixels, whatever their ignore_index is, and as what.
TRAINS_ON = {
    'DiceLoss': 'every class that is predicted there counts as wrong',
    'HuasdorffDisstanceLoss': 'they count as class 0',
}
#: A smaller share does not change what is learnt.
MANY = 0.01


class IgnoredInLoss(ConfigRule):
    """An ``ignore_index`` that is taken, and does nothing."""

    code = 'MG243'
    looks_at = ('config', 'labels')
    summary = 'A loss trains on the pixels that are to be ignored: its ignore_index does nothing.'
    why = (
        "mmseg's DiceLoss leaves out the *channel* of that number, its HuasdorffDisstanceLoss sets such pixels to "
        'class 0: the model learns that there is nothing where the labels say nothing.'
    )
    advice = "Write `dict(type='GuardedLoss', loss=dict(type='DiceLoss', ...))`, which leaves ignored pixels out."
    severity = WARNING

    def find(self, facts: Facts) -> Iterator[Finding]:
        labels, config = facts.labels, facts.config
        if labels is None or config is None or labels.kind != 'pixels' or labels.split != 'train':
            return
        ignored = 0 if labels.ignore_index is None else labels.histogram.get(labels.ignore_index, 0)
        part = ignored / labels.total if labels.total else 0.0
        if part < MANY:
            return
        for found in self.look(config):
            yield self.found(
                found.cause,
                f'{found.evidence}; {100 * part:.3g} % of the pixels are {labels.ignore_index}',
                edits=found.candidates,
                places=found.places,
                value=found.value,
            )

    def look(self, config: ReadConfig) -> Iterator[Finding]:
        for loss in losses(config):
            if loss.scope != 'mmseg' or loss.name not in TRAINS_ON or is_guarded(loss):
                continue
            if loss.owner is None or loss.key != 'loss_decode' or loss.owner.is_a('STDCHead'):
                continue
            if loss.name == 'DiceLoss':
                edits = [
                    guarded(config, [loss.path], f"Write `type='GuardedLoss', loss=dict(type={loss.name!r}, ...)`.")
                ]
            else:
                edits = []
            yield self.at(
                loss.at('type'),
                loss.config['type'],
                f'{loss.name} at {loss.path} trains on ignored pixels: {TRAINS_ON[loss.name]}.',
                advice=None if edits else 'Take another loss: nothing outside of it can leave these pixels out.',
                edits=edits,
            )
