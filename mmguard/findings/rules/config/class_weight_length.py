from __future__ import annotations

from typing import Any, Iterator

from mmguard.config.losses import class_weights, count_expected_weights, fit_weights, format_weights
from mmguard.config.parts import Part, losses
from mmguard.config.read import ReadConfig
from mmguard.findings.finding import WARNING, Finding
from mmguard.findings.rule import ConfigRule, Example
from mmguard.findings.usual_edits import propose
from mmguard.text import quantity


class ClassWeightLength(ConfigRule):
    """Class weights of another number than the head needs."""

    code = 'MG207'
    aliases = ('MG111',)
    summary = 'class_weight does not have one entry per class.'
    title = 'class_weight has {length}, but {head} needs {expected}{extra}.'
    title_list = 'class_weight is a list, but DETRHead takes a number, and bg_cls_weight for "no object".'
    title_unreadable = 'The file of the class weights cannot be read: {problem}.'
    why = (
        'The weights are looked up by label: with too few the run ends with an index error, and with any other number '
        'than the channels cross entropy refuses. MaskFormer-like heads and softmax bbox heads have one entry more, '
        'for "no object" (the background); it comes last. DETRHead takes no list.'
    )
    example = Example(wrong='num_classes=3, class_weight=[1, 2]', right='num_classes=3, class_weight=[1, 2, 1.5]')
    limits = 'It compares numbers: weights in the order of another class list are not seen.'
    advice = (
        'Write one weight per class in the order of the class list, plus one for "no object" at the end where the head '
        'has it. A file (.npy, .json, .yaml or .pkl) holds them as a list; its path starts where training starts.'
    )

    def look(self, config: ReadConfig) -> Iterator[Finding]:
        for loss in losses(config):
            path, given, weights = loss.at('class_weight'), loss.config.get('class_weight'), class_weights(loss)
            if weights.problem:
                words = dict(problem=weights.problem)
                yield self.report_at(path, given, words, self.title_unreadable, WARNING)
            expected, extra = count_expected_weights(loss)
            if weights.length is None:
                continue
            head = loss.owner
            if head is not None and head.name == 'DETRHead' and loss.key == 'loss_cls':
                edit = propose(
                    'Write a number for all classes, and one for "no object".',
                    *((path, 1.0), (loss.at('bg_cls_weight'), 0.1)),
                    question='May all classes weigh the same?',
                    if_not='Take another head: DETRHead makes `[1.0] * num_classes + [0.1]` of it.',
                )
                yield self.report_at(path, given, title=self.title_list, edits=[edit])
            elif expected is not None and weights.length != expected:
                yield self._other_length(loss, given, weights.length, expected, extra)

    def _other_length(self, loss: Part, given: Any, length: int, expected: int, extra: str) -> Finding:
        new, follows = fit_weights(() if isinstance(given, str) else given, expected, extra)
        edit = propose(
            'Write as many weights as the head needs.',
            (loss.at('class_weight'), new),
            question='' if follows else 'Are these the weights that you want?',
            lines=(f'class_weight={format_weights(new)} at {loss.path}',),
            if_not='' if follows else 'Write the weight of each class.',
        )
        head = loss.owner.name if loss.owner else 'the head'
        words = dict(length=quantity(length, 'entry'), head=head, expected=expected, extra=extra)
        return self.report_at(loss.at('class_weight'), given, words, edits=[edit])
