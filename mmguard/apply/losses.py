"""What becomes of a loss: swapped for its guarded class, wrapped, or left as it is, with the reason."""

from __future__ import annotations

import copy
import inspect
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Tuple

from mmguard import register
from mmguard.apply.tree import (
    FRAMEWORKS,
    Path,
    defaults_of,
    dotted,
    full_name,
    is_text,
    key_of,
    resolve,
    scope_at,
    type_name,
    walk,
)

GUARDED = ('GuardedCrossEntropyLoss', 'GuardedLoss')


class Verdict(NamedTuple):
    """What becomes of a loss.

    Attributes:
        config (dict, optional): The guarded loss; ``None``: it stays as it is.
        reason (str): Why it stays; empty where no label can hurt it.
    """

    config: Optional[Dict[str, Any]]
    reason: str = ''


def judge(loss: Dict[str, Any], scope: str) -> Verdict:
    """Decides about one loss.

    Args:
        loss (dict): Its config, with ``type``.
        scope (str): The scope that it is built in.
    """
    from mmguard.losses.guards import GUARD_BY_NAME
    from mmguard.losses.guards.dense import DenseGuard
    from mmguard.losses.guards.refused import REASONS, USE_OWN_CLASS

    if type_name(loss['type']) in GUARDED:
        return Verdict(None)
    cls = resolve(loss['type'], 'MODELS', scope)
    if cls is None or not inspect.isclass(cls):
        return Verdict(None, f'{full_name(loss["type"])} is not registered here, so mmguard cannot tell what it does')
    names = [f'{base.__module__.partition(".")[0]}.{base.__name__}' for base in inspect.getmro(cls)]
    package, _, name = names[0].partition('.')
    framework = package if package in FRAMEWORKS else scope if scope in FRAMEWORKS else 'mmseg'
    if name == 'CrossEntropyLoss' and package in FRAMEWORKS:
        return Verdict({**loss, 'type': _guarded_type(loss['type'], GUARDED[0], framework)})
    known = next((n for n in names if n in REASONS or n in GUARD_BY_NAME), None)
    if known in REASONS and REASONS[known] is not USE_OWN_CLASS:
        harmless = package == 'mmdet' or known in ('mmseg.KLDivLoss', 'mmseg.SiLogLoss')
        return Verdict(None, '' if harmless else REASONS[known])
    if known is not None and GUARD_BY_NAME.get(known) is DenseGuard:
        return Verdict(None)
    config = _wrapped(loss, framework)
    refusal = _refusal(config, scope)
    return Verdict(None, refusal) if refusal else Verdict(config)


def _wrapped(loss: Dict[str, Any], framework: str) -> Dict[str, Any]:
    type_ = _guarded_type(loss['type'], GUARDED[1], framework)
    if framework != 'mmdet':
        return {'type': type_, 'loss': loss}
    # mmdet's heads read arguments of a loss beside its type, before it is built.
    inner = loss['type']
    if is_text(inner) and inner.startswith('mmdet.') and inner.count('.') == 1:
        inner = type_name(inner)  # the guard of that scope looks there
    return {'type': type_, 'loss': inner, **{key: value for key, value in loss.items() if key != 'type'}}


def _guarded_type(stock: Any, name: str, framework: str) -> Any:
    """Type X becomes GuardedX, in the same scope and style."""
    if not is_text(stock):
        from mmengine.config.lazy import LazyObject

        return LazyObject('mmguard.losses.mmdet' if framework == 'mmdet' else 'mmguard', name)
    package, dot, rest = stock.partition('.')
    if '.' in rest:  # the full path of a class: a new-style config that was dumped
        return f'mmguard.losses.{framework}.{name}'
    return f'{package}.{name}' if dot else name


def _refusal(config: Dict[str, Any], scope: str) -> str:
    """Why a wrapped loss cannot be built; empty where it can."""
    import torch
    from mmengine.registry import MODELS

    register()
    try:
        with MODELS.switch_scope_and_registry(scope or None) as registry, torch.device('cpu'):
            registry.build(built(copy.deepcopy(config)))
    except Exception as error:
        return str(error).replace('\n', ' ')
    return ''


def built(node: Any) -> Any:
    """A tree whose lazy classes are loaded."""
    if isinstance(node, dict):
        return {key: built(value) for key, value in node.items()}
    if isinstance(node, (list, tuple)):
        return type(node)(built(value) for value in node)
    return node.build() if type(node).__name__ in ('LazyObject', 'LazyAttr') else node


def losses_in(tree: Dict[str, Any]) -> Iterator[Tuple[Path, Dict[str, Any]]]:
    """The losses under ``model``: dicts with a type under a name with ``loss`` in it."""
    for path, node in walk(tree.get('model', {}), ('model',)):
        # What a guard holds under 'loss' is guarded.
        if 'loss' in key_of(path) and 'type' in node and 'loss' not in path:
            yield path, node


def unspelled_losses(tree: Dict[str, Any]) -> Iterator[Tuple[Path, str, Any]]:
    """Losses that a config leaves to the defaults of its heads: path and name of the head's argument, its default."""
    for path, node in walk(tree.get('model', {}), ('model',)):
        if 'type' not in node or 'loss' in key_of(path) or 'head' not in key_of(path):
            continue
        cls = resolve(node['type'], 'MODELS', scope_at(tree, path))
        for name, default in defaults_of(cls).items():
            if 'loss' not in name or name in node:
                continue
            if isinstance(default, dict) and 'type' in default:
                yield path, name, default


def set_at(tree: Dict[str, Any], path: Path, value: Any) -> None:
    """Replaces what stands at a path; tuples on the way become lists."""
    node: Any = tree
    for depth, key in enumerate(path[:-1]):
        child = node[key]
        if isinstance(child, tuple):
            child = list(child)
            set_at(tree, path[: depth + 1], child)
        node = child
    node[path[-1]] = value


def guard_losses(tree: Dict[str, Any]) -> Tuple[List[str], List[str]]:
    """Guards the losses of a tree, in place.

    Returns:
        tuple: what was changed and what was left, in words.
    """
    changed, left = [], []
    for path, loss in list(losses_in(tree)):
        if _at(tree, path) is not loss:
            continue  # it went into a guard with the loss around it
        verdict = judge(loss, scope_at(tree, path[:-1]))
        if verdict.config is not None:
            set_at(tree, path, verdict.config)
            changed.append(f'{dotted(path)}: {type_name(loss["type"])} -> {_shown(verdict.config)}')
        elif verdict.reason:
            left.append(f'{dotted(path)}: {type_name(loss["type"])} stays as it is: {verdict.reason}')
    for path, name, default in list(unspelled_losses(tree)):
        scope = scope_at(tree, path)
        spelled = copy.deepcopy(default)
        node = _at(tree, path)
        if not is_text(node['type']):
            cls = resolve(spelled['type'], 'MODELS', scope)
            if cls is None:
                continue
            from mmengine.config.lazy import LazyObject

            spelled['type'] = LazyObject(cls.__module__, cls.__name__)
        verdict = judge(spelled, scope)
        if verdict.config is not None:
            node[name] = verdict.config
            changed.append(
                f'{dotted((*path, name))}: the default {type_name(default["type"])} -> {_shown(verdict.config)}'
            )
    return changed, left


def _at(tree: Any, path: Path) -> Any:
    for key in path:
        if isinstance(tree, dict) and key not in tree:
            return None
        tree = tree[key]
    return tree


def _shown(config: Dict[str, Any]) -> str:
    name = type_name(config['type'])
    return name if name == GUARDED[0] else f'{name} around it'
