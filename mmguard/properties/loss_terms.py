"""Properties of losses called on their own: class weights act on their class, averages exclude ignored elements."""

from __future__ import annotations

import copy
from typing import Any, Dict, List, NamedTuple, Optional, Tuple

import torch
from mmengine.registry import MODELS
from torch import Tensor

from mmguard.config.changes import walk
from mmguard.properties.program import SIDES, Program
from mmguard.properties.readings import measure_ignored
from mmguard.properties.result import DoesNotApply, Result, broken, mark_untested, note, ran
from mmguard.properties.runner import describe_failure
from mmguard.properties.scores import Call, record_calls
from mmguard.text import quantity

#: Weight of the tested class, and the minimum growth, relative to the other classes, that rounding cannot explain.
HEAVY, GROWN = 4.0, 1.5
#: Minimum ratio of the average of a half-ignored batch to that of its valid half if only the latter is counted.
UNDILUTED = 0.75


def check_weights(program: Program) -> List[Result]:
    """Build each weighted loss with another weight per class, and find the class whose scores it trains more."""
    modules = dict(program.build_model().named_modules())
    results, weighted = [], {}
    for path, node in walk(program.config.model):
        if isinstance(node.get('class_weight'), (list, tuple, str)):
            name = '.'.join(map(str, path))
            place = name if name in modules else f'{name}.0'
            if place in modules:
                weighted[place] = node
            else:
                results.append(mark_untested(name, 'the model has no module of this name'))
    if not weighted and not results:
        raise DoesNotApply('no loss has class weights')
    classes = program.choose_classes()
    try:
        side = program.find_side()
    except Exception:  # the losses fail, perhaps because of the weights
        side = SIDES['mmdet'][0]
    try:
        calls = _record(program, {place: modules[place] for place in weighted}, program.build_samples(classes, side, 2))
    except Exception as error:  # raised before a loss was called: heads also read weights
        _grow_weights(program)
        failure = describe_failure(error)
        evidence = f'fails with these class weights, but trains with one more entry: {failure}'
        return [*results, *(broken(place, evidence, dict(failure=failure)) for place in weighted)]
    for place, node in weighted.items():
        with program.scope():
            results.append(_judge_weights(place, node, modules[place], calls.get(place), classes))
    return results


def _grow_weights(program: Program) -> None:
    """Build a program with one more entry in all class weights; raise its exception if it fails to train."""
    tree = program.config.to_dict()
    for _, node in walk(tree['model']):
        if isinstance(node.get('class_weight'), (list, tuple)):
            node['class_weight'] = [*node['class_weight'], 1.0]
    Program(tree, program.device, program.samples).find_side()


class LossCall(NamedTuple):
    """Call of a loss with scores of shape (N, C, ...) and integer labels of shape (N, ...)."""

    call: Call
    scores: Tensor
    labels: Tensor

    def repeat(self, loss: Any, columns: slice = slice(None)) -> Tuple[Tensor, Tensor]:
        """Call another loss with some of the columns, and return its sum and the gradient of the scores."""
        leaf = self.scores[..., columns].detach().requires_grad_()

        def change(value: Any) -> Any:
            if value is self.scores:
                return leaf
            is_map = torch.is_tensor(value) and columns != slice(None) and value.shape[-2:] == self.labels.shape[-2:]
            return value[..., columns] if is_map else value

        value = loss(*map(change, self.call.args), **{key: change(one) for key, one in self.call.kwargs.items()}).sum()
        return value, torch.autograd.grad(value, leaf)[0]


def _record(program: Program, modules: Dict[str, Any], samples: List[Any]) -> Dict[str, LossCall]:
    """Return the last call of each loss that takes scores and integer labels, including one that failed."""
    with record_calls(modules) as calls:
        try:
            program.compute_losses(samples, samples[0]['inputs'].shape[-1])
        except Exception:
            if not calls:
                raise
    found = {}
    for call in calls:
        tensors = [one for one in (*call.args, *call.kwargs.values()) if torch.is_tensor(one) and one.numel()]
        for scores in [one for one in tensors if one.is_floating_point() and one.dim() > 1][:1]:
            shape = (scores.shape[0], *scores.shape[2:])
            for labels in [one for one in tensors if not one.is_floating_point() and one.shape == shape][:1]:
                found[call.name] = LossCall(call, scores, labels)
    return found


def _judge_weights(place: str, node: Any, module: Any, call: Optional[LossCall], classes: List[int]) -> Result:
    if call is None:
        return mark_untested(place, 'it is not called with scores and integer labels')
    scores, labels = call.scores, call.labels
    known = getattr(module, 'class_weight', None)
    known = node['class_weight'] if known is None or isinstance(known, (str, float)) else known
    number, outputs = len(known), scores.shape[1]
    present = [label for label in classes if label < outputs and bool((labels == label).any())]

    def train(heavy_class: Optional[int]) -> Tensor:
        weights = [HEAVY if label == heavy_class else 1.0 for label in range(number)]
        _, gradient = call.repeat(MODELS.build({**copy.deepcopy(node), 'class_weight': weights}))
        own = [gradient.movedim(1, -1)[labels == label][:, label].abs().sum() for label in present]
        return torch.stack(own).double().clamp(min=1e-30)

    try:
        usual = train(None)
        grown = {label: train(label) / usual for label in present if label < number}
    except Exception as error:
        failure = describe_failure(error)
        return broken(place, f'{number} class weights for {outputs} outputs: {failure}', dict(failure=failure))
    if len(present) < 2:
        return mark_untested(place, 'its labels are of one class')
    acts: Dict[str, Optional[int]] = {}
    for label, ratios in grown.items():
        ordered = ratios.sort(descending=True)
        is_clear = ordered.values[0] > GROWN * ordered.values[1]
        acts[str(label)] = present[int(ordered.indices[0])] if is_clear else None
    wrong = [f'the weight of label {a} acts on label {b}' for a, b in acts.items() if b is not None and str(b) != a]
    if wrong:
        return broken(place, '; '.join(wrong), dict(acts=acts))
    if all(bool((ratios - 1).abs().max() < 1e-6) for ratios in grown.values()):
        return broken(place, 'class_weight changes nothing', dict(acts=acts))
    if None in acts.values():
        return mark_untested(place, 'its weights act on several classes at once')
    if number < outputs:
        return note(place, f'{number} class weights for {outputs} outputs', dict(acts=acts))
    return ran(place, f'a weight of {HEAVY:g} for each of {quantity(len(acts), "class", "classes")}', dict(acts=acts))


def check_averages(program: Program) -> List[Result]:
    """Compare the loss of a half-ignored batch with that of its valid half; name ignored objects that train."""
    results = _check_crowds(program) if program.kind == 'instances' else []
    if program.has_label_map:
        results += _check_pixels(program)
    if not results:
        raise DoesNotApply('no loss takes scores and a label map, and no assigner uses ignored boxes')
    return results


def _check_pixels(program: Program) -> List[Result]:
    modules = {
        name: module
        for name, module in program.build_model().named_modules()
        if 'loss' in name and type(module).forward is not torch.nn.Module.forward and not list(module.children())
    }
    side = program.find_side()
    results, failed = [], []
    for name, called in _record(program, modules, program.build_half_ignored(side)).items():
        is_map = called.scores.dim() == 4 and bool((called.labels == program.ignore_index).any())
        if called.call.output is None or not is_map:
            failed += [name] if is_map else []
            continue
        whole, half = (called.repeat(modules[name], slice(first, None))[0] for first in (0, side // 2))
        if half <= 0 or whole >= UNDILUTED * half:
            results.append(ran(name, f'half of {program.describe_made_up()} ignored'))
            continue
        ignored, words = measure_ignored(program)
        words = f'ignored pixels count in its average; {words}'
        if getattr(modules[name], 'avg_non_ignore', None):
            judge = broken if ignored else note
            results.append(judge(name, f'{words}, and avg_non_ignore=True asks for another average'))
        elif ignored:
            way = ' (avg_non_ignore=True leaves them out)' if hasattr(modules[name], 'avg_non_ignore') else ''
            results.append(note(name, words + way, dict(ignored=ignored)))
        else:
            results.append(ran(name, f'half of {program.describe_made_up()} ignored: they count; {words}'))
    if failed and not results:
        results.append(mark_untested('averages', f'{", ".join(failed[:3])} fails where pixels are ignored'))
    return results


def _check_crowds(program: Program) -> List[Result]:
    """Name the share of ignored objects: they train as background unless an assigner ignores them."""
    share, words = measure_ignored(program)
    asked: Dict[str, Any] = {}
    for name, module in program.build_model().named_modules():
        for assigner in (getattr(module, 'assigner', None), getattr(module, 'bbox_assigner', None)):
            for one in assigner if isinstance(assigner, list) else [assigner]:
                if one is not None and hasattr(one, 'ignore_iof_thr'):
                    asked[name] = one.ignore_iof_thr
    if program.has_label_map or not share:
        return [ran(name, words) for name in asked]
    if not asked:
        return [note('crowds', f'{words}: this model has no ignore_iof_thr, so they train as background')]
    training = [f'{name} (ignore_iof_thr={value})' for name, value in asked.items() if value <= 0]
    if training:
        return [note('crowds', f'{words}: they train as background of {", ".join(training[:3])}')]
    return [ran(name, f'{words}, and left out') for name in asked]
