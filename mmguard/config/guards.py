"""mmguard's own parts in a config: existing ones, and replacements of stock parts."""

from __future__ import annotations

import importlib
import re
from difflib import get_close_matches
from importlib.util import find_spec
from typing import Any, Dict, List

from mmguard.config.changes import Changes, name_types
from mmguard.config.classes import SCOPES, build_full_name, find_registry
from mmguard.config.parts import HOOK, Part, find_hooks, find_label_guard_hooks, find_losses, find_transforms
from mmguard.config.read import ReadConfig
from mmguard.config.start_check import GUARD_TRANSFORMS, HOOKS
from mmguard.labels.loss_selection import is_guarded_type

GUARDED_LOSSES = ('GuardedCrossEntropyLoss', 'GuardedLoss')


def is_guarded(loss: Part) -> bool:
    """True if a loss is a guarded loss or is wrapped in one."""
    return is_guarded_type(loss.name) or re.search(r'\bloss\w*(\[\d+\])?\.loss$', loss.path) is not None


def add_reporting(config: ReadConfig) -> Changes:
    """Add to an edit that inserts a guard the import of mmguard and the hook, if missing."""
    kind = build_full_name(config.part('model').get('type'))
    is_full = kind.count('.') > 1  # a class of the new style, or its full path, which mmengine imports
    imports = config.part('custom_imports')
    found: Changes = ()
    if not is_full and 'mmguard' not in find_custom_imports(config):
        written = {'imports': [], 'allow_failed_imports': False, **imports}
        found = (('custom_imports', {**written, 'imports': [*find_custom_imports(config), 'mmguard']}),)
    if not find_label_guard_hooks(config):
        hook = {'type': f'mmguard.{HOOK}' if is_full else HOOK}
        found = (*found, ('custom_hooks', [*(config.data.get('custom_hooks') or []), hook]))
    return found


def find_custom_imports(config: ReadConfig) -> List[str]:
    """Return the modules in ``custom_imports``."""
    names = config.part('custom_imports').get('imports') or []
    return [names] if isinstance(names, str) else list(names)


def guard_loss(loss: Dict[str, Any], framework: str) -> Dict[str, Any]:
    """Return GuardedX for a stock loss X, and ``GuardedLoss`` around any other loss.

    Example:
        >>> guard_loss({'type': 'CrossEntropyLoss', 'use_sigmoid': True}, 'mmdet')
        {'type': 'GuardedCrossEntropyLoss', 'use_sigmoid': True}
        >>> guard_loss({'type': 'MyLoss', 'gamma': 2.0}, 'mmseg')
        {'type': 'GuardedLoss', 'loss': {'type': 'MyLoss', 'gamma': 2.0}}
    """
    kind = loss['type']
    package, _, rest = kind.partition('.')
    name = f'Guarded{kind.rpartition(".")[2]}'
    if (not rest or package in SCOPES) and name in list_guarded_losses(package if rest else framework):
        return {**loss, 'type': build_guarded_type(kind, name, framework)}
    outer = build_guarded_type(kind, 'GuardedLoss', framework)
    if framework != 'mmdet':
        return {'type': outer, 'loss': loss}
    # mmdet's heads read arguments next to a loss's type before it is built.
    inner = rest if package == 'mmdet' and '.' not in rest else kind  # mmdet's GuardedLoss needs no prefix of mmdet
    return {'type': outer, 'loss': inner, **{key: value for key, value in loss.items() if key != 'type'}}


def list_guarded_losses(scope: str) -> List[str]:
    """Return the names of the guarded losses in a scope; without mmengine, only those common to all scopes."""
    if scope not in SCOPES or find_spec('mmengine') is None:
        return list(GUARDED_LOSSES)
    return list(importlib.import_module(f'mmguard.losses.{scope}').LOSSES)


def build_guarded_type(kind: str, name: str, framework: str) -> str:
    """Return GuardedX for a type X, in the same scope and style."""
    package, dot, rest = kind.partition('.')
    if '.' in rest:  # the full path of a class: a new-style config that was dumped
        return f'mmguard.losses.{framework}.{name}'
    return f'{package}.{name}' if dot else name


#: A name with Guard in it, or with its letters in another order (not Grad).
_GUARD = re.compile(r'G(?!rad)[uar]{2,4}d(ed)?')


def find_own_parts(config: ReadConfig) -> List[Part]:
    """Return mmguard's transforms, losses and hooks in a config, and unknown types with similar names.

    The list is empty without mmengine, which knows the types.
    """
    if find_spec('mmengine') is None:
        return []
    likely = [
        part
        for part in (*find_transforms(config), *find_losses(config), *find_hooks(config))
        if (part.written or part.registry == 'TRANSFORMS') and _GUARD.search(part.name)
    ]
    if likely:
        importlib.import_module('mmguard').register()
    return [
        part
        for part in likely
        if (_is_own(part.cls) if part.cls else part.name.startswith('Guard') or find_similar_name(part))
    ]


def _is_own(cls: type) -> bool:
    return cls.__module__.partition('.')[0] == 'mmguard'


def find_similar_name(part: Part) -> str:
    """Return the mmguard name most similar to a name; ``''`` if none is."""
    known = {'TRANSFORMS': GUARD_TRANSFORMS, 'HOOKS': HOOKS}.get(part.registry)
    if known:
        return next(iter(get_close_matches(part.name, known, 1, 0.7)), '')
    losses = list_guarded_losses(part.scope or 'mmseg')
    longer = [name for name in losses if part.name != 'Guarded' and name.lower().startswith(part.name.lower())]
    if longer:
        return min(longer, key=len)
    stems = {_GUARD.sub('', name): name for name in losses}  # the prefix "Guarded" does not distinguish names
    return next((stems[stem] for stem in get_close_matches(_GUARD.sub('', part.name), stems, 1, 0.82)), '')


def build_error(part: Part) -> str:
    """Build a part of mmguard as the run would; return the error message, ``''`` if it succeeds."""
    config, head = name_types(part.config), part.owner if part.registry == 'MODELS' else None
    if head is not None and (head.cls is None or head.cls.__module__.partition('.')[0] not in SCOPES):
        return ''  # a user's head may change the arguments first
    if head is not None and head.is_a('DETRHead'):  # it builds a single list of weights from these
        config = {key: value for key, value in config.items() if key not in ('class_weight', 'bg_cls_weight')}
    registry = find_registry(part.scope or 'mmengine', part.registry) or find_registry('mmengine', part.registry)
    try:
        registry.build(config)
    except Exception as error:  # a user's loss inside may raise anything
        said = error.args[0] if isinstance(error, KeyError) and error.args else error  # str() would quote it
        text = ' '.join(str(said).split()).partition(' Please check')[0]  # mmengine's help, with a link
        return text.rstrip('.') or type(error).__name__
    return ''
