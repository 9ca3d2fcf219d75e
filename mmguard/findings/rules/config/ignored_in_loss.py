from __future__ import annotations

from dataclasses import replace
from typing import Any, Dict, Iterator

from mmguard.config.parts import Part, losses, stock_loss
from mmguard.config.read import ReadConfig
from mmguard.findings.edits import Edit
from mmguard.findings.finding import INFO, WARNING, Finding
from mmguard.findings.rule import ConfigRule, Example, Facts
from mmguard.findings.usual_edits import as_code, propose
from mmguard.findings.views import is_trained_on, share, stored

#: Losses of mmseg that train on ignored pixels, whatever their ignore_index is, and as what.
TRAINS_ON = {
    'DiceLoss': 'every class that is predicted there counts as wrong',
    'HuasdorffDisstanceLoss': 'they count as class 0',
}
#: A smaller share does not change what is learnt.
MANY = 0.01
#: Losses that divide by the number of all pixels, ignored ones included; a smaller share hardly changes the average.
AVERAGES = ('CrossEntropyLoss', 'GuardedCrossEntropyLoss')
MANY_AVERAGED = 0.2
#: What heads call their losses of pixels: mmseg's, and those of mmdet for panoptic labels.
_OF_PIXELS = ('loss_decode', 'loss_seg')


class IgnoredInLoss(ConfigRule):
    """An ``ignore_index`` that is taken, and does nothing, or less than one thinks."""

    code = 'MG243'
    looks_at = ('config', 'labels')
    summary = 'A loss trains on the pixels that are to be ignored, or counts them in its average.'
    title = '{loss} at {place} trains on ignored pixels: {how}.'
    title_average = '{part} of the pixels are ignored, or will be, and {loss} counts them in its average.'
    why = (
        "mmseg's DiceLoss leaves out the *channel* of that number, its HuasdorffDisstanceLoss sets such pixels to "
        'class 0: the model learns that there is nothing where the labels say nothing. Its CrossEntropyLoss divides by '
        "all pixels, where torch's divides by those that are not ignored: loss and gradient shrink by that share."
    )
    example = Example(wrong="dict(type='DiceLoss')", right="dict(type='TverskyLoss', alpha=0.5, beta=0.5)")
    limits = 'With few ignored pixels (1 %, in an average 20 %) it says nothing; losses of your own are not known.'
    advice = (
        "If a softmax over the classes will do, write dict(type='TverskyLoss', alpha=0.5, beta=0.5): Dice of softmax "
        'scores, with a mask for ignored pixels. If not, take another loss: nothing outside of this one can mask them. '
        'For the average of torch write avg_non_ignore=True in the CrossEntropyLoss.'
    )
    severity = WARNING

    def find(self, facts: Facts) -> Iterator[Finding]:
        labels, config = facts.labels, facts.config
        if labels is None or config is None or labels.kind != 'pixels' or not is_trained_on(labels):
            return
        void = -1 if labels.ignore_index is None else labels.ignore_index
        ignored = labels.histogram.get(void, 0)
        part = share(ignored, labels.total)
        for found in self.look(config) if part >= MANY else ():
            evidence = f'{found.evidence}; {100 * part:.3g} % of the pixels are {void}'
            yield replace(found, evidence=evidence)
        # What a shift or a map ignores was chosen; where a guard ignores invalid pixels, they count as ignored ones.
        part = share(min(ignored, stored(labels).get(void, 0)) + sum(labels.values.values()), labels.total)
        if part >= MANY_AVERAGED:
            yield from self._find_averages(config, f'{100 * part:.3g} %')

    def _find_averages(self, config: ReadConfig, part: str) -> Iterator[Finding]:
        found = [loss for loss in losses(config) if _averages_all(loss)]
        if not found:
            return
        places = [loss.at('avg_non_ignore') for loss in found]
        way = propose(
            'Average over the pixels that are not ignored.',
            *((place, True) for place in places),
            question='Is the loss to be the mean over labelled pixels, as in torch?',
            notes=('If not, keep it: only the scale of loss and gradient is another.',),
        )
        words, evidence = dict(loss=found[0].name, part=part), f'{" and ".join(places)} = False'
        yield self.report(evidence, words, self.title_average, INFO, [way], places=tuple(places))

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


def _averages_all(loss: Part) -> bool:
    """True if the average counts ignored pixels: a number decides, and not class weights."""
    return (
        loss.name in AVERAGES
        and loss.path.rsplit('.', 1)[-1].split('[')[0] in _OF_PIXELS
        and loss.get('class_weight') is None
        and loss.get('reduction', 'mean') == 'mean'
        and not loss.get('avg_non_ignore', False)
    )


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
