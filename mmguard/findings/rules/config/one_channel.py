from __future__ import annotations

from dataclasses import replace
from typing import Iterator, List, Sequence

from mmguard.config.changes import REMOVED
from mmguard.config.head_classes import counts
from mmguard.config.one_channel import one_channel_softmax, output_channels
from mmguard.config.parts import Part, classes_of, datasets
from mmguard.config.read import ReadConfig
from mmguard.findings.edits import ASKS, SAFE, Edit
from mmguard.findings.facts import LabelFacts
from mmguard.findings.finding import Finding
from mmguard.findings.rule import ConfigRule, Facts
from mmguard.findings.usual_edits import named, with_followers


class OneChannelSoftmax(ConfigRule):
    """A softmax of one number is 1."""

    code = 'MG215'
    looks_at = ('config', 'labels')
    aliases = ('MG112',)
    explains = ('MG102', 'MG107')
    summary = 'One output channel, and a loss that takes a softmax over the channels.'
    why = (
        'The softmax of a single channel is 1 whatever the model says: the loss of label 0 is always 0, and label 1 '
        'is an index error (CUDA assert).'
    )
    advice = 'Write use_sigmoid=True in the loss, or num_classes=2 without out_channels.'

    def look(self, config: ReadConfig) -> Iterator[Finding]:
        ways = _ways(config)
        for loss in one_channel_softmax(config):
            head = loss.owner
            assert head is not None  # one_channel_softmax looks at losses of heads alone
            key = 'out_channels' if head.config.get('out_channels') == 1 else 'num_classes'
            yield self.at(
                head.at(key),
                output_channels(head),
                f'{loss.name} at {loss.path} takes a softmax over a single channel: it is always 1.',
                edits=ways,
            )

    def find(self, facts: Facts) -> Iterator[Finding]:
        yield from super().find(facts)
        labels = facts.labels
        if facts.config is None and labels is not None and labels.num_classes == 1 and set(labels.values) == {1}:
            message = f'The labels are 0 and 1 ({labels.evidence}), and one channel without a sigmoid knows only 0.'
            advice = 'Write num_classes=2, or keep one channel (out_channels=1) with use_sigmoid=True in the loss.'
            two = Edit(advice, SAFE, options=(('num_classes', 2),))
            yield replace(self.at('num_classes', 1, message, advice, edits=[two]), likelihood=0.93)

    def weigh(self, found: Finding, labels: LabelFacts) -> float:
        return 0.96


def _ways(config: ReadConfig) -> List[Edit]:
    """Two classes in one channel with a sigmoid, or in two channels with a softmax: in all heads at once."""
    found = one_channel_softmax(config)
    if not found:
        return []
    heads = list({loss.owner.path: loss.owner for loss in found if loss.owner is not None}.values())
    # A head beside them that has its sigmoid counts the same classes.
    ones = [count.head for count in counts(config) if count.kind == 'all' and count.value == 1]
    number = tuple((head.at('num_classes'), 2) for head in ones)
    single = tuple((head.at('out_channels'), 1) for head in ones)
    sigmoids = tuple((loss.at('use_sigmoid'), True) for loss in found)
    one = Edit(
        f'{"Write `num_classes=2, out_channels=1`, and" if number else "Keep one channel, and write"} '
        f'`use_sigmoid=True` in the loss{_of(heads)}.',
        SAFE,
        config=(*number, *single, *sigmoids),
    )
    bare = {head.path for head in heads}
    kept = tuple((head.at('out_channels'), 1) for head in ones if head.path not in bare)
    gone = tuple((head.at('out_channels'), REMOVED) for head in heads if head.says('out_channels'))
    two = Edit(
        f'Write `num_classes=2` without out_channels{_of(heads)}, two channels: one per class.',
        SAFE,
        config=(*number, *kept, *gone),
    )
    has_ohem = any(loss.name == 'OhemCrossEntropy' for loss in found)
    ways = [two] if has_ohem else [two, one] if number else [one, two]
    names = next((classes_of(dataset) for dataset in datasets(config) if dataset.split == 'train'), None) or []
    if len(names) == 1:
        # The list, too, forgot what is not the object.
        both = ('background', *names)
        more = tuple(change for dataset in datasets(config) for change in named(dataset, both))
        question = 'Is 0 the background in the files, and 1 the object?'
        ways = [
            replace(
                way,
                applicability=ASKS,
                question=question,
                config=(*way.config, *more),
            )
            for way in ways
        ]
    return [with_followers(config, way) for way in ways]


def _of(heads: Sequence[Part]) -> str:
    return f' of {", ".join(head.path for head in heads)}' if len(heads) > 1 else ''
