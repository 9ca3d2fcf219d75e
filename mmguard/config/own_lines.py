"""mmguard's own lines in a config, misspelt ones included, and what keeps one from being built."""

from __future__ import annotations

import importlib
import re
from difflib import get_close_matches
from importlib.util import find_spec
from typing import List

from mmguard.config.classes import SCOPES, registry_of
from mmguard.config.guards import HOOKS, TRANSFORMS, named_losses
from mmguard.config.parts import Part, hooks, losses, transforms
from mmguard.config.read import ReadConfig
from mmguard.config.tree import by_name

#: A name with Guard in it, or with its letters in another order (not Grad).
_GUARD = re.compile(r'G(?!rad)[uar]{2,4}d(ed)?')


def own_lines(config: ReadConfig) -> List[Part]:
    """Return mmguard's transforms, losses and hooks in a config, and unknown types that are spelt like one.

    The list is empty without mmengine, which knows the types.
    """
    if find_spec('mmengine') is None:
        return []
    likely = [part for part in (*transforms(config), *losses(config), *hooks(config)) if _GUARD.search(part.name)]
    if likely:
        importlib.import_module('mmguard').register()
    return [
        part for part in likely if (_is_own(part.cls) if part.cls else part.name.startswith('Guard') or meant(part))
    ]


def _is_own(cls: type) -> bool:
    return cls.__module__.partition('.')[0] == 'mmguard'


def meant(part: Part) -> str:
    """Return the name of mmguard's that a name is most like; empty if none is."""
    known = {'TRANSFORMS': TRANSFORMS, 'HOOKS': HOOKS}.get(part.registry)
    if known:
        return next(iter(get_close_matches(part.name, known, 1, 0.7)), '')
    stems = {_GUARD.sub('', name): name for name in named_losses(part.scope or 'mmseg')}  # Guarded says nothing
    return next((stems[stem] for stem in get_close_matches(_GUARD.sub('', part.name), stems, 1, 0.82)), '')


def build_error(part: Part) -> str:
    """Build a line of mmguard by itself, as the run does; return what that raises, empty if it can be built."""
    config, head = by_name(part.config), part.owner if part.registry == 'MODELS' else None
    if head is not None and (head.cls is None or head.cls.__module__.partition('.')[0] not in SCOPES):
        return ''  # a head of the user's may change the arguments before
    if head is not None and head.is_a('DETRHead'):  # it makes one list of weights of these
        config = {key: value for key, value in config.items() if key not in ('class_weight', 'bg_cls_weight')}
    registry = registry_of(part.scope or 'mmengine', part.registry) or registry_of('mmengine', part.registry)
    try:
        registry.build(config)
    except Exception as error:  # a loss of the user's inside may raise anything
        text = ' '.join(str(error).split()).partition(' Please check')[0]  # mmengine's help, with a link
        return text.strip("'.") or type(error).__name__
    return ''
