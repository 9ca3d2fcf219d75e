"""One output channel: a softmax over it, or a metric of one class."""

from __future__ import annotations

from dataclasses import replace
from typing import Iterator, List, Sequence

from mmguard.config.agreement import find_class_counts
from mmguard.config.changes import REMOVED, Changes
from mmguard.config.losses import find_one_channel_softmax, get_output_channels, is_softmax
from mmguard.config.parts import (
    Part,
    find_datasets,
    find_head_losses,
    find_heads,
    find_metrics,
    get_class_names,
    get_classes_path,
)
from mmguard.config.read import ReadConfig
from mmguard.findings.class_edits import name_classes
from mmguard.findings.edits import Edit
from mmguard.findings.finding import WARNING, Finding
from mmguard.findings.rule import ConfigRule, Example, Facts
from mmguard.findings.usual_edits import add_dependent_settings, propose
from mmguard.language import Message


class OneChannelSoftmax(ConfigRule):
    """A softmax over one number, which is always 1; or one class, for which IoUMetric counts every pixel."""

    code = 'MG215'
    follows = ('MG102', 'MG107')
    looks_at = ('config', 'labels')
    aliases = ('MG112',)
    summary = 'A head has one output channel, but its loss takes a softmax over it, or its metric counts one class.'
    title = '{loss} at {place} takes a softmax over a single channel: it is always 1.'
    title_labels = 'The labels are 0 and 1, but num_classes is 1: a single channel without a sigmoid has only label 0.'
    title_metric = 'IoUMetric counts a single class, {name}: its IoU then follows the accuracy of all pixels.'
    why = (
        'The softmax of a single channel is 1 whatever the model says: the loss of label 0 is always 0, and label 1 '
        'is an index error (CUDA assert). With a sigmoid the model learns, but masks of 0 and 1 have two classes: with '
        'a list of one, IoUMetric counts every pixel, and predicting nothing but background has a high IoU.'
    )
    example = Example(
        wrong="num_classes=1, loss_decode=dict(type='CrossEntropyLoss')",
        right="num_classes=2, loss_decode=dict(type='CrossEntropyLoss')",
    )
    limits = 'A loss of your own with one channel is not judged.'
    advice = (
        'Train two channels (num_classes=2, without out_channels), or one with a sigmoid (num_classes=2, '
        'out_channels=1, use_sigmoid=True in the loss). The class list then names the background, too.'
    )

    def look(self, config: ReadConfig) -> Iterator[Finding]:
        ways = _offer_ways(config)
        for loss in find_one_channel_softmax(config):
            head = loss.owner
            assert head is not None  # one_channel_softmax looks only at losses of heads
            key = 'out_channels' if head.config.get('out_channels') == 1 else 'num_classes'
            words = dict(loss=loss.name, place=loss.path)
            yield self.report_at(head.place(key), get_output_channels(head), words, edits=ways)
        yield from () if ways else self._find_single_class(config)

    def _find_single_class(self, config: ReadConfig) -> Iterator[Finding]:
        """Yield the class lists of one name over which IoUMetric evaluates a head with one channel."""
        ones = _find_heads_of_one_class(config)
        if config.scope != 'mmseg' or not ones or not any(metric.is_a('IoUMetric') for metric in find_metrics(config)):
            return
        changes = tuple(change for head in ones for change in _count_two_in_one_channel(head))
        way = propose('Count the background as a class, and keep one output channel.', *changes)
        for dataset in find_datasets(config):
            names = get_class_names(dataset) or ()
            if dataset.split != 'train' and len(names) == 1:
                words, ways = dict(name=names[0]), _name_background(config, names, [way])
                yield self.report_at(get_classes_path(dataset), names, words, self.title_metric, WARNING, ways)

    def find(self, facts: Facts) -> Iterator[Finding]:
        yield from super().find(facts)
        labels = facts.labels
        if facts.config is not None or labels is None or labels.kind != 'pixels':
            return
        if labels.num_classes == 1 and set(labels.values) == {1}:
            options = (('num_classes', 2),)
            question = 'Does the model take a softmax over the classes (cross entropy)?'
            one = 'With a sigmoid over one output, 0 and 1 are right: change nothing, and scan with `--num-classes 2`.'
            title, line = 'Train two classes: the background is one.', ('num_classes=2',)
            two = Edit(title, question, options=options, lines=line, if_not=one)
            yield self.report_at('num_classes', 1, title=self.title_labels, edits=[two])


def _offer_ways(config: ReadConfig) -> List[Edit]:
    """Return edits of all heads: two classes in one channel with a sigmoid, or in two channels with a softmax."""
    found = find_one_channel_softmax(config)
    if not found:
        return []
    heads = list({loss.owner.path: loss.owner for loss in found if loss.owner is not None}.values())
    # Another head with a sigmoid counts the same classes.
    ones = _find_heads_of_one_class(config)
    number = tuple((head.place('num_classes'), 2) for head in ones)
    single = tuple((head.place('out_channels'), 1) for head in ones)
    sigmoids = tuple((loss.place('use_sigmoid'), True) for loss in found)
    one = propose('Use one channel, with a sigmoid in the loss.', *number, *single, *sigmoids)
    bare = {head.path for head in heads}
    kept = tuple((head.place('out_channels'), 1) for head in ones if head.path not in bare)
    gone = tuple((head.place('out_channels'), REMOVED) for head in heads if head.says('out_channels'))
    two = propose('Use two channels, one per class.', *number, *kept, *gone)
    has_ohem = any(loss.name == 'OhemCrossEntropy' for loss in found)
    ways = [two] if has_ohem else [two, one] if number else [one, two]
    names = (
        next((get_class_names(dataset) for dataset in find_datasets(config) if dataset.split == 'train'), None) or []
    )
    return _name_background(config, names, ways) if len(names) == 1 else _add_settings_to_all(config, ways)


def _find_heads_of_one_class(config: ReadConfig) -> List[Part]:
    return [count.head for count in find_class_counts(config) if count.kind == 'all' and count.value == 1]


def _count_two_in_one_channel(head: Part) -> Changes:
    return ((head.place('num_classes'), 2), (head.place('out_channels'), 1))


def _name_background(config: ReadConfig, names: Sequence[str], ways: Sequence[Edit]) -> List[Edit]:
    """Add the background to a class list of one object, if that is what the files hold."""
    more = tuple(
        change for dataset in find_datasets(config) for change in name_classes(dataset, ('background', *names))
    )
    asked = 'Is 0 the background in the files, and 1 the object?'
    return _add_settings_to_all(config, [replace(way, question=asked, config=(*way.config, *more)) for way in ways])


def _add_settings_to_all(config: ReadConfig, ways: Sequence[Edit]) -> List[Edit]:
    return [add_dependent_settings(config, way) for way in ways]


class SamplerOneChannel(ConfigRule):
    """A softmax over one number, in the sampler."""

    code = 'MG240'
    follows = ('MG102', 'MG107', 'MG215')
    summary = 'A head with one output channel uses OHEMPixelSampler with thresh.'
    title = 'OHEMPixelSampler at {place} gathers by label from the single channel of {head}: label 1 is out of range.'
    why = (
        'With `thresh` the sampler takes a softmax over the channels, whatever the loss is, and gathers by label: '
        'with one channel, label 1 is an index error (CUDA assert), also with a sigmoid loss.'
    )
    example = Example(
        wrong="num_classes=2, out_channels=1, sampler=dict(type='OHEMPixelSampler', thresh=0.7)",
        right="num_classes=2, sampler=dict(type='OHEMPixelSampler', thresh=0.7)",
    )
    limits = 'Edits are offered where every loss of the head is a cross entropy.'
    advice = (
        'Remove the sampler, or write num_classes=2 without out_channels, and losses that take a softmax over two '
        'channels.'
    )

    def look(self, config: ReadConfig) -> Iterator[Finding]:
        if config.scope != 'mmseg':
            return
        for head in find_heads(config):
            sampler = head.config.get('sampler')
            if not isinstance(sampler, dict) or get_output_channels(head) != 1:
                continue
            part = Part(head.place('sampler'), sampler, head.scope, owner=head)
            if part.name == 'OHEMPixelSampler' and part.get('thresh') is not None:
                words, ways = (
                    dict(place=part.path, head=head.name),
                    list(_offer_channels(config, head, part)),
                )
                yield self.report_at(part.place('thresh'), part.get('thresh'), words, edits=ways)


def _offer_channels(config: ReadConfig, head: Part, sampler: Part) -> Iterator[Edit]:
    """Yield an edit to one channel without the sampler, and one to two channels with it."""
    losses = find_head_losses(config, head)
    crossed = [loss for loss in losses if loss.is_a('CrossEntropyLoss', 'GuardedCrossEntropyLoss')]
    if losses != crossed:
        return
    number = () if head.config.get('num_classes') == 2 else ((head.place('num_classes'), 2),)
    single = ((head.place('out_channels'), 1),) if number else ()
    sigmoid = tuple((loss.place('use_sigmoid'), True) for loss in losses if is_softmax(loss))
    yield propose(
        Message('Remove the sampler from {path}.', path=head.path), (sampler.path, REMOVED), *number, *single, *sigmoid
    )
    gone = ((head.place('out_channels'), REMOVED),) if head.says('out_channels') else ()
    softmax = tuple((loss.place('use_sigmoid'), False) for loss in losses)
    yield propose('Keep the sampler, and use two channels, one per class.', *number, *gone, *softmax)
