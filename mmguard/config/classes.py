"""Lookup of the classes that a config names, without instantiating them."""

from __future__ import annotations

import contextlib
import importlib
import inspect
import io
import logging
import warnings
from functools import lru_cache
from typing import Any, Dict, Iterator, Optional, Union

from mmguard.compat.stack import FRAMEWORKS, GUARDED_FRAMEWORKS

#: Registry scopes of the guarded frameworks.
SCOPES = GUARDED_FRAMEWORKS
#: Other frameworks of OpenMMLab. Guarded configs may use their backbones; their heads and data sets are not guarded.
UNGUARDED_SCOPES = tuple(name for name in FRAMEWORKS if name not in ('mmengine', *SCOPES))

#: Marker of an argument without a default.
MISSING = inspect.Parameter.empty


def build_full_name(kind: Any) -> str:
    """Return a name unchanged, ``'package.module.Class'`` for a (lazy) class or function, ``''`` for other objects."""
    if isinstance(kind, str):
        return kind
    if inspect.isclass(kind) or inspect.isfunction(kind):
        return f'{kind.__module__}.{kind.__name__}'
    return f'{getattr(kind, "module", "")}.{kind}' if is_lazy(kind) else ''


def is_lazy(kind: Any) -> bool:
    """Return True if a type is mmengine's LazyObject or LazyAttr, which represent imports in new-style configs."""
    return type(kind).__name__ in ('LazyObject', 'LazyAttr')


def get_type_name(kind: Any) -> str:
    """Return the name of a class without scope and module, e.g. ``'FocalLoss'`` for ``'mmdet.FocalLoss'``."""
    return build_full_name(kind).rpartition('.')[2]


def get_class_metainfo(cls: Any, version: Any = None) -> Dict[str, Any]:
    """Return the ``METAINFO`` of a data set class, or {}; ``version`` is ``dataset_version`` of YouTubeVISDataset."""
    if version is not None and hasattr(cls, 'set_dataset_classes'):
        cls = type(cls.__name__, (cls,), {})  # a copy, because set_dataset_classes writes to the class
        with contextlib.suppress(Exception):  # an unknown version: building the data set will raise
            cls.set_dataset_classes(version)
    metainfo = getattr(cls, 'METAINFO', None)
    return metainfo if isinstance(metainfo, dict) else {}


def get_scope(kind: Any, default: str) -> str:
    """Return the part of a type's name before the first dot, e.g. ``'mmdet'``; without a dot, return ``default``."""
    package, dot, _ = build_full_name(kind).partition('.')
    return package if dot else default


def find_first_scope(part: Any) -> str:
    """Return the first framework prefix, e.g. ``'mmdet'``, of the types in ``part``, or ``''`` if no type has one."""
    if isinstance(part, dict):
        scope = get_scope(part.get('type'), '')
        if scope in SCOPES:
            return scope
        return next((found for found in map(find_first_scope, part.values()) if found), '')
    if isinstance(part, (list, tuple)):
        return next((found for found in map(find_first_scope, part) if found), '')
    return ''


def find_class(kind: Any, registry: str, default_scope: str) -> Optional[type]:
    """Return the class of a config's ``type``, or ``None`` if it is not installed or not registered.

    ``kind`` is a name, a scoped name, a dotted path or a class; ``registry`` is ``'MODELS'``, ``'DATASETS'``,
    ``'TRANSFORMS'``, ``'METRICS'`` or ``'TASK_UTILS'``.
    """
    if isinstance(kind, type):
        return kind
    if is_lazy(kind):
        kind = build_full_name(kind)
    if not isinstance(kind, str) or not kind:
        return None
    return _find_registered(get_scope(kind, default_scope), get_type_name(kind), registry) or _import_class(kind)


@lru_cache(maxsize=None)
def find_registry(scope: str, name: str) -> Any:
    """Return a registry of a framework, or ``None`` if the framework is not installed or cannot be imported."""
    try:
        with suppress_output():
            return getattr(importlib.import_module(f'{scope}.registry'), name, None)
    except (Exception, SystemExit):  # not installed, or a broken installation
        return None


def _find_registered(scope: str, name: str, registry: str) -> Optional[type]:
    found = find_registry(scope, registry) if scope else None
    found = find_registry('mmengine', registry) if found is None else found
    if found is None:
        return None
    try:
        cls = found.module_dict.get(name)
        if cls is None:  # the module that registers it may not be imported yet
            with suppress_output():
                cls = found.get(name)
    except (Exception, SystemExit):  # a module of the registry cannot be imported
        cls = _import_from_framework(scope, name, registry) if scope in SCOPES else None
    return cls if isinstance(cls, type) else None


#: Registry -> module of a framework that fills it.
_MODULES = {'MODELS': 'models', 'TASK_UTILS': 'models', 'DATASETS': 'datasets', 'TRANSFORMS': 'datasets'}


def _import_from_framework(scope: str, name: str, registry: str) -> Any:
    """Return a class after importing only its subpackage, e.g. ``mmdet.models``, because others may fail to import."""
    _import_class(f'{scope}.{_MODULES.get(registry, "evaluation")}.{name}')
    return find_registry(scope, registry).module_dict.get(name)


@lru_cache(maxsize=None)
def _import_class(path: str) -> Optional[type]:
    module, _, name = path.rpartition('.')
    if not module or module in SCOPES:
        return None
    try:
        with suppress_output():
            found = getattr(importlib.import_module(module), name, None)
    except (Exception, SystemExit):  # a user's module may raise anything
        return None
    return found if isinstance(found, type) else None


@lru_cache(maxsize=None)
def _find_parameter(cls: Optional[type], argument: str) -> Union[inspect.Parameter, bool]:
    """Return the constructor parameter ``argument``, False if it is missing, or True if a signature is unreadable."""
    for base in getattr(cls, '__mro__', ()):
        init = vars(base).get('__init__')
        if init is None or base is object:
            continue
        try:
            parameters = inspect.signature(init).parameters
        except (TypeError, ValueError):
            return True
        if argument in parameters:
            return parameters[argument]
        if not any(p.kind is p.VAR_KEYWORD for p in parameters.values()):
            return False
    return False


def get_default(cls: Optional[type], argument: str) -> Any:
    """Return the default of a constructor argument, or ``MISSING`` if no default can be found."""
    found = _find_parameter(cls, argument)
    return MISSING if isinstance(found, bool) else found.default


@contextlib.contextmanager
def suppress_output() -> Iterator[None]:
    """Suppress warnings, logs and prints of frameworks, models and data sets."""
    level = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
            warnings.simplefilter('ignore')
            yield
    finally:
        logging.disable(level)
