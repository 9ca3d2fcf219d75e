from __future__ import annotations

from typing import Any, Iterator

from mmguard.config.losses import class_weights, expected_weights, fitting, written
from mmguard.config.parts import Part, losses
from mmguard.config.read import ReadConfig
from mmguard.findings.edits import ASKS, SAFE, Edit
from mmguard.findings.finding import WARNING, Finding
from mmguard.findings.rule import ConfigRule
from mmguard.text.words import counted


class ClassWeightLength(ConfigRule):
    """One weight per channel."""

    code = 'MG207'
    aliases = ('MG111',)
    summary = 'class_weight has not one entry per class.'
    why = (
        'The weights are looked up by label: with too few the run ends with an index error, and with any other number '
        'than the channels cross entropy refuses. MaskFormer-like heads and softmax bbox heads have one entry more, '
        'for "no object" (the background); it comes last. DETRHead takes no list.'
    )
    advice = 'Write one weight per class, plus one for "no object" where the head has it.'

    def look(self, config: ReadConfig) -> Iterator[Finding]:
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
            if weights.length is None:
                continue
            head = loss.owner
            if head is not None and head.name == 'DETRHead' and loss.key == 'loss_cls':
                yield self._numbers_of_detr(loss, given)
            elif expected is not None and weights.length != expected:
                yield self._other_length(loss, given, weights.length, expected, extra)

    def _other_length(self, loss: Part, given: Any, length: int, expected: int, extra: str) -> Finding:
        path, head = loss.at('class_weight'), loss.owner.name if loss.owner else 'the head'
        inside = ' in the file' if isinstance(given, str) else ''
        new, follows = fitting(given if not inside else (), expected, extra)
        text = f'Write `class_weight={written(new)}`'
        return self.at(
            path,
            given,
            f'{counted(length, "weight")}{inside}, but {head} needs {expected}{extra}.',
            edits=[
                Edit(f'{text}: {counted(expected, "weight")}{extra}.', SAFE, '', ((path, new),))
                if follows
                else Edit(
                    f'{text}, {counted(expected, "weight")}{extra}, then those that you want.',
                    ASKS,
                    'Which weight has each class?',
                    ((path, new),),
                )
            ],
        )

    def _numbers_of_detr(self, loss: Part, given: Any) -> Finding:
        path = loss.at('class_weight')
        return self.at(
            path,
            given,
            'A list, but DETRHead takes one number for all classes and one for "no object": building it fails.',
            edits=[
                Edit(
                    'Write `class_weight=1.0, bg_cls_weight=0.1`: DETRHead makes `[1.0] * num_classes + [0.1]` of it.',
                    ASKS,
                    'May all classes weigh the same?',
                    ((path, 1.0), (loss.at('bg_cls_weight'), 0.1)),
                )
            ],
        )
