"""Strides: anchors, points and regions are where the cells of their feature maps are."""

from __future__ import annotations

from typing import Any, Dict, List, Sequence, Tuple

from torch import Tensor

from mmguard.properties.program import Program
from mmguard.properties.result import DoesNotApply, Result, broken, ran
from mmguard.properties.scores import record_calls, walk_tensors
from mmguard.text import quantity

#: Width in cells below which rounding hides the stride of a feature map, and by how much a stride may differ.
_SMALLEST, _TOLERANCE = 8, 1.6


def check_strides(program: Program) -> List[Result]:
    """Compare the strides of priors and region extractors with the feature maps that they are given."""
    model = program.build_model()
    strides = {name: found for name, one in model.named_modules() if name for found in [_get_strides(one)] if found}
    if not strides:
        raise DoesNotApply('the model has neither anchors or points with strides nor a region extractor')
    modules: Dict[str, Any] = {name: one for name, one in model.named_modules() if name in {*strides, 'backbone'}}
    side = program.find_side()
    with record_calls(modules) as calls:
        program.compute_losses(program.build_plain_batch(side), side)
    results: Dict[str, Result] = {}
    width = side  # some preprocessors resize the batch
    for call in calls:
        maps = [tensor for tensor in walk_tensors(call.args[:1]) if tensor.dim() == 4]
        if call.name == 'backbone':
            width = maps[0].shape[-1] if maps else width
        elif maps:
            results[call.name] = _judge(call.name, strides[call.name], maps, width, program.describe_made_up())
    if not results:
        raise DoesNotApply('no part with strides is given feature maps')
    return list(results.values())


def _get_strides(module: Any) -> Tuple[int, ...]:
    """Return the strides of a head's priors or of a region extractor, one per level; empty for other modules."""
    strides = getattr(module, 'featmap_strides', None) or getattr(
        getattr(module, 'prior_generator', None), 'strides', None
    )
    if not isinstance(strides, (list, tuple)):
        return ()
    return tuple(int(one[0]) if isinstance(one, (list, tuple)) else int(one) for one in strides)


def _judge(name: str, strides: Sequence[int], maps: Sequence[Tensor], width: int, where: str) -> Result:
    seen = [(stride, width / level.shape[-1]) for stride, level in zip(strides, maps) if level.shape[-1] >= _SMALLEST]
    wrong = [
        f'level {level} has stride {stride}, but its feature map is 1/{actual:.0f} of the image'
        for level, (stride, actual) in enumerate(seen)
        if not 1 / _TOLERANCE < actual / stride < _TOLERANCE
    ]
    data = dict(strides=[stride for stride, _ in seen], actual=[actual for _, actual in seen])
    return (
        broken(name, '; '.join(wrong[:4]), data)
        if wrong
        else ran(name, f'{quantity(len(seen), "level")} on {where}', data)
    )
