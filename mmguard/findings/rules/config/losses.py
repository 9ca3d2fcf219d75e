"""Rules about losses that fail, or learn wrongly, due to their class weights or the number of output channels."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Iterator, List, Sequence

from mmguard.compat.stack import weighs_ignored_labels
from mmguard.config.agreement import find_class_counts, find_ignored_labels
from mmguard.config.changes import REMOVED
from mmguard.config.losses import (
    count_expected_weights,
    find_ignore_index,
    find_one_channel_softmax,
    find_weighted_cross_entropies,
    fit_weights,
    format_weights,
    get_output_channels,
    is_sigmoid_of_maps,
    is_softmax,
)
from mmguard.config.parts import (
    Part,
    find_datasets,
    find_head_losses,
    find_heads,
    find_losses,
    find_metrics,
    get_class_names,
    get_classes_path,
)
from mmguard.config.read import ReadConfig
from mmguard.facts.labels import LabelFacts
from mmguard.findings.config_edits import (
    add_dependent_settings,
    guard_losses,
    propose,
    set_classes,
    set_ignore_index,
    state_num_classes,
)
from mmguard.findings.edits import Code, Edit, format_config_lines
from mmguard.findings.finding import LIKELY, POSSIBLE, PROVEN, WARNING, Finding
from mmguard.findings.rule import ConfigRule, Example, Facts
from mmguard.findings.views import count_trained
from mmguard.language import Message
from mmguard.text import quantity


class ClassWeightLength(ConfigRule):
    code = 'MG207'
    aliases = ('MG111',)
    summary = 'class_weight does not have one entry per class.'
    title = 'class_weight has {length}, but {head} needs {expected}{extra}.'
    title_list = 'class_weight is a list, but DETRHead expects one number, and bg_cls_weight for "no object".'
    title_sigmoid = (
        'With use_sigmoid=True the loss broadcasts class_weight over the width of the label map instead of the '
        'classes, and the run fails.'
    )
    why = (
        'The weights are looked up by label: with too few weights the run ends with an index error, and cross entropy '
        'fails unless there are as many weights as channels. MaskFormer-like heads and softmax bbox heads need one '
        'more entry, for "no object" (the background), at the end. DETRHead does not take a list.'
    )
    example = Example(wrong='num_classes=3, class_weight=[1, 2]', right='num_classes=3, class_weight=[1, 2, 1.5]')
    limits = 'Only the number of weights is checked: weights in the order of another class list are not detected.'
    advice = (
        'Write one weight per class in the order of the class list, plus one for "no object" at the end if the head '
        'predicts "no object".'
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
                    'Write one weight for all classes, and a second for "no object".',
                    *((path, 1.0), (loss.place('bg_cls_weight'), 0.1)),
                    question='Can all classes have the same weight?',
                    if_not='Use another head: DETRHead gives all classes equal weight (`[1.0] * num_classes + [0.1]`).',
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
    """Return edits that turn a weighted sigmoid loss into a guarded softmax loss, or remove its class_weight."""
    unweighted = propose('Leave class_weight out.', (loss.place('class_weight'), None))
    if loss.owner is not None and get_output_channels(loss.owner) == 1:
        return [unweighted]
    # Softmax without a guard looks up the weight of ignored labels.
    guarded = guard_losses(config, [loss.path], 'Use softmax, which takes one weight per class.')
    softmax = ((loss.place('use_sigmoid'), False),)
    return [
        replace(
            guarded,
            question='Does each pixel belong to exactly one class?',
            config=(*guarded.config, *softmax),  # the guard replaces the loss
            if_not='Leave class_weight out.',
        ),
        unweighted,
    ]


class WeightedIgnored(ConfigRule):
    code = 'MG214'
    aliases = ('MG110', 'MG139', 'MG216')
    summary = (
        "MMSegmentation's CrossEntropyLoss with class_weight fails at the first ignored pixel, or averages wrongly."
    )
    title = 'The loss looks up class_weight[{ignored}] for every ignored pixel, and fails, even on correct labels.'
    title_filled = (
        'The loss looks up class_weight[{ignored}] for every ignored pixel, and fails, even on correct labels. '
        '{place} fills pixels with {ignored}, even if no label map contains this value.'
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
        'To average, the loss looks up class_weight[label] for every pixel, including ignored pixels (255). This '
        'raises an IndexError, or on a GPU a device-side assert whose trace often points at accuracy(). Correct labels '
        'fail, too, and avg_non_ignore=True does not help, because the look-up comes first. With ignore_index=-1, a '
        'common workaround, every ignored pixel counts with the weight of the last class: the loss is too small (1.00 '
        'instead of 3.36 in one test). The onedl fork does not look up ignored pixels, but with avg_non_ignore=True '
        'its mask has the wrong shape, and every batch fails.'
    )
    example = Example(
        wrong="dict(type='CrossEntropyLoss', class_weight=[1.0, 2.0])",
        right="dict(type='GuardedCrossEntropyLoss', class_weight=[1.0, 2.0])",
    )
    limits = 'A run does not fail if neither the labels nor the padding contain ignored pixels.'
    advice = (
        "Write type='GuardedCrossEntropyLoss' with the same arguments, and custom_imports = dict(imports=['mmguard'], "
        'allow_failed_imports=False); change a negative ignore_index back to 255. Do not change the labels: ignored '
        'pixels are correct.'
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
            return POSSIBLE  # an invalid label may have ended the run as well
        # Even if no file has ignored pixels, padding adds some.
        return PROVEN if labels.histogram and labels.ignore_index in count_trained(labels) else LIKELY


def _guard_all(config: ReadConfig) -> Edit:
    """Return an edit that guards the weighted losses of all heads, and makes the config ignore 255 everywhere."""
    weighted = [loss.path for loss in find_weighted_cross_entropies(config)]
    swap = guard_losses(config, weighted, 'Guard the loss, and ignore 255 again.')
    ignored = set_ignore_index(Facts(config=config), 255).config
    return replace(swap, config=(*ignored, *swap.config))


def _find_fill(config: ReadConfig, ignored: int) -> str:
    """Return the config path of a transform that fills pixels with ``ignored``, or '' if no transform does."""
    places = find_ignored_labels(config)
    return next((place.path for place in places if place.role == 'fill' and place.value == ignored), '')


class BinaryLovasz(ConfigRule):
    code = 'MG235'
    summary = "LovaszLoss(loss_type='binary') needs one output channel."
    title = "LovaszLoss(loss_type='binary') takes one output channel, but the head has {channels}."
    why = (
        'The loss flattens the scores of all channels, but the label map has one value per pixel: the sizes differ, '
        'and the first batch ends with an IndexError.'
    )
    example = Example(
        wrong="num_classes=2, loss_decode=dict(type='LovaszLoss', loss_type='binary')",
        right="num_classes=2, loss_decode=dict(type='LovaszLoss', loss_type='multi_class')",
    )
    limits = 'Binary losses of your own are not checked.'
    advice = "Write loss_type='multi_class' in the loss, or out_channels=1 in the head."

    def look(self, config: ReadConfig) -> Iterator[Finding]:
        for head in find_heads(config):
            channels = get_output_channels(head)
            for loss in find_head_losses(config, head) if channels > 1 else ():
                if loss.name.endswith('LovaszLoss') and loss.config.get('loss_type') == 'binary':
                    place = loss.place('loss_type')
                    asked = 'Does each pixel have one of several classes?'
                    otherwise = 'Write out_channels=1 in the head.'
                    edit = propose(
                        "Use loss_type='multi_class'.", (place, 'multi_class'), question=asked, if_not=otherwise
                    )
                    yield self.report_at(place, 'binary', {'channels': channels}, edits=[edit])


class OneChannelSoftmax(ConfigRule):
    code = 'MG215'
    follows = ('MG102', 'MG107')
    looks_at = ('config', 'labels')
    kinds = ('pixels',)
    aliases = ('MG112',)
    summary = 'A head has one output channel, but its loss is a softmax loss, or the metric counts only one class.'
    title = '{loss} at {place} takes a softmax over a single channel, which is always 1.'
    title_labels = 'The labels are 0 and 1, but num_classes is 1: one channel without a sigmoid accepts only label 0.'
    title_metric = 'IoUMetric counts a single class, {name}, so a model that predicts only background gets a high IoU.'
    why = (
        'The softmax of a single channel is 1 for any input: the loss of label 0 is always 0, and label 1 raises an '
        'index error (CUDA assert). With a sigmoid the model learns, but masks of 0 and 1 have two classes: if only '
        'one is listed, IoUMetric counts every pixel as that class, and predicting only background gets a high IoU.'
    )
    example = Example(
        wrong="num_classes=1, loss_decode=dict(type='CrossEntropyLoss')",
        right="num_classes=2, loss_decode=dict(type='CrossEntropyLoss')",
    )
    limits = 'A head with one channel is not checked if its loss is your own.'
    advice = (
        'Train two channels (num_classes=2, without out_channels), or one with a sigmoid (num_classes=2, '
        'out_channels=1, use_sigmoid=True in the loss). In both cases the class list must name the background, too.'
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
        """Yield findings about class lists with one name, if IoUMetric evaluates a head with one output channel."""
        ones = _find_heads_of_one_class(config)
        if config.scope != 'mmseg' or not ones or not any(metric.is_a('IoUMetric') for metric in find_metrics(config)):
            return
        places = (('num_classes', 2), ('out_channels', 1))
        changes = ((head.place(key), number) for head in ones for key, number in places)
        way = propose('Count the background as a class, and keep one output channel.', *changes)
        for dataset in find_datasets(config):
            names = get_class_names(dataset) or ()
            if dataset.split != 'train' and len(names) == 1:
                words, ways = dict(name=names[0]), _name_background(config, names, [way])
                yield self.report_at(get_classes_path(dataset), names, words, self.title_metric, WARNING, ways)

    def look_in_labels(self, labels: LabelFacts) -> Iterator[Finding]:
        if labels.num_classes == 1 and set(labels.values) == {1}:
            question = 'Does the model take a softmax over the classes (cross entropy)?'
            one = 'With a sigmoid over one output, 0 and 1 are right: change nothing, and scan with `--num-classes 2`.'
            two = state_num_classes(Edit('Train two classes, including the background.', question, if_not=one), 2)
            yield self.report_at('num_classes', 1, title=self.title_labels, edits=[two])


def _offer_ways(config: ReadConfig) -> List[Edit]:
    """Return edits that give all heads two classes, in one channel with a sigmoid or in two with a softmax."""
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
    if len(names) == 1:
        return _name_background(config, names, ways)
    return [add_dependent_settings(config, way) for way in ways]


def _find_heads_of_one_class(config: ReadConfig) -> List[Part]:
    return [count.head for count in find_class_counts(config) if count.kind == 'all' and count.value == 1]


def _name_background(config: ReadConfig, names: Sequence[str], ways: Sequence[Edit]) -> List[Edit]:
    """Return ``ways`` with 'background' added to the class list, and a question about the values in the files."""
    more = set_classes(Facts(config=config), ('background', *names)).config
    asked = 'Is 0 the background in the files, and 1 the object?'
    named = (replace(way, question=asked, config=(*way.config, *more)) for way in ways)
    return [add_dependent_settings(config, way) for way in named]


class SamplerOneChannel(ConfigRule):
    code = 'MG240'
    follows = ('MG102', 'MG107', 'MG215')
    summary = 'A head with one output channel uses OHEMPixelSampler with thresh.'
    title = 'OHEMPixelSampler at {place} gathers by label from the single channel of {head}: label 1 is out of range.'
    why = (
        'With `thresh` the sampler takes a softmax over the channels, whatever the loss is, and gathers by label: '
        'with one channel, label 1 raises an index error (CUDA assert), even with a sigmoid loss.'
    )
    example = Example(
        wrong="num_classes=2, out_channels=1, sampler=dict(type='OHEMPixelSampler', thresh=0.7)",
        right="num_classes=2, sampler=dict(type='OHEMPixelSampler', thresh=0.7)",
    )
    limits = 'Edits are offered only if every loss of the head is a cross entropy.'
    advice = 'Remove the sampler, or write num_classes=2, remove out_channels, and set use_sigmoid=False in the losses.'

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
    """Yield an edit that uses one channel and no sampler, and an edit that uses two channels and the sampler."""
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
