"""Replacement of the losses of a built model by guarded ones."""

from __future__ import annotations

import importlib
from typing import Any, Dict, List, NamedTuple

from torch import nn

from mmguard.labels.loss_selection import LossDecision, Node, Path, SelectedLoss, get_package, visit_losses
from mmguard.nn.counting import CountsLabels

#: Arguments of the cross entropies of mmseg and mmdet, which are attributes of the built loss.
_ARGUMENTS = (
    'use_sigmoid',
    'use_mask',
    'reduction',
    'class_weight',
    'ignore_index',
    'loss_weight',
    'loss_name',
    'avg_non_ignore',
)


class GuardedModel(NamedTuple):
    """Changes made by :func:`guard_model`, and the losses that it left unchanged.

    Attributes:
        changed (list[str]): Path of a loss in the model, its type and that of its guard.
        left (list[str]): Path of a loss that stays, and the reason.
    """

    changed: List[str]
    left: List[str]


def guard_model(model: nn.Module, on_invalid: str = 'ignore') -> GuardedModel:
    """Replace the stock losses of class labels in a model by guarded ones, in place.

    The selection is that of ``mmguard apply``. A CrossEntropyLoss (exactly that type) is rebuilt as
    GuardedCrossEntropyLoss from its attributes, any other loss gets a GuardedLoss around it. A loss that several places
    share stays one. Guarded losses stay as they are, so a second call changes nothing.

    Args:
        model (nn.Module): The model.
        on_invalid (str): Of the guards; ``'drop'``, which is for instances, counts as ``'ignore'``.
    """
    changed: List[str] = []
    left: List[str] = []
    guards: Dict[int, nn.Module] = {}

    def visit(found: SelectedLoss) -> bool:
        place, loss, decision = '.'.join(map(str, found.path)), found.part, found.decision
        if decision.reason:
            left.append(found.describe_left(place))
        if not decision.is_guarded:
            return False
        if id(loss) not in guards:
            try:
                guards[id(loss)] = _build_guard(loss, decision, 'ignore' if on_invalid == 'drop' else on_invalid)
            except TypeError as error:  # no guard can keep the contract for it
                left.append(found.describe_left(place, str(error)))
                return False
        guard = guards[id(loss)]
        owner, _, key = place.rpartition('.')
        model.get_submodule(owner)._modules[key] = guard
        written = f'Guarded{found.name}'  # what a config would have; the guard keeps the built loss
        known = hasattr(_get_module(decision), written)
        changed.append(f'{place}: {found.name} -> {written if known else guard._get_name()}')
        return True

    visit_losses(model, _open_module, visit)
    _replace_in_containers(model, guards)
    return GuardedModel(changed, left)


def _open_module(module: nn.Module, path: Path) -> Node:
    cls = type(module)
    name = 'GuardedLoss' if isinstance(module, CountsLabels) else cls.__name__
    is_container = isinstance(module, (nn.ModuleList, nn.ModuleDict, nn.Sequential))
    children = [(key, child) for key, child in module._modules.items() if child is not None]
    return Node('' if is_container else name, cls, get_package(cls), children)


def _get_module(decision: LossDecision) -> Any:
    return importlib.import_module(f'mmguard.losses.{decision.framework}')


def _build_guard(loss: nn.Module, decision: LossDecision, on_invalid: str) -> nn.Module:
    module = _get_module(decision)
    if decision.is_cross_entropy:
        arguments = {name: getattr(loss, name) for name in _ARGUMENTS if hasattr(loss, name)}
        guard: nn.Module = module.GuardedCrossEntropyLoss(**arguments, on_invalid=on_invalid)
    else:
        guard = module.GuardedLoss(loss, on_invalid=on_invalid)
    return guard.train(loss.training)


def _replace_in_containers(model: nn.Module, guards: Dict[int, nn.Module]) -> None:
    """Replace the losses also in plain lists, tuples and dicts of a module."""
    for module in model.modules():
        for name, value in list(vars(module).items()):
            if not name.startswith('_') and isinstance(value, (list, tuple, dict)):
                items: List[Any] = list(value.values()) if isinstance(value, dict) else list(value)
                if any(id(item) in guards for item in items):
                    new = [guards.get(id(item), item) for item in items]
                    if isinstance(value, dict):
                        value.update(zip(value, new))
                    elif isinstance(value, list):
                        value[:] = new
                    else:
                        setattr(module, name, type(value)(new))
