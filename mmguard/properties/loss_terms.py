"""Properties of losses: class weights act on their own class, ignored elements are excluded."""

from __future__ import annotations

import copy
from typing import Any, Dict, List, Optional

import torch
from mmengine.registry import MODELS
from torch import Tensor

from mmguard.config.tree import walk
from mmguard.properties.batches import choose_batch, ignore_half
from mmguard.properties.program import SIDES, Program
from mmguard.properties.readings import measure_ignored
from mmguard.properties.result import DoesNotApply, Result, broken, mark_untested, note, ran
from mmguard.properties.runner import describe_failure, judge_failure
from mmguard.properties.scores import ROUNDING, LossCall, find_losses, measure_share, record_calls
from mmguard.text import quantity

#: Weight of the tested class, and the minimum growth, relative to the other classes, that rounding cannot explain.
HEAVY, GROWN = 4.0, 1.5


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
    samples = program.build_samples(classes, side, 2)
    with record_calls({place: modules[place] for place in weighted}) as calls:
        try:
            program.compute_losses(samples, side)
        except Exception as error:
            if not calls:  # heads read weights, too
                return [*results, judge_failure(', '.join(weighted), error)]
    found = {call.name: call for call in calls if call.labels is not None}
    for place, node in weighted.items():
        with program.scope():
            results.append(_judge_weights(place, node, modules[place], found.get(place), classes))
    return results


def _judge_weights(place: str, node: Any, module: Any, call: Optional[LossCall], classes: List[int]) -> Result:
    scores, labels = (call.scores, call.labels) if call else (None, None)
    if call is None or scores is None or labels is None:
        return mark_untested(place, 'it is not called with scores and integer labels')
    known = getattr(module, 'class_weight', None)
    known = node['class_weight'] if known is None or isinstance(known, (str, float)) else known
    number, outputs = len(known), scores.shape[1]
    present = [label for label in classes if label < outputs and bool(labels.eq(label).any())]
    if len(present) < 2:
        return mark_untested(place, 'its labels are of one class')

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
    if wrong:
        return broken(place, '; '.join(wrong), dict(acts=acts))
    if all(bool((ratios - 1).abs().max() < 1e-6) for ratios in grown.values()):
        return broken(place, 'class_weight changes nothing', dict(acts=acts))
    if None in acts.values():
        return mark_untested(place, 'its weights act on several classes at once')
    if number < outputs:
        return note(place, f'{number} class weights for {outputs} outputs', dict(acts=acts))
    return ran(place, f'a weight of {HEAVY:g} for each of {quantity(len(acts), "class", "classes")}', dict(acts=acts))


def check_ignored(program: Program) -> List[Result]:
    """Ignore half of each image, and check the gradient of the scores there; name ignored objects that train."""
    results = _check_crowds(program) if program.kind == 'instances' else []
    if program.has_label_map:
        results += _check_pixels(program)
    if not results:
        reason = (
            'no loss is given scores and a label map' if program.has_label_map else 'your data have no ignored objects'
        )
        raise DoesNotApply(reason)
    return results


def _check_pixels(program: Program) -> List[Result]:
    model, (data, where, _) = program.build_model(), choose_batch(program)
    ignored, seen = measure_ignored(program)
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
            return [blame('the losses', f'fail where pixels are ignored: {failure}; {seen}', dict(failure=failure))]
    for call in calls:
        gradient, labels = call.get_gradient(), call.labels
        if gradient is None or labels is None or not bool((labels == program.ignore_index).any()):
            continue
        share = measure_share(gradient, labels == program.ignore_index)
        if share > ROUNDING:
            words = f'ignored pixels have up to {share:.2g} times the gradient of the others; {seen}'
            results.append(blame(call.name, words, dict(share=share, ignored=ignored)))
        elif ignored and getattr(model.get_submodule(call.name), 'avg_non_ignore', True) is False:
            words = f'ignored pixels count in its average (avg_non_ignore=True leaves them out); {seen}'
            results.append(note(call.name, words, dict(ignored=ignored)))
        else:
            results.append(ran(call.name, f'half of each image ignored: {where}'))
    return results


def _check_crowds(program: Program) -> List[Result]:
    """Name the share of ignored objects: they train as background unless an assigner ignores them."""
    share, words = measure_ignored(program)
    if program.has_label_map or not share:
        return []
    if any(node.get('ignore_iof_thr', -1) > 0 for _, node in walk(program.config.model)):
        return [ran('crowds', f'{words}, and left out by ignore_iof_thr')]
    return [note('crowds', f'{words}: no assigner has an ignore_iof_thr above 0, so they train as background')]
