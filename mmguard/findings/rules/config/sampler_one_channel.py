from __future__ import annotations

from typing import Iterator

from mmguard.config.changes import REMOVED
from mmguard.config.losses import is_softmax, output_channels
from mmguard.config.parts import Part, heads, losses_of
from mmguard.config.read import ReadConfig
from mmguard.findings.edits import SAFE, Edit
from mmguard.findings.finding import Finding
from mmguard.findings.rule import ConfigRule


class SamplerOneChannel(ConfigRule):
    """A softmax of one number, in the sampler."""

    code = 'MG240'
    summary = 'OHEMPixelSampler with a thresh, in a head of one output channel.'
    why = (
        'With `thresh` the sampler takes a softmax over the channels, whatever the loss is, and gathers by label: of '
        'one channel label 1 is an index error (CUDA assert), also with a sigmoid loss.'
    )
    advice = 'Take the sampler out, or write num_classes=2 without out_channels and a softmax loss.'

    def look(self, config: ReadConfig) -> Iterator[Finding]:
        if config.scope != 'mmseg':
            return
        for head in heads(config):
            sampler = head.config.get('sampler')
            if not isinstance(sampler, dict) or output_channels(head) != 1:
                continue
            part = Part(head.at('sampler'), sampler, head.scope, owner=head)
            if part.name != 'OHEMPixelSampler' or part.get('thresh') is None:
                continue
            yield self.at(
                part.at('thresh'),
                part.get('thresh'),
                f'OHEMPixelSampler at {part.path} takes a softmax over the single channel of {head.name}, and gathers '
                f'by label: label 1 is out of range.',
                edits=list(_ways(config, head, part)),
            )


def _ways(config: ReadConfig, head: Part, sampler: Part) -> Iterator[Edit]:
    """Hard pixels by their loss, which needs no softmax; two channels; no sampler."""
    losses = losses_of(config, head)
    crossed = [loss for loss in losses if loss.is_a('CrossEntropyLoss', 'GuardedCrossEntropyLoss')]
    if losses != crossed:
        return
    number = () if head.config.get('num_classes') == 2 else ((head.at('num_classes'), 2),)
    names = ' and num_classes=2' if number else ''
    sigmoid = tuple((loss.at('use_sigmoid'), True) for loss in losses if is_softmax(loss))
    one = (*number, *(((head.at('out_channels'), 1),) if number else ()), *sigmoid)
    said = ['`num_classes=2, out_channels=1`'] * bool(number) + ['`use_sigmoid=True` in the loss'] * bool(sigmoid)
    also = f', and write {" and ".join(said)}' if said else ''
    yield Edit(f'Take the sampler out of {head.path}{also}.', SAFE, '', ((sampler.path, REMOVED), *one))
    gone = ((head.at('out_channels'), REMOVED),) if head.says('out_channels') else ()
    softmax = tuple((loss.at('use_sigmoid'), False) for loss in losses)
    yield Edit(
        f'Keep the sampler: write `use_sigmoid=False` in the loss, without out_channels{names}: two channels, one per '
        f'class.',
        SAFE,
        '',
        (*number, *gone, *softmax),
    )
