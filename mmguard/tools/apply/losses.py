"""What becomes of a loss: swapped for its guarded class, wrapped, or left as it is, with the reason."""

from __future__ import annotations

import copy
import inspect
import re
from functools import lru_cache
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Set, Tuple

from mmguard import register
from mmguard.config.classes import class_of, full_name, name_of
from mmguard.config.guards import LOSSES as GUARDED
from mmguard.config.guards import guarded_loss, is_guarded_type
from mmguard.config.tree import Path, dotted, is_text, key_of, scope_at, walk
from mmguard.labels.spaces.heads import ARCFACE

#: Heads that look at the type of a loss before it is built -> the loss, and the types that they look for.
READ_BY_TYPE = {'Anchor3DHead': ('loss_cls', ('mmdet.FocalLoss', 'mmdet.GHMC'))}
#: Heads whose losses stay as they are -> the reason.
NOT_GUARDED = {
    ARCFACE: 'indexes by the label before its loss, so no loss can protect it: remove images with invalid labels',
    'LinearReIDHead': 'compares identities (re-identification), which mmguard does not guard',
}


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
    from mmguard.losses.guard_model import select

    if is_guarded_type(name_of(loss['type'])):
        return Verdict(None)
    cls = class_of(loss['type'], 'MODELS', scope)
    if cls is None or not inspect.isclass(cls):
        return Verdict(None, f'{full_name(loss["type"])} is not registered here, so mmguard cannot tell what it does')
    selection = select(cls, scope)
    if selection.is_cross_entropy:
        return Verdict(_guarded(loss, selection.framework))
    if not selection.is_wrapped:
        return Verdict(None, selection.reason)
    config = _guarded(loss, selection.framework)
    refusal = _refusal(config, scope)
    return Verdict(None, refusal) if refusal else Verdict(config)


def _guarded(loss: Dict[str, Any], framework: str) -> Dict[str, Any]:
    """The guarded loss, its types in the style of the config."""
    stock = loss['type']
    if is_text(stock):
        return guarded_loss(loss, framework)
    from mmengine.config.lazy import LazyObject

    named = guarded_loss({**loss, 'type': full_name(stock)}, framework)
    name = name_of(named['type'])
    module = 'mmguard' if framework == 'mmseg' and name in GUARDED else f'mmguard.losses.{framework}'
    named['type'] = LazyObject(module, name)
    if 'loss' in named:
        named['loss'] = stock if framework == 'mmdet' else loss
    return named


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
    from mmguard.losses.guard_model import WITHOUT_CLASSES

    guards: List[Path] = []
    for path, node in walk(tree.get('model', {}), ('model',)):
        if any(path[: len(guard)] == guard for guard in guards):
            continue  # what a guard holds is guarded
        if 'loss' in key_of(path) and key_of(path) not in WITHOUT_CLASSES and 'type' in node:
            if is_guarded_type(name_of(node['type'])):
                guards.append(path)
            yield path, node


@lru_cache(maxsize=None)  # reads source
def defaults_of(cls: Any) -> Dict[str, Any]:
    """Arguments of a class and their defaults, those that ``**kwargs`` hands to its bases included."""
    found: Dict[str, Any] = {}
    given: Set[str] = set()
    for base in inspect.getmro(cls) if inspect.isclass(cls) else ():
        if '__init__' not in vars(base):
            continue
        try:
            parameters = list(inspect.signature(vars(base)['__init__']).parameters.values())
            text = inspect.getsource(vars(base)['__init__'])
        except (TypeError, ValueError, OSError):
            break
        for parameter in parameters:
            if parameter.name not in given:
                found.setdefault(parameter.name, parameter.default)
        takes_more = any(parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in parameters)
        # Some classes pass over their base, to the one behind it.
        if not takes_more or 'super().__init__(' not in text:
            break
        given.update(re.findall(r'(\w+)=', text.partition('super().__init__(')[2]))
    return {name: value for name, value in found.items() if name not in ('self', 'args', 'kwargs')}


def unspelled_losses(tree: Dict[str, Any]) -> Iterator[Tuple[Path, str, Any]]:
    """Losses that a config leaves to the defaults of its heads: path and name of the head's argument, its default."""
    from mmguard.losses.guard_model import WITHOUT_CLASSES

    for path, node in walk(tree.get('model', {}), ('model',)):
        if 'type' not in node or 'loss' in key_of(path) or 'head' not in key_of(path):
            continue
        cls = class_of(node['type'], 'MODELS', scope_at(tree, path))
        for name, default in defaults_of(cls).items():
            if (
                'loss' not in name
                or name in node
                or name in WITHOUT_CLASSES
                or (name == 'loss_cls' and _is_without_loss(cls))
            ):
                continue
            if isinstance(default, dict) and 'type' in default:
                yield path, name, default


def _is_without_loss(cls: Any) -> bool:
    from mmguard.losses.guard_model import HEADS_WITHOUT_LOSS

    return any(base.__name__ in HEADS_WITHOUT_LOSS for base in getattr(cls, '__mro__', ()))


def heads_without_loss(tree: Dict[str, Any]) -> Iterator[str]:
    """The heads whose labels meet no loss that could be guarded, in words."""
    for path, node in walk(tree.get('model', {}), ('model',)):
        is_head = 'type' in node and 'head' in key_of(path)
        if is_head and _is_without_loss(class_of(node['type'], 'MODELS', scope_at(tree, path))):
            yield (
                f'{dotted(path)}: {name_of(node["type"])} computes its classification loss without a loss object: '
                f'GuardInstanceLabels in the pipeline is its only guard'
            )


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
        reason = _reason_of_head(tree, path, loss)
        verdict = Verdict(None, reason) if reason else judge(loss, scope_at(tree, path[:-1]))
        if verdict.config is not None:
            set_at(tree, path, verdict.config)
            changed.append(f'{dotted(path)}: {name_of(loss["type"])} -> {_shown(verdict.config)}')
        elif verdict.reason:
            left.append(f'{dotted(path)}: {name_of(loss["type"])} stays as it is: {verdict.reason}')
    for path, name, default in list(unspelled_losses(tree)):
        scope = scope_at(tree, path)
        spelled = copy.deepcopy(default)
        node = _at(tree, path)
        if not is_text(node['type']):
            cls = class_of(spelled['type'], 'MODELS', scope)
            if cls is None:
                continue
            from mmengine.config.lazy import LazyObject

            spelled['type'] = LazyObject(cls.__module__, cls.__name__)
        verdict = judge(spelled, scope)
        if verdict.config is not None:
            node[name] = verdict.config
            changed.append(
                f'{dotted((*path, name))}: the default {name_of(default["type"])} -> {_shown(verdict.config)}'
            )
    return changed, [*left, *heads_without_loss(tree)]


def _reason_of_head(tree: Dict[str, Any], path: Path, loss: Dict[str, Any]) -> str:
    """Return why a loss stays as it is because of the head that calls it; empty if it does not."""
    head = _at(tree, path[:-1])
    cls = class_of(head.get('type'), 'MODELS', scope_at(tree, path[:-1])) if isinstance(head, dict) else None
    for base in getattr(cls, '__mro__', ()):
        if base.__name__ in NOT_GUARDED:
            return f'{name_of(head["type"])} {NOT_GUARDED[base.__name__]}'
        name, types = READ_BY_TYPE.get(base.__name__, ('', ()))
        if path[-1] == name and loss['type'] in types:
            return (
                f'{name_of(head["type"])} looks at its type before it is built, and would train otherwise. The guard '
                f'in the pipeline keeps invalid labels from it'
            )
    return ''


def _at(tree: Any, path: Path) -> Any:
    for key in path:
        if isinstance(tree, dict) and key not in tree:
            return None
        tree = tree[key]
    return tree


def _shown(config: Dict[str, Any]) -> str:
    name = name_of(config['type'])
    return f'{name} around it' if 'loss' in config else name
