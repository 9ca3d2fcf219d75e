from __future__ import annotations

from typing import Iterator, Optional, Tuple

from mmguard.check.class_weights import class_weights
from mmguard.check.config import ReadConfig
from mmguard.check.finding import WARNING, ConfigFinding
from mmguard.check.head_classes import classes_in
from mmguard.check.one_channel import output_channels
from mmguard.check.parts import Part, losses
from mmguard.check.rule import Rule
from mmguard.words import counted

#: Heads whose loss_cls has one weight more, for "no object".
QUERY_HEADS = ('MaskFormerHead', 'Mask2FormerHead', 'SideAdapterCLIPHead')


class ClassWeightLength(Rule):
    """One weight per channel."""

    code = 'MG207'
    summary = 'class_weight has not one entry per class.'
    why = (
        'The weights are looked up by label: with too few the run ends with an index error, and with any other number '
        'than the channels cross entropy refuses. MaskFormer-like heads and softmax bbox heads have one entry more, '
        'for "no object" (the background); it comes last.'
    )
    advice = 'Write one weight per class, plus one for "no object" where the head has it.'

    def find(self, config: ReadConfig) -> Iterator[ConfigFinding]:
        for loss in losses(config):
            given, weights = loss.config.get('class_weight'), class_weights(loss)
            if weights.problem:
                yield self.at(
                    loss.at('class_weight'),
                    given,
                    f'The file of the class weights cannot be read: {weights.problem}.',
                    'Write the path as it is seen from where training starts, and a list of one number per class into '
                    'the file (.npy, .json, .yaml or .pkl).',
                    WARNING,
                )
            expected, extra = expected_weights(loss)
            if weights.length is None or expected is None or weights.length == expected:
                continue
            inside = ' in the file' if isinstance(given, str) else ''
            head = loss.owner.name if loss.owner else 'the head'
            yield self.at(
                loss.at('class_weight'),
                given,
                f'{counted(weights.length, "weight")}{inside}, but {head} needs {expected}{extra}.',
                f'Write {counted(expected, "weight")}{extra and ", the last one for the extra entry"}, or num_classes '
                f'to match.',
            )


def expected_weights(loss: Part) -> Tuple[Optional[int], str]:
    """How many class weights a loss needs, and what the extra one is for; ``None`` where that is not known."""
    head = loss.owner
    classes = classes_in(head)
    if head is None or classes is None:
        return None, ''
    if head.is_a(*QUERY_HEADS):
        if loss.key == 'loss_cls' or str(loss.config.get('loss_name', '')).startswith('loss_cls'):
            return classes + 1, f' ({counted(classes, "class")} and "no object")'
        return None, ''
    if head.scope == 'mmseg' and loss.key == 'loss_decode':
        channels = output_channels(head)
        return (None if channels == 1 else channels), ''  # one channel: MG215, or a weight that is no class's
    if head.is_a('BBoxHead') and loss.key == 'loss_cls' and loss.is_a('CrossEntropyLoss', 'GuardedCrossEntropyLoss'):
        if loss.get('use_sigmoid', False):
            return classes, ''
        return classes + 1, f' ({counted(classes, "class")} and the background)'
    return None, ''
