"""mmguard's own lines in a config, misspelt ones included, and what keeps one from being built."""

from __future__ import annotations

import importlib
import re
from difflib import get_close_matches
from typing import List

from mmguard.config.classes import registry_of
from mmguard.config.guards import HOOKS, TRANSFORMS, named_losses
from mmguard.config.parts import Part, hooks, losses, transforms
from mmguard.config.read import ReadConfig
from mmguard.config.tree import by_name

#: A name with Guard in it, or with its letters in another order (not Grad).
_GUARD = re.compile(r'G(?!rad)[uar]{2,4}d(ed)?')


def own_lines(config: ReadConfig) -> List[Part]:
    """Return the guards, guarded losses and hooks of mmguard, and what nobody knows that is spelt like one."""
    importlib.import_module('mmguard').register()
    likely = [part for part in (*transforms(config), *losses(config), *hooks(config)) if _GUARD.search(part.name)]
    return [part for part in likely if (is_own(part) if part.cls else part.name.startswith('Guard') or meant(part))]


def is_own(part: Part) -> bool:
    """Return True if mmguard has the class."""
    return part.cls is not None and part.cls.__module__.partition('.')[0] == 'mmguard'


def meant(part: Part) -> str:
    """Return the name that a misspelt one is most like; empty if none is."""
    known = {'TRANSFORMS': TRANSFORMS, 'HOOKS': HOOKS}.get(part.registry)
    if known:
        return next(iter(get_close_matches(part.name, known, 1, 0.7)), '')
    stems = {_GUARD.sub('', name): name for name in named_losses(part.scope or 'mmseg')}  # Guarded says nothing
    return next((stems[stem] for stem in get_close_matches(_GUARD.sub('', part.name), stems, 1, 0.82)), '')


def build_error(part: Part) -> str:
    """Build a line of mmguard by itself, as the run does; return what that raises, empty if it can be built."""
    registry = registry_of(part.scope or 'mmengine', part.registry) or registry_of('mmengine', part.registry)
    try:
        registry.build(by_name(part.config))
    except Exception as error:  # a loss of the user's inside may raise anything
        text = ' '.join(str(error).split()).partition(' Please check')[0]  # mmengine's help, with a link
        return text.strip("'.") or type(error).__name__
    return ''
