"""Tests of a model's heads: their outputs, their class weights, their handling of ignored pixels, and their strides."""

from __future__ import annotations

import contextlib
import copy
import re
from functools import partial
from typing import Any, Callable, Dict, Iterator, List, Mapping, NamedTuple, Optional, Tuple

import torch
from mmengine.registry import MODELS
from torch import Tensor

from mmguard.config.tree import walk
from mmguard.properties.batches import choose_batch, ignore_half
from mmguard.properties.datasets import find_innermost, walk_objects
from mmguard.properties.program import MAX_ANNOTATIONS, SIDES, Program
from mmguard.properties.readings import read_samples
from mmguard.properties.result import DoesNotApply, Result, broken, mark_untested, note, ran
from mmguard.properties.runner import describe_failure, judge_failure
from mmguard.properties.samples import get_label_map
from mmguard.properties.scores import NO_OUTPUT, find_raised_outputs, judge_outputs, measure_share, walk_tensors
from mmguard.text import quantity

#: Pattern of the names of classification losses.
_OF_CLASSES = re.compile('cls|heatmap')
#: Weight of the tested class, and minimum ratio of the growth of its gradient to that of the other classes.
HEAVY, GROWN = 4.0, 1.5
#: Minimum width of a feature map whose stride is compared, and maximum ratio of its actual to its configured stride.
_SMALLEST, _TOLERANCE = 8, 1.6


class LossCall(NamedTuple):
    """Call of a loss module; ``output`` is ``None`` if the call raised an exception."""

    name: str
    args: Tuple[Any, ...]
    kwargs: Dict[str, Any]
    output: Any

    @property
    def scores(self) -> Optional[Tensor]:
        """First tensor argument that requires a gradient and has at least two axes, or ``None``."""
        tensors = walk_tensors((*self.args, *self.kwargs.values()))
        return next((one for one in tensors if one.requires_grad and one.dim() > 1), None)

    @property
    def labels(self) -> Optional[Tensor]:
        """First integer argument of shape (N, ...) for scores of shape (N, C, ...), or ``None``."""
        scores = self.scores
        shape = None if scores is None else (scores.shape[0], *scores.shape[2:])
        tensors = walk_tensors((*self.args, *self.kwargs.values()))
        return next((one for one in tensors if not one.is_floating_point() and one.shape == shape), None)

    def get_gradient(self) -> Optional[Tensor]:
        """Return the gradient of this loss with respect to its scores, or ``None`` if it does not train any scores."""
        scores, outputs = self.scores, [one for one in walk_tensors(self.output) if one.requires_grad]
        if scores is None or not outputs or not scores.numel():
            return None
        whole = sum((one.sum() for one in outputs), torch.zeros(()))
        return torch.autograd.grad(whole, scores, retain_graph=True, allow_unused=True)[0]


def find_losses(model: Any) -> Dict[str, Any]:
    """Return {name: module} of the losses of a model."""
    return {
        name: module
        for name, module in model.named_modules()
        if 'loss' in name and type(module).forward is not torch.nn.Module.forward and not list(module.children())
    }


class _AllCalled(Exception):
    """Exception that ends a forward pass once every recorded module has been called."""


@contextlib.contextmanager
def record_calls(modules: Mapping[str, Any], stops: bool = False) -> Iterator[List[LossCall]]:
    """Record the calls of modules by replacing forward, since heads of mmseg bypass PyTorch's module hooks.

    If ``stops`` is true, end the ``with`` block once every module has been called.
    """
    calls: List[LossCall] = []

    def run(name: str, forward: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        output = None
        try:
            output = forward(*args, **kwargs)
            return output
        finally:
            calls.append(LossCall(name, args, kwargs, output))
            if stops and len({call.name for call in calls}) == len(modules):
                raise _AllCalled

    with contextlib.ExitStack() as undo, contextlib.suppress(_AllCalled):
        for name, module in modules.items():
            module.forward = partial(run, name, module.forward)
            undo.callback(delattr, module, 'forward')
        yield calls


def check_outputs(program: Program) -> List[Result]:
    """Train on a few classes, and check that the gradient of each class raises the output of this class."""
    classes = program.choose_classes()
    if len(classes) < 2:
        raise DoesNotApply('there is only one class')
    if program.is_slow():
        classes = [classes[0], classes[-1]]
    found = _find_outputs(program, classes, 0)
    if not found:
        raise DoesNotApply('no loss gets scores with a class axis')
    if any(output not in (None, label) for one in found.values() for label, output in one.items()):
        again = _find_outputs(program, classes, 1)  # other images, for confirmation
        for place, one in found.items():
            other = again.get(place, {})
            found[place] = {label: output if other.get(label) == output else None for label, output in one.items()}
    where = f'{len(classes)} of {program.num_classes} labels on {program.describe_made_up()}'
    return [judge_outputs(place, one, where, program.get_class_names()) for place, one in found.items()]


def _find_outputs(program: Program, classes: List[int], seed: int) -> Dict[str, Dict[int, Optional[int]]]:
    """Return {loss: {label: output that the label's gradient raises most}}; the output is ``None`` if unclear."""
    tables = _sum_by_pixel(program, classes, seed) if program.kind == 'pixels' else {}
    found = {}
    for name, rows in (tables or _sum_by_image(program, classes, seed)).items():
        if len(rows) == len(classes):
            table = torch.stack(list(rows.values()))
            idle = bool(table.any()) & ~table.any(1)
            outputs = [NO_OUTPUT if zero else one for zero, one in zip(idle.tolist(), find_raised_outputs(table))]
            found[name] = dict(zip(classes, outputs))
    return found


def _sum_by_pixel(program: Program, classes: List[int], seed: int) -> Dict[str, Dict[int, Tensor]]:
    """Return {loss: {label: negative part of each output's gradient, summed over the label's pixels}} for a batch."""
    samples = program.build_samples(program.find_side(), classes, seed)
    truth = torch.cat([get_label_map(one['data_samples']) for one in samples]).to(program.device)
    tables = {}
    with record_calls(find_losses(program.build_model())) as calls:
        program.compute_losses(samples)
    for call in calls:
        gradient = call.get_gradient()
        if gradient is not None and gradient.shape == (len(truth), program.num_classes, *truth.shape[1:]):
            raised = gradient.clamp(max=0)
            tables[call.name] = {label: (raised * (truth == label)[:, None]).sum((0, 2, 3)) for label in classes}
    return tables


def _sum_by_image(program: Program, classes: List[int], seed: int) -> Dict[str, Dict[int, Tensor]]:
    """Return {loss: {label: negative part of each output's gradient}} of images of one class; compute features once."""
    side, model = program.find_side(), program.build_model()
    losses = {name: one for name, one in find_losses(model).items() if _OF_CLASSES.search(name.rpartition('.')[2])}
    tables: Dict[str, Dict[int, Tensor]] = {}
    box = (side * 0.25, side * 0.3, side * 0.75, side * 0.7)
    extract: Any = getattr(model, 'extract_feat', None)
    features: List[Any] = []

    def extract_once(*args: Any, **kwargs: Any) -> Any:
        if not features:
            with torch.no_grad():
                features.append(extract(*args, **kwargs))
        return copy.deepcopy(features[0])  # heads change them in place

    with contextlib.ExitStack() as undo:
        if extract is not None:
            model.extract_feat = extract_once
            undo.callback(delattr, model, 'extract_feat')
        for label in classes:
            if program.kind == 'pixels':  # two, for BatchNorm after a global pooling
                samples = [program.build_pixels(label, side, 2 * seed + number) for number in (0, 1)]
            else:
                samples = [program.build_instances([box], [label], side, seed)]
            with record_calls(losses) as calls:
                program.compute_losses(samples)
            for call in calls:
                gradient, rows = call.get_gradient(), tables.setdefault(call.name, {})
                for axis in (-1, 1):
                    # The last output may be the background; the lowered outputs depend on the chosen anchors.
                    if gradient is not None and gradient.shape[axis] - program.num_classes in (0, 1):
                        row = gradient.clamp(max=0).movedim(axis, -1).flatten(0, -2).sum(0)
                        rows[label] = rows[label] + row if label in rows else row
                        break
    return tables


def check_weights(program: Program) -> List[Result]:
    """Check for each weighted loss that a larger weight of a class increases the gradient of this class."""
    modules, weighted = dict(program.build_model().named_modules()), {}
    for path, node in walk(program.config.model):
        if isinstance(node.get('class_weight'), (list, tuple, str)):
            name = '.'.join(map(str, path))
            weighted[name if name in modules else f'{name}.0'] = node
    if not weighted:
        raise DoesNotApply('no loss has class weights')
    classes = program.choose_classes()
    try:
        side = program.find_side()
    except Exception:  # the losses fail, perhaps because of the weights
        side = SIDES['mmdet'][0]
    with record_calls({place: modules[place] for place in weighted if place in modules}) as calls:
        try:
            program.compute_losses(program.build_samples(side, classes))
        except Exception as error:
            if not calls:  # heads read weights, too
                return [judge_failure(', '.join(weighted), error)]
    found = {call.name: call for call in calls if call.labels is not None}
    with program.scope():
        return [
            _judge_weights(place, node, modules.get(place), found.get(place), classes)
            for place, node in weighted.items()
        ]


def _judge_weights(place: str, node: Any, module: Any, call: Optional[LossCall], classes: List[int]) -> Result:
    scores, labels = (call.scores, call.labels) if call else (None, None)
    if call is None or scores is None or labels is None:
        return mark_untested(place, 'the loss is not called with scores and integer labels')
    known = getattr(module, 'class_weight', None)
    number = len(node['class_weight'] if known is None or isinstance(known, (str, float)) else known)
    outputs = scores.shape[1]
    present = [label for label in classes if label < outputs and bool(labels.eq(label).any())]
    if len(present) < 2:
        return mark_untested(place, 'all labels are of one class')

    def train(heavy_class: Optional[int]) -> Tensor:
        weights = [HEAVY if label == heavy_class else 1.0 for label in range(number)]
        loss = MODELS.build({**copy.deepcopy(node), 'class_weight': weights})
        gradient = call._replace(output=loss(*call.args, **call.kwargs)).get_gradient()
        moved = (torch.zeros_like(scores) if gradient is None else gradient).movedim(1, -1)
        own = [moved[labels.eq(label)][:, label].abs().sum() for label in present]
        return torch.stack(own).double().clamp(min=1e-30)

    try:
        usual = train(None)
        grown = {label: train(label) / usual for label in present if label < number}
    except Exception as error:
        failure = describe_failure(error)
        return broken(place, f'{number} class weights for {outputs} outputs: {failure}', dict(failure=failure))
    acts: Dict[str, Optional[int]] = {}
    for label, ratios in grown.items():
        ordered = ratios.sort(descending=True)
        is_clear = ordered.values[0] > GROWN * ordered.values[1]
        acts[str(label)] = present[int(ordered.indices[0])] if is_clear else None
    wrong = [f'the weight of label {a} acts on label {b}' for a, b in acts.items() if b is not None and str(b) != a]
    if wrong or all(bool((ratios - 1).abs().max() < 1e-6) for ratios in grown.values()):
        return broken(place, '; '.join(wrong) or 'class_weight changes nothing', dict(acts=acts))
    if None in acts.values():
        return mark_untested(place, 'the weights act on several classes at once')
    if number < outputs:
        return note(place, f'{number} class weights for {outputs} outputs', dict(acts=acts))
    return ran(place, f'a weight of {HEAVY:g} for each of {quantity(len(acts), "class", "classes")}', dict(acts=acts))


def check_ignored(program: Program) -> List[Result]:
    """Check that ignored pixels get no gradient. Without label maps, report ignored objects trained as background."""
    if not program.has_label_map:
        leaves = find_innermost(program.build_dataset('train')) if program.samples else []
        flags = [bool(one.get('ignore_flag')) for leaf in leaves for one in walk_objects(leaf, MAX_ANNOTATIONS)]
        words = f'{sum(flags):,} of {len(flags):,} objects of your data are ignored'
        if not any(flags):
            raise DoesNotApply('your data have no ignored objects')
        if any(node.get('ignore_iof_thr', -1) > 0 for _, node in walk(program.config.model)):
            return [ran('crowds', f'{words}, and excluded by ignore_iof_thr')]
        return [note('crowds', f'{words}: no assigner has an ignore_iof_thr above 0, so they train as background')]
    model, (data, where, _), readings = program.build_model(), choose_batch(program), read_samples(program, 'train')
    ignored = sum(one.ignored for one in readings) / max(1, len(readings))
    seen = f'{ignored:.2%} of the pixels are ignored in {len(readings)} loads of your data'
    blame = broken if ignored else note
    results = []
    with record_calls(find_losses(model)) as calls:
        try:
            program.compute_batch(ignore_half(program, data))
        except Exception as error:
            try:
                program.compute_batch(copy.deepcopy(data))
            except Exception as usual:
                return [judge_failure('the losses of an unchanged batch', usual)]
            failure = describe_failure(error)
            return [blame('the losses', f'fail if pixels are ignored: {failure}; {seen}', dict(failure=failure))]
    for call in calls:
        gradient, labels = call.get_gradient(), call.labels
        if gradient is None or labels is None or not bool((labels == program.ignore_index).any()):
            continue
        share = measure_share(gradient, labels == program.ignore_index)
        if share:
            words = f'ignored pixels have up to {share:.2g} times the gradient of the others; {seen}'
            results.append(blame(call.name, words, dict(share=share, ignored=ignored)))
        elif ignored and getattr(model.get_submodule(call.name), 'avg_non_ignore', True) is False:
            words = f'ignored pixels count in the average (avg_non_ignore=True leaves them out); {seen}'
            results.append(note(call.name, words, dict(ignored=ignored)))
        else:
            results.append(ran(call.name, f'half of each image was ignored: {where}'))
    if not results:
        raise DoesNotApply('no loss gets scores and a label map')
    return results


def check_strides(program: Program) -> List[Result]:
    """Compare the strides of priors and region extractors with the sizes of their feature maps."""
    model = program.build_model()
    strides = {name: found for name, one in model.named_modules() if name for found in [_get_strides(one)] if found}
    if not strides:
        raise DoesNotApply('the model has no anchors or points with strides and no region extractor')
    width = program.find_side()
    named = {name: one for name, one in model.named_modules() if name in {*strides, 'backbone'}}
    with record_calls(named, stops=True) as calls:
        program.compute_losses(program.build_samples(width))
    results: Dict[str, Result] = {}
    for call in calls:
        name, maps = call.name, [tensor for tensor in walk_tensors(call.args[:1]) if tensor.dim() == 4]
        if name == 'backbone':
            width = maps[0].shape[-1] if maps else width  # some preprocessors resize the batch
        elif maps:
            sizes = [(stride, level.shape[-1]) for stride, level in zip(strides[name], maps)]
            seen = [(stride, width / size) for stride, size in sizes if size >= _SMALLEST]
            wrong = [
                f'level {level} has stride {stride}, but its feature map is 1/{actual:.0f} of the image'
                for level, (stride, actual) in enumerate(seen)
                if not 1 / _TOLERANCE < actual / stride < _TOLERANCE
            ]
            where = f'{quantity(len(seen), "level")} on {program.describe_made_up()}'
            results[name] = broken(name, '; '.join(wrong[:4]), dict(strides=seen)) if wrong else ran(name, where)
    if not results:
        raise DoesNotApply('no prior generator or region extractor with strides received feature maps')
    return list(results.values())


def _get_strides(module: Any) -> List[int]:
    """Return the strides of a head's priors or of a region extractor, one per level; [] for other modules."""
    priors = getattr(module, 'prior_generator', None)
    strides = getattr(module, 'featmap_strides', None) or getattr(priors, 'strides', None)
    strides = strides if isinstance(strides, (list, tuple)) else ()
    return [int(one[0]) if isinstance(one, (list, tuple)) else int(one) for one in strides]
