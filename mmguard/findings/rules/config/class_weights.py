"""Class weights: their number, and the labels looked up in them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Iterator, List, Sequence

from mmguard.compat.stack import weighs_ignored_labels
from mmguard.config.agreement import find_ignored_labels
from mmguard.config.losses import (
    count_expected_weights,
    find_ignore_index,
    find_weighted_cross_entropies,
    fit_weights,
    format_weights,
    get_output_channels,
    is_sigmoid_of_maps,
)
from mmguard.config.parts import Part, find_losses
from mmguard.config.read import ReadConfig
from mmguard.facts.labels import LabelFacts
from mmguard.findings.edits import Code, Edit, format_config_lines
from mmguard.findings.finding import LIKELY, POSSIBLE, PROVEN, Finding
from mmguard.findings.rule import ConfigRule, Example, Facts
from mmguard.findings.usual_edits import guard_losses, propose, set_ignore_index
from mmguard.findings.views import count_trained, has_valid_counts
from mmguard.text import quantity


class ClassWeightLength(ConfigRule):
    """Class weights whose number differs from the number that the head needs."""

    code = 'MG207'
    aliases = ('MG111',)
    summary = 'class_weight does not have one entry per class.'
    title = 'class_weight has {length}, but {head} needs {expected}{extra}.'
    title_list = 'class_weight is a list, but DETRHead takes a number, and bg_cls_weight for "no object".'
    title_sigmoid = (
        'With use_sigmoid=True the loss spreads class_weight over the width of the label map, not over the classes, '
        'and the run ends.'
    )
    why = (
        'The weights are looked up by label: with too few weights the run ends with an index error, and cross entropy '
        'fails unless there are as many weights as channels. MaskFormer-like heads and softmax bbox heads need one '
        'more entry, for "no object" (the background), at the end. DETRHead does not take a list.'
    )
    example = Example(wrong='num_classes=3, class_weight=[1, 2]', right='num_classes=3, class_weight=[1, 2, 1.5]')
    limits = 'It compares numbers: weights in the order of another class list are not detected.'
    advice = (
        'Write one weight per class in the order of the class list, plus one for "no object" at the end where the head '
        'has it.'
    )

    def look(self, config: ReadConfig) -> Iterator[Finding]:
        for loss in find_losses(config):
            path, given = loss.place('class_weight'), loss.config.get('class_weight')
            if not isinstance(given, (list, tuple)):
                continue
            expected, extra = count_expected_weights(loss)
            head = loss.owner
            if head is not None and head.name == 'DETRHead' and loss.key == 'loss_cls':
                edit = propose(
                    'Write a number for all classes, and one for "no object".',
                    *((path, 1.0), (loss.place('bg_cls_weight'), 0.1)),
                    question='Can all classes have the same weight?',
                    if_not='Use another head: DETRHead turns the number into `[1.0] * num_classes + [0.1]`.',
                )
                yield self.report_at(path, given, title=self.title_list, edits=[edit])
            elif is_sigmoid_of_maps(loss) and len(given) > 1:
                yield self.report_at(path, given, title=self.title_sigmoid, edits=_weigh_maps(config, loss))
            elif expected is not None and len(given) != expected:
                yield self._report_length(loss, given, expected, extra)

    def _report_length(self, loss: Part, given: Sequence[Any], expected: int, extra: str) -> Finding:
        new, follows = fit_weights(given, expected, extra)
        edit = propose(
            'Write as many weights as the head needs.',
            (loss.place('class_weight'), new),
            question='' if follows else 'Are these the class weights that you want?',
            lines=tuple(format_config_lines(((loss.place('class_weight'), Code(format_weights(new))),))),
            if_not='' if follows else 'Write the weight of each class.',
        )
        head = loss.owner.name if loss.owner else 'the head'
        words = dict(length=quantity(len(given), 'entry'), head=head, expected=expected, extra=extra)
        return self.report_at(loss.place('class_weight'), given, words, edits=[edit])


def _weigh_maps(config: ReadConfig, loss: Part) -> List[Edit]:
    """Return edits after which a sigmoid loss of label maps no longer spreads its weights."""
    unweighted = propose('Leave class_weight out.', (loss.place('class_weight'), None))
    if loss.owner is not None and get_output_channels(loss.owner) == 1:
        return [unweighted]
    # Softmax without a guard looks up the weight of ignored labels.
    guarded = guard_losses(config, [loss.path], 'Use softmax, which weighs classes.')
    softmax = ((loss.place('use_sigmoid'), False),)
    return [
        replace(
            guarded,
            question='Does each pixel have one class?',
            config=(*guarded.config, *softmax),  # the guard replaces the loss
            if_not='Leave class_weight out.',
        ),
        unweighted,
    ]


class WeightedIgnored(ConfigRule):
    """A look-up of class_weight[255] (F1) or class_weight[-1] (F2); in onedl's fork a mask of the wrong shape (F3)."""

    code = 'MG214'
    aliases = ('MG110', 'MG139', 'MG216')
    summary = (
        "MMSegmentation's CrossEntropyLoss with class_weight fails at the first ignored pixel, or averages wrongly."
    )
    title = 'The loss looks up class_weight[{ignored}] for every ignored pixel, and fails, even on correct labels.'
    title_filled = (
        'The loss looks up class_weight[{ignored}] for every ignored pixel, and fails, even on correct labels; '
        '{place} fills with {ignored}, even if no label map holds it.'
    )
    title_onedl = (
        "With avg_non_ignore=True the loss of onedl's mmseg masks the class weights with a mask of the wrong shape, "
        'and the run ends, even on correct labels.'
    )
    title_negative = (
        'class_weight[{ignored}] of {place}, the weight of a real class, is added to the denominator for every ignored '
        'pixel: the loss is too small.'
    )
    why = (
        'To average, the loss looks up class_weight[label] for every pixel, including ignored pixels (255): '
        'IndexError, on a GPU a device-side assert whose trace often points at accuracy(). Correct labels fail, too, '
        'and avg_non_ignore=True does not help: the look-up comes first. ignore_index=-1, a common workaround, counts '
        'the weight of the last class for every ignored pixel: the loss is too small (1.00 instead of 3.36 in our '
        'case). The onedl fork does not look up ignored pixels, but with avg_non_ignore=True its mask has the wrong '
        'shape, and every batch fails.'
    )
    example = Example(
        wrong="dict(type='CrossEntropyLoss', class_weight=[1.0, 2.0])",
        right="dict(type='GuardedCrossEntropyLoss', class_weight=[1.0, 2.0])",
    )
    limits = 'A run in which no pixel is ignored, not even as padding, does not fail.'
    advice = (
        "Write type='GuardedCrossEntropyLoss' with the same arguments, and custom_imports = dict(imports=['mmguard'], "
        'allow_failed_imports=False); an ignore_index below 0 becomes 255 again. The labels need no change: ignored '
        'pixels belong there.'
    )

    def look(self, config: ReadConfig) -> Iterator[Finding]:
        for loss in find_weighted_cross_entropies(config):
            place, weights = loss.place('class_weight'), loss.config['class_weight']
            ways = [guard_losses(config, [loss.path])]
            ignored = find_ignore_index(loss)
            length = len(weights) if isinstance(weights, (list, tuple)) else None
            if not weighs_ignored_labels():
                if loss.get('avg_non_ignore', False):
                    yield self.report_at(place, weights, title=self.title_onedl, edits=ways)
                continue
            head = loss.owner
            if ignored is not None and head is not None and -(length or 1) <= ignored < 0:
                words, ways = dict(ignored=ignored, place=loss.path), [_guard_all(config)]
                yield self.report_at(head.place('ignore_index'), ignored, words, self.title_negative, edits=ways)
                continue
            if ignored is None or (length is not None and -length <= ignored < length):
                continue
            filled = _find_fill(config, ignored)
            title = self.title_filled if filled else self.title
            yield self.report_at(place, weights, dict(ignored=ignored, place=filled), title, edits=ways)

    def certainty_given(self, finding: Finding, labels: LabelFacts) -> str:
        if labels.values:
            return POSSIBLE  # an invalid label may have ended it as well
        # If no file has one, padding adds some.
        return PROVEN if has_valid_counts(labels) and labels.ignore_index in count_trained(labels) else LIKELY


def _guard_all(config: ReadConfig) -> Edit:
    """Return an edit that guards the losses of all heads together, with a single ignored label."""
    weighted = [loss.path for loss in find_weighted_cross_entropies(config)]
    swap = guard_losses(config, weighted, 'Guard the loss, and ignore 255 again.')
    ignored = set_ignore_index(Facts(config=config), 255).config
    return replace(swap, config=(*ignored, *swap.config))


def _find_fill(config: ReadConfig, ignored: int) -> str:
    """Return the part of a config that adds ignored pixels, also to label maps without any; empty if none does."""
    places = find_ignored_labels(config)
    return next((place.path for place in places if place.role == 'fill' and place.value == ignored), '')
