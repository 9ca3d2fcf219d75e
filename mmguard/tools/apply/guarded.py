"""Insertion of the hook, and of guards for losses, assigners and pipelines, into a copy of a config."""

from __future__ import annotations

import copy
import inspect
import re
import warnings
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Dict, Iterator, List, NamedTuple, Optional, Set, Tuple

from mmguard import register
from mmguard.config.changes import Path, find_scope, get_last_key, is_type_name, join_path, map_leaves, name_types, walk
from mmguard.config.classes import build_full_name, find_class, get_type_name, is_lazy
from mmguard.config.guarded_pipelines import guard_pipelines
from mmguard.config.guards import GUARDED_LOSSES as GUARDED
from mmguard.config.guards import HOOK, add_reporting, guard_loss, is_guarded_type
from mmguard.config.ignored_labels import find_trained_as_background, leave_out_ignored
from mmguard.config.label_spaces import from_config
from mmguard.config.read import ReadConfig
from mmguard.config.types import describe_wrong_types
from mmguard.labels.spaces import LabelSpaces
from mmguard.losses.guard_model import HEADS_WITHOUT_LOSS, WITHOUT_CLASSES, select

if TYPE_CHECKING:
    from mmengine.config import Config


class GuardedTree(NamedTuple):
    """A guarded tree, and descriptions of the changed parts and of those that cannot be guarded."""

    tree: Dict[str, Any]
    changed: List[str]
    left: List[str]


def guard_tree(tree: Dict[str, Any]) -> GuardedTree:
    """Guard a copy of a tree: imports, hook, losses, assigners, pipelines. Parts that are already guarded are kept.

    Raises:
        TypeError: A value has a type that its key does not take.
    """
    tree = copy.deepcopy(tree)
    changed: List[str] = []
    read = ReadConfig(name_types(tree))
    unguarded = read.describe_unguarded()
    if unguarded:
        return GuardedTree(tree, [], [unguarded])
    if read.wrong_types:
        raise TypeError(describe_wrong_types(read.wrong_types))
    spaces = from_config(read)
    left = [*read.describe_unknown_framework(), *_describe_disagreements(spaces)]
    in_losses = guard_losses(tree)
    in_pipelines = guard_pipelines(tree, spaces)
    in_assigners = leave_out_ignored(tree)
    if spaces.instances is not None:
        left.extend(find_trained_as_background(tree))
    changed += _add_reported(tree, read)
    changed += [*in_losses[0], *in_assigners, *in_pipelines.changed]
    return GuardedTree(tree, changed, [*left, *in_losses[1], *in_pipelines.left])


def _describe_disagreements(spaces: LabelSpaces) -> Iterator[str]:
    for kind, space in spaces.to_dict().items():
        heads = spaces.find_disagreeing(kind)
        if heads:
            named = ', '.join(f'{head.place}: {head.num_classes}' for head in heads)
            yield f'the heads have different numbers of classes ({named}): guarded with {space.num_classes}'


def guard_config(cfg: Config) -> Config:
    """Return the guarded config, for one line before ``Runner.from_cfg(cfg)``.

    It has the hook, guards in every pipeline, and guarded losses. Assigners that did not know ignored instances leave
    out those with invalid labels; crowds are trained as before. ``cfg`` itself is not modified, and a guarded config is
    returned unchanged. A warning names what could not be guarded.

    Args:
        cfg (Config): A config of mmseg or mmdet, of either style.

    Raises:
        TypeError: ``cfg`` is not an ``mmengine.config.Config``.

    Example:
        >>> from mmengine.config import Config
        >>> cfg = Config(dict(model=dict(type='EncoderDecoder', decode_head=dict(type='FCNHead', num_classes=19))))
        >>> [hook['type'] for hook in guard_config(cfg).custom_hooks]
        ['LabelGuardHook']
    """
    from mmengine.config import Config, ConfigDict

    if not isinstance(cfg, Config):
        raise TypeError(
            f'guard_config expected an mmengine Config, got {type(cfg).__name__}: write Config.fromfile(path), or '
            f'Config(dict(...))'
        )
    guarded = copy.deepcopy(cfg)
    tree, _, left = guard_tree(build_tree(cfg, keep_imported=True))
    if left:
        lines = ''.join(f'\n  {line}' for line in left)
        warnings.warn(f'mmguard.guard_config left as it is:{lines}', stacklevel=2)
    object.__setattr__(guarded, '_cfg_dict', ConfigDict(tree))
    return guarded


def build_tree(cfg: Config, keep_imported: bool = False) -> Dict[str, Any]:
    """Return a config as plain dicts and lists, without loading its lazy classes."""
    if hasattr(cfg, '_to_lazy_dict'):
        return cfg._to_lazy_dict(keep_imported=keep_imported)
    return cfg._cfg_dict.to_dict()  # mmengine before 0.8 has no lazy classes


def has_lazy_types(tree: Dict[str, Any]) -> bool:
    """Return True if types are classes, as in new-style configs."""
    type_ = tree['model'].get('type') if isinstance(tree.get('model'), dict) else None
    return type_ is not None and not is_type_name(type_)


def _add_reported(tree: Dict[str, Any], config: ReadConfig) -> Iterator[str]:
    for key, value in add_reporting(config):
        if key == 'custom_imports':
            tree[key] = value
            yield "custom_imports: + 'mmguard'"
            continue
        hook = value[-1]
        if has_lazy_types(tree):
            from mmengine.config.lazy import LazyObject

            hook = {'type': LazyObject('mmguard', HOOK)}
        tree[key] = [*(tree.get(key) or []), hook]
        yield f'{key}: + {HOOK}'


#: Heads whose losses are not guarded -> the reason.
NOT_GUARDED = {'LinearReIDHead': 'compares identities (re-identification), which mmguard does not guard'}


class GuardDecision(NamedTuple):
    """The guarded config of a loss; ``None``: unguarded, with the reason (empty: no label can hurt it)."""

    config: Optional[Dict[str, Any]]
    reason: str = ''


def decide_guard(loss: Dict[str, Any], scope: str) -> GuardDecision:
    """Decide how to guard a loss in the scope in which it is built."""
    if is_guarded_type(get_type_name(loss['type'])):
        return GuardDecision(None)
    cls = find_class(loss['type'], 'MODELS', scope)
    if cls is None or not inspect.isclass(cls):
        return GuardDecision(
            None, f'{build_full_name(loss["type"])} is not registered here, so mmguard cannot tell what it does'
        )
    selection = select(cls, scope)
    if selection.is_cross_entropy:
        return GuardDecision(_guard_loss(loss, selection.framework))
    if not selection.is_wrapped:
        return GuardDecision(None, selection.reason)
    config = _guard_loss(loss, selection.framework)
    refusal = _find_refusal(config, scope)
    return GuardDecision(None, refusal) if refusal else GuardDecision(config)


def _guard_loss(loss: Dict[str, Any], framework: str) -> Dict[str, Any]:
    """Return the guarded loss, with types in the style of the config."""
    stock = loss['type']
    if is_type_name(stock):
        return guard_loss(loss, framework)
    from mmengine.config.lazy import LazyObject

    named = guard_loss({**loss, 'type': build_full_name(stock)}, framework)
    name = get_type_name(named['type'])
    module = 'mmguard' if framework == 'mmseg' and name in GUARDED else f'mmguard.losses.{framework}'
    named['type'] = LazyObject(module, name)
    if 'loss' in named:
        named['loss'] = stock if framework == 'mmdet' else loss
    return named


def _find_refusal(config: Dict[str, Any], scope: str) -> str:
    """Return the reason why a wrapped loss cannot be built; empty if it can."""
    import torch
    from mmengine.registry import MODELS

    register()
    try:
        with MODELS.switch_scope_and_registry(scope or None) as registry, torch.device('cpu'):
            registry.build(map_leaves(config, lambda leaf: leaf.build() if is_lazy(leaf) else leaf))
    except Exception as error:
        return str(error).replace('\n', ' ')
    return ''


def walk_losses(tree: Dict[str, Any]) -> Iterator[Tuple[Path, Dict[str, Any]]]:
    """Yield the losses under ``model``: dicts with a type under a key with ``loss`` in it."""
    guards: List[Path] = []
    for path, node in walk(tree.get('model', {}), ('model',)):
        if any(path[: len(guard)] == guard for guard in guards):
            continue  # a loss inside a guard is guarded
        if 'loss' in get_last_key(path) and get_last_key(path) not in WITHOUT_CLASSES and 'type' in node:
            if is_guarded_type(get_type_name(node['type'])):
                guards.append(path)
            yield path, node


@lru_cache(maxsize=None)  # reads source
def get_defaults(cls: Any) -> Dict[str, Any]:
    """Return the arguments of a class with their defaults, including those passed to bases by ``**kwargs``."""
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
        # Some classes skip their base and call the next one.
        if not takes_more or 'super().__init__(' not in text:
            break
        given.update(re.findall(r'(\w+)=', text.partition('super().__init__(')[2]))
    return {name: value for name, value in found.items() if name not in ('self', 'args', 'kwargs')}


def find_default_losses(tree: Dict[str, Any]) -> Iterator[Tuple[Path, str, Any]]:
    """Yield losses that are the defaults of heads: path and argument of the head, default."""
    for path, node in walk(tree.get('model', {}), ('model',)):
        if 'type' not in node or 'loss' in get_last_key(path) or 'head' not in get_last_key(path):
            continue
        cls = find_class(node['type'], 'MODELS', find_scope(tree, path))
        for name, default in get_defaults(cls).items():
            is_loss = 'loss' in name and name not in WITHOUT_CLASSES and isinstance(default, dict) and 'type' in default
            if is_loss and name not in node and not (name == 'loss_cls' and _is_without_loss(cls)):
                yield path, name, default


def _is_without_loss(cls: Any) -> bool:
    return any(base.__name__ in HEADS_WITHOUT_LOSS for base in getattr(cls, '__mro__', ()))


def describe_unguarded_heads(tree: Dict[str, Any]) -> Iterator[str]:
    """Yield a description of each head whose labels reach no loss that can be guarded."""
    for path, node in walk(tree.get('model', {}), ('model',)):
        is_head = 'type' in node and 'head' in get_last_key(path)
        if is_head and _is_without_loss(find_class(node['type'], 'MODELS', find_scope(tree, path))):
            yield (
                f'{join_path(path)}: {get_type_name(node["type"])} computes its classification loss without a loss '
                f'object: GuardInstanceLabels in the pipeline is its only guard'
            )


def set_at(tree: Dict[str, Any], path: Path, value: Any) -> None:
    """Replace the value at a path; tuples on the way become lists."""
    node: Any = tree
    for depth, key in enumerate(path[:-1]):
        child = node[key]
        if isinstance(child, tuple):
            child = list(child)
            set_at(tree, path[: depth + 1], child)
        node = child
    node[path[-1]] = value


def guard_losses(tree: Dict[str, Any]) -> Tuple[List[str], List[str]]:
    """Guard the losses of a tree in place. Return descriptions of the changed and the unchanged parts."""
    changed, left = [], []
    for path, loss in list(walk_losses(tree)):
        if _get_value(tree, path) is not loss:
            continue  # it was guarded with the loss around it
        reason = _find_reason_of_head(tree, path)
        verdict = GuardDecision(None, reason) if reason else decide_guard(loss, find_scope(tree, path[:-1]))
        if verdict.config is not None:
            set_at(tree, path, verdict.config)
            changed.append(f'{join_path(path)}: {get_type_name(loss["type"])} -> {_show_loss(verdict.config)}')
        elif verdict.reason:
            left.append(f'{join_path(path)}: {get_type_name(loss["type"])} is left unchanged: {verdict.reason}')
    for path, name, default in list(find_default_losses(tree)):
        scope = find_scope(tree, path)
        spelled = copy.deepcopy(default)
        node = _get_value(tree, path)
        if not is_type_name(node['type']):
            cls = find_class(spelled['type'], 'MODELS', scope)
            if cls is None:
                continue
            from mmengine.config.lazy import LazyObject

            spelled['type'] = LazyObject(cls.__module__, cls.__name__)
        verdict = decide_guard(spelled, scope)
        if verdict.config is not None:
            node[name] = verdict.config
            changed.append(
                f'{join_path((*path, name))}: the default {get_type_name(default["type"])} -> '
                f'{_show_loss(verdict.config)}'
            )
    return changed, [*left, *describe_unguarded_heads(tree)]


def _find_reason_of_head(tree: Dict[str, Any], path: Path) -> str:
    """Return why the calling head prevents guarding a loss; empty if it does not."""
    head = _get_value(tree, path[:-1])
    cls = find_class(head.get('type'), 'MODELS', find_scope(tree, path[:-1])) if isinstance(head, dict) else None
    for base in getattr(cls, '__mro__', ()):
        if base.__name__ in NOT_GUARDED:
            return f'{get_type_name(head["type"])} {NOT_GUARDED[base.__name__]}'
    return ''


def _get_value(tree: Any, path: Path) -> Any:
    for key in path:
        if isinstance(tree, dict) and key not in tree:
            return None
        tree = tree[key]
    return tree


def _show_loss(config: Dict[str, Any]) -> str:
    name = get_type_name(config['type'])
    return f'{name} around it' if 'loss' in config else name
