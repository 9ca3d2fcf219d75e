from __future__ import annotations

from typing import Iterator

from mmguard.config.changes import REMOVED
from mmguard.config.losses import is_softmax, output_channels
from mmguard.config.parts import Part, heads, losses_of
from mmguard.config.read import ReadConfig
from mmguard.findings.edits import Edit
from mmguard.findings.finding import Finding
from mmguard.findings.rule import ConfigRule, Example
from mmguard.findings.usual_edits import propose


class SamplerOneChannel(ConfigRule):
    """A softmax of one number, in the sampler."""

    code = 'MG240'
    summary = 'OHEMPixelSampler with a thresh, in a head of one output channel.'
    title = 'OHEMPixelSampler at {place} gathers by label from the single channel of {head}: label 1 is out of range.'
    why = (
        'With `thresh` the sampler takes a softmax over the channels, whatever the loss is, and gathers by label: of '
        'one channel label 1 is an index error (CUDA assert), also with a sigmoid loss.'
    )
    example = Example(
        wrong="num_classes=2, out_channels=1, sampler=dict(type='OHEMPixelSampler', thresh=0.7)",
        right="num_classes=2, sampler=dict(type='OHEMPixelSampler', thresh=0.7)",
    )
    limits = 'Edits are offered where every loss of the head is a cross entropy.'
    advice = (
        'Take the sampler out, or write num_classes=2 without out_channels, and losses that take a softmax over two '
        'channels.'
    )

    def look(self, config: ReadConfig) -> Iterator[Finding]:
        if config.scope != 'mmseg':
            return
        for head in heads(config):
            sampler = head.config.get('sampler')
            if not isinstance(sampler, dict) or output_channels(head) != 1:
                continue
            part = Part(head.at('sampler'), sampler, head.scope, owner=head)
            if part.name == 'OHEMPixelSampler' and part.get('thresh') is not None:
                words, ways = dict(place=part.path, head=head.name), list(_ways(config, head, part))
                yield self.report_at(part.at('thresh'), part.get('thresh'), words, edits=ways)


def _ways(config: ReadConfig, head: Part, sampler: Part) -> Iterator[Edit]:
    """Yield no sampler; two channels."""
    losses = losses_of(config, head)
    crossed = [loss for loss in losses if loss.is_a('CrossEntropyLoss', 'GuardedCrossEntropyLoss')]
    if losses != crossed:
        return
    number = () if head.config.get('num_classes') == 2 else ((head.at('num_classes'), 2),)
    single = ((head.at('out_channels'), 1),) if number else ()
    sigmoid = tuple((loss.at('use_sigmoid'), True) for loss in losses if is_softmax(loss))
    yield propose(f'Take the sampler out of {head.path}.', (sampler.path, REMOVED), *number, *single, *sigmoid)
    gone = ((head.at('out_channels'), REMOVED),) if head.says('out_channels') else ()
    softmax = tuple((loss.at('use_sigmoid'), False) for loss in losses)
    yield propose('Keep the sampler, and use two channels, one per class.', *number, *gone, *softmax)
