"""Selection of losses to guard, for a config (``apply``) or a built model, and their replacement."""

from __future__ import annotations

import importlib
import inspect
from typing import Any, Dict, Iterator, List, NamedTuple, Tuple

from torch import nn

from mmguard.config.classes import SCOPES
from mmguard.losses.guards import GUARD_BY_NAME, REASONS, USE_OWN_CLASS_REASON
from mmguard.losses.guards.mmdet import DenseGuard
from mmguard.nn.counting import CountsLabels

#: Arguments and attributes of heads whose loss takes no class labels, whatever its type.
WITHOUT_CLASSES = ('loss_centerness',)
#: Heads that compute the classification loss themselves, from unchanged labels: a ``loss_cls`` is never called.
HEADS_WITHOUT_LOSS = ('SSDHead', 'FreeAnchorRetinaHead', 'AutoAssignHead')
#: Losses of mmseg whose targets are not class labels.
_LOSSES_WITHOUT_LABELS = ('mmseg.KLDivLoss', 'mmseg.SiLogLoss')


class LossDecision(NamedTuple):
    """Decision on how to guard a loss.

    Attributes:
        is_cross_entropy (bool): True if it is replaced by GuardedCrossEntropyLoss.
        is_wrapped (bool): True if a GuardedLoss around it may guard it.
        framework (str): The scope of the guard: ``'mmseg'`` or ``'mmdet'``.
        reason (str): Reason if it is left unchanged; empty if labels cannot hurt it.
    """

    is_cross_entropy: bool
    is_wrapped: bool
    framework: str
    reason: str = ''


def select(cls: type, scope: str = '') -> LossDecision:
    """Decide how to guard a loss.

    Args:
        cls (type): Class of the loss.
        scope (str): The scope that it is built in, if its own package is not a framework's.
    """
    names = [f'{base.__module__.partition(".")[0]}.{base.__name__}' for base in inspect.getmro(cls)]
    package, _, name = names[0].partition('.')
    framework = next((one for one in (package, scope) if one in SCOPES), 'mmseg')
    if name == 'CrossEntropyLoss' and package in SCOPES:
        return LossDecision(True, False, framework)
    known = next((one for one in names if one in REASONS or one in GUARD_BY_NAME), None)
    if known in REASONS and REASONS[known] is not USE_OWN_CLASS_REASON:
        is_harmful = package != 'mmdet' and known not in _LOSSES_WITHOUT_LABELS
        return LossDecision(False, False, framework, REASONS[known] if is_harmful else '')
    is_dense = known is not None and GUARD_BY_NAME.get(known) is DenseGuard
    return LossDecision(False, not is_dense, framework)


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


#: Path, parent module, its key there, and the loss.
_Place = Tuple[str, nn.Module, str, nn.Module]


class GuardedModel(NamedTuple):
    """Changes made by :func:`guard_model`, and the losses that it left unchanged.

    Attributes:
        changed (list[str]): Path of a loss in the model, its type and that of its guard.
        left (list[str]): Path of a loss that stays, and the reason.
    """

    changed: List[str]
    left: List[str]


def guard_model(model: nn.Module) -> GuardedModel:
    """Replace the stock losses of class labels in a model by guarded ones, in place.

    The selection is that of ``mmguard apply``. A CrossEntropyLoss (exactly that type) is rebuilt as
    GuardedCrossEntropyLoss from its attributes, any other loss gets a GuardedLoss around it. A loss that several places
    share stays one. Guarded losses stay as they are, so a second call changes nothing.
    """
    changed: List[str] = []
    left: List[str] = []
    guards: Dict[int, nn.Module] = {}
    for path, owner, key, loss in list(_find_losses(model)):
        selection = select(type(loss))
        if id(loss) not in guards:
            if selection.reason:
                left.append(f'{path}: {type(loss).__name__} is left unchanged: {selection.reason}')
            if not selection.is_cross_entropy and not selection.is_wrapped:
                continue
            try:
                guards[id(loss)] = _find_guard(loss, selection)
            except TypeError as error:  # no guard can keep the contract for it
                left.append(f'{path}: {type(loss).__name__} is left unchanged: {error}')
                continue
        guard = guards[id(loss)]
        owner._modules[key] = guard
        written = f'Guarded{type(loss).__name__}'  # what a config would have; the guard keeps the built loss
        known = hasattr(_get_module(selection), written)
        changed.append(f'{path}: {type(loss).__name__} -> {written if known else guard._get_name()}')
    _replace_in_containers(model, guards)
    for path, module in model.named_modules():
        if any(base.__name__ in HEADS_WITHOUT_LOSS for base in type(module).__mro__):
            left.append(f'{path}: {type(module).__name__} computes its classification loss without a loss object')
    return GuardedModel(changed, left)


def _find_losses(owner: nn.Module, path: str = '', is_loss: bool = False) -> Iterator[_Place]:
    """Yield the paths of all losses outside of guards; for a shared loss, each of its paths."""
    for key, child in owner._modules.items():
        if child is None or isinstance(child, CountsLabels):
            continue
        where = f'{path}.{key}'.lstrip('.')
        named_loss = (is_loss or 'loss' in key) and key not in WITHOUT_CLASSES
        if named_loss and not isinstance(child, (nn.ModuleList, nn.ModuleDict, nn.Sequential)):
            yield where, owner, key, child
        else:
            yield from _find_losses(child, where, named_loss)


def _get_module(selection: LossDecision) -> Any:
    return importlib.import_module(f'mmguard.losses.{selection.framework}')


def _find_guard(loss: nn.Module, selection: LossDecision) -> nn.Module:
    module = _get_module(selection)
    if selection.is_cross_entropy:
        arguments = {name: getattr(loss, name) for name in _ARGUMENTS if hasattr(loss, name)}
        guard: nn.Module = module.GuardedCrossEntropyLoss(**arguments)
    else:
        guard = module.GuardedLoss(loss)
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
