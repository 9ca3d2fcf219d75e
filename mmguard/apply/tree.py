"""A config as plain dicts and lists: walking it, and what a ``type`` in it names."""

from __future__ import annotations

import inspect
import re
from typing import Any, Dict, Iterator, Optional, Set, Tuple, Union

from mmguard import register

Path = Tuple[Union[str, int], ...]

#: Packages whose registries resolve ``package.Name``.
FRAMEWORKS = ('mmseg', 'mmdet')


def walk(node: Any, path: Path = ()) -> Iterator[Tuple[Path, Dict[str, Any]]]:
    """All dicts of a tree with their paths, outer ones first."""
    if isinstance(node, dict):
        yield path, node
        for key, value in list(node.items()):
            yield from walk(value, (*path, key))
    elif isinstance(node, (list, tuple)):
        for number, value in enumerate(node):
            yield from walk(value, (*path, number))


def dotted(path: Path) -> str:
    """``('model', 'decode_head', 'loss_decode', 0)`` -> ``'model.decode_head.loss_decode[0]'``.

    Example:
        >>> dotted(('model', 'heads', 0, 'loss_cls'))
        'model.heads[0].loss_cls'
    """
    return ''.join(f'[{key}]' if isinstance(key, int) else f'.{key}' for key in path).lstrip('.')


def key_of(path: Path) -> str:
    """The last name of a path: that of the list for what stands in one."""
    return next((key for key in reversed(path) if isinstance(key, str)), '')


def is_text(type_: Any) -> bool:
    """Whether a type is given by name. In new-style configs it is a class."""
    return isinstance(type_, str)


def full_name(type_: Any) -> str:
    """``'mmdet.FocalLoss'`` as written; ``'package.module.Class'`` of a class, loaded or still lazy."""
    if is_text(type_):
        return type_
    if inspect.isclass(type_) or inspect.isfunction(type_):
        return f'{type_.__module__}.{type_.__name__}'
    return f'{getattr(type_, "module", "")}.{type_}'  # mmengine's LazyObject and LazyAttr


def type_name(type_: Any) -> str:
    """The last part of a type's name.

    Example:
        >>> type_name('mmdet.FocalLoss')
        'FocalLoss'
    """
    return full_name(type_).rpartition('.')[2]


def scope_at(tree: Dict[str, Any], path: Path) -> str:
    """The scope in which what stands at a path is built: of the nearest dict around it that names one."""
    scope = str(tree.get('default_scope') or '')
    node: Any = tree
    for key in path:
        node = node[key]
        if not isinstance(node, dict):
            continue
        type_ = node.get('type')
        package = '' if type_ is None else full_name(type_).partition('.')[0]
        scope = str(node.get('_scope_') or (package if package in FRAMEWORKS else scope))
    return scope


def resolve(type_: Any, registry: str, scope: str) -> Optional[type]:
    """The class that a type names; ``None`` where nothing of that name is registered.

    Args:
        type_ (str, type or LazyObject): As in the config.
        registry (str): Name of a registry of ``mmengine.registry``, as ``'MODELS'``.
        scope (str): Where to look first.
    """
    if not is_text(type_):
        return type_.build() if hasattr(type_, 'build') and not inspect.isclass(type_) else type_
    import mmengine.registry

    register()
    package, _, name = type_.partition('.')
    if package in FRAMEWORKS and '.' not in name:
        scope, type_ = package, name
    with getattr(mmengine.registry, registry).switch_scope_and_registry(scope or None) as found:
        try:
            return found.get(type_)
        except Exception:  # a registry imports what it looks through, and a missing part of that is no reason to stop
            return None


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


def argument(node: Dict[str, Any], name: str, registry: str, scope: str) -> Any:
    """An argument of what a dict builds: as written, else the default of its class; ``None`` where there is none."""
    if name in node:
        return node[name]
    cls = resolve(node['type'], registry, scope) if 'type' in node else None
    default = defaults_of(cls).get(name)
    return None if default is inspect.Parameter.empty else default
