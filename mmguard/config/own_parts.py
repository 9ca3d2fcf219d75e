"""mmguard's own lines in a config: transforms, losses and hooks, and what is misspelt for one."""

from __future__ import annotations

import copy
import importlib
from difflib import get_close_matches
from typing import Any, Dict, List, Optional

from mmguard.config.classes import class_of, full_name, is_lazy, scope_of
from mmguard.config.guards import TRANSFORMS
from mmguard.config.parts import Part, losses, transforms, walk
from mmguard.config.read import ReadConfig

LABEL_HOOK = 'LabelGuardHook'
HOOKS = (LABEL_HOOK, 'RankGuardHook', 'FlightRecorderHook')
#: How alike a name must be to one of ours to be taken for it.
_ALIKE = 0.8


def hooks(config: ReadConfig) -> List[Part]:
    """All hooks of the config, in ``custom_hooks`` and ``default_hooks``."""
    found = []
    for key in ('custom_hooks', 'default_hooks'):
        for path, hook in walk(config.data.get(key), key):
            if 'type' in hook:
                found.append(Part(path, hook, scope_of(hook['type'], config.scope), 'HOOKS'))
    return found


def own_transforms(config: ReadConfig) -> List[Part]:
    """The guards in the pipelines, misspelt ones included."""
    return [one for one in transforms(config) if one.name.startswith('Guard') or _is_like(one.name, TRANSFORMS)]


def own_losses(config: ReadConfig) -> List[Part]:
    """The guarded losses, misspelt ones included."""
    return [one for one in losses(config) if one.name.startswith('Guard')]


def own_hooks(config: ReadConfig) -> List[Part]:
    """mmguard's hooks, misspelt ones included."""
    return [one for one in hooks(config) if _is_like(one.name, HOOKS)]


def own_parts(config: ReadConfig) -> List[Part]:
    """All lines of mmguard's own."""
    return [*own_transforms(config), *own_losses(config), *own_hooks(config)]


def _is_like(name: str, names: Any) -> bool:
    return bool(get_close_matches(name, names, 1, _ALIKE))


def is_known(part: Part) -> bool:
    """True if a line names a class of mmguard's, or one that is registered by somebody else."""
    _register()
    return class_of(part.config['type'], part.registry, part.scope) is not None


def meant(part: Part) -> str:
    """Return the name that a misspelt one is most like; empty if none is."""
    known: Any = {'TRANSFORMS': TRANSFORMS, 'HOOKS': HOOKS}.get(part.registry)
    if known is None:
        module = importlib.import_module(
            f'mmguard.losses.{part.scope if part.scope in ("mmdet", "mmpretrain") else "mmseg"}'
        )
        known = list(module.LOSSES)
    return next(iter(get_close_matches(part.name, known, 1, _ALIKE)), '')


def why_not_built(part: Part) -> str:
    """Build a line of ours alone, as the run does; return what that raises, empty if it can be built."""
    _register()
    registry = getattr(importlib.import_module(f'{part.scope or "mmengine"}.registry'), part.registry)
    try:
        registry.build(_plain(part.config))
    except Exception as error:  # whatever a class raises
        return ' '.join(str(error).split()) or type(error).__name__
    return ''


def _register() -> None:
    importlib.import_module('mmguard').register()


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(map(_plain, value))
    return full_name(value) if is_lazy(value) else copy.deepcopy(value)


def imports_of(config: ReadConfig) -> Optional[List[str]]:
    """Return the modules of ``custom_imports``; ``None`` where types are classes or full paths, which need none."""
    imports: Dict[str, Any] = config.part('custom_imports')
    names = imports.get('imports') or []
    names = [names] if isinstance(names, str) else list(names)
    plain = [part for part in own_parts(config) if '.' not in str(part.config['type']).partition('.')[2]]
    return names if plain else None


def is_imported(names: List[str]) -> bool:
    """True if one of these modules brings mmguard."""
    return any(name.partition('.')[0] == 'mmguard' for name in names)
