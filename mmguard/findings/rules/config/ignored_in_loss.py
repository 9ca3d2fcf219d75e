from __future__ import annotations

from dataclasses import replace
from typing import Any, Dict, Iterator

from mmguard.config.parts import Part, losses, stock_loss
from mmguard.config.read import ReadConfig
from mmguard.findings.edits import Edit
from mmguard.findings.finding import WARNING, Finding
from mmguard.findings.rule import ConfigRule, Example, Facts
from mmguard.findings.usual_edits import as_code, propose

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
    title = '{loss} at {place} trains on ignored pixels: {how}.'
    why = (
        "mmseg's DiceLoss leaves out the *channel* of that number, its HuasdorffDisstanceLoss sets such pixels to "
        'class 0: the model learns that there is nothing where the labels say nothing.'
    )
    example = Example(wrong="dict(type='DiceLoss')", right="dict(type='TverskyLoss', alpha=0.5, beta=0.5)")
    limits = 'Below one percent of ignored pixels it says nothing; losses of your own are not known.'
    advice = (
        "If a softmax over the classes will do, write dict(type='TverskyLoss', alpha=0.5, beta=0.5): Dice of softmax "
        'scores, with a mask for ignored pixels. If not, take another loss: nothing outside of this one can mask them.'
    )
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
            evidence = f'{found.evidence}; {100 * part:.3g} % of the pixels are {labels.ignore_index}'
            yield replace(found, evidence=evidence)

    def look(self, config: ReadConfig) -> Iterator[Finding]:
        for loss in map(stock_loss, losses(config)):
            if loss.scope != 'mmseg' or loss.name not in TRAINS_ON or loss.owner is None:
                continue
            # A guard takes out invalid pixels; with ignored ones it does what the loss in it does.
            outer = loss.path[: -len('.loss')] if loss.key == 'loss' else loss.path
            if outer.rsplit('.', 1)[-1].split('[')[0] != 'loss_decode' or loss.owner.is_a('STDCHead'):
                continue
            words = dict(loss=loss.name, place=loss.path, how=TRAINS_ON[loss.name])
            ways = list(_tversky(loss, loss.owner, outer))
            yield self.report_at(loss.at('type'), loss.config['type'], words, edits=ways)


def _tversky(loss: Part, head: Part, path: str) -> Iterator[Edit]:
    """Use mmseg's loss that is Dice with these two weights, of softmax scores, and has a mask for ignored pixels."""
    if loss.name != 'DiceLoss' or (head.get('out_channels') or head.get('num_classes') or 1) < 2:
        return
    scope = 'mmseg.' if str(loss.config['type']).startswith('mmseg.') else ''
    kept: Dict[str, Any] = {key: loss.config[key] for key in ('loss_weight', 'loss_name') if key in loss.config}
    new = {'type': f'{scope}TverskyLoss', 'alpha': 0.5, 'beta': 0.5, **kept}
    new['ignore_index'] = head.get('ignore_index', 255)
    certain = loss.get('use_sigmoid') is False
    yield propose(
        'Use TverskyLoss with equal weights: Dice of softmax scores, with a mask for ignored pixels.',
        (path, new),
        question='' if certain else 'May the scores of a pixel be a softmax over the classes?',
        lines=(f'{as_code(new)} at {path}',),
        if_not='' if certain else 'Take another loss.',
    )
