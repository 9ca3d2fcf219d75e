"""OpenMMLab's packages and their onedl forks: the same modules from other distributions.

The differences that matter to mmguard:

- the names of the distributions, and which versions accept each other (:mod:`mmguard.commands.env`);
- shipped configs (``'mmseg::...'``): the forks' mmengine looks for OpenMMLab's distribution, which is not installed
  (:func:`find_config_file`, :func:`build_base_source`);
- mmseg's cross entropy with class weights: OpenMMLab's version divides by the sum of ``class_weight[label]`` over all
  labels, and fails if an ignored label is not a class; the fork's version excludes ignored labels, and fails with
  ``avg_non_ignore=True`` (:func:`weighs_ignored_labels`).
"""

from __future__ import annotations

import importlib.util
from importlib import metadata
from pathlib import Path
from typing import Dict, Iterable, List, Optional, Sequence, Tuple

OPENMMLAB, ONEDL = 'OpenMMLab', 'onedl'

#: Stack -> module -> the distributions that provide it, the usual one first.
STACKS: Dict[str, Dict[str, Tuple[str, ...]]] = {
    OPENMMLAB: {
        'mmengine': ('mmengine', 'mmengine-lite'),
        'mmcv': ('mmcv', 'mmcv-lite', 'mmcv-full'),
        'mmseg': ('mmsegmentation',),
        'mmdet': ('mmdet',),
    },
    ONEDL: {
        'mmengine': ('onedl-mmengine',),
        'mmcv': ('onedl-mmcv',),
        'mmseg': ('onedl-mmsegmentation',),
        'mmdet': ('onedl-mmdetection',),
    },
}

#: Stack -> module -> install command.
INSTALL: Dict[str, Dict[str, str]] = {
    OPENMMLAB: {
        'mmengine': 'pip install mmengine',
        'mmcv': 'mim install "mmcv>=2.0.0,<2.2.0"',
        'mmseg': 'pip install mmsegmentation ftfy regex',
        'mmdet': 'pip install mmdet',
    },
    ONEDL: {module: f'pip install {names[0]}' for module, names in STACKS[ONEDL].items()},
}

#: Frameworks whose configs can be named as ``'mmseg::NAME.py'``.
FRAMEWORKS = ('mmengine', 'mmseg', 'mmdet', 'mmyolo', 'mmrotate', 'mmdet3d', 'mmpretrain')
#: Registry scopes of the guarded frameworks.
GUARDED_FRAMEWORKS = ('mmseg', 'mmdet')

#: Path of the shipped configs relative to the folder of a framework.
SHIPPED = '/.mim/configs/'


def install_command(module: str, stacks: Sequence[str] = ()) -> str:
    """Return the commands that install a module from the given stacks (default: all), joined with ", or ".

    Example:
        >>> install_command('mmdet')
        'pip install mmdet, or pip install onedl-mmdetection'
        >>> install_command('mmdet', ['onedl'])
        'pip install onedl-mmdetection'
    """
    return ', or '.join(INSTALL[stack][module] for stack in stacks or STACKS)


def list_distributions(module: str) -> Tuple[str, ...]:
    """Return the names of the distributions that provide a module, in all stacks.

    Example:
        >>> list_distributions('mmseg')
        ('mmsegmentation', 'onedl-mmsegmentation')
    """
    return tuple(name for modules in STACKS.values() for name in modules[module])


def find_stacks(installed: Iterable[str]) -> Dict[str, List[str]]:
    """Return the installed distributions as {stack: names}, without the stacks that have none.

    Example:
        >>> find_stacks(['numpy', 'onedl-mmengine', 'mmdet'])
        {'OpenMMLab': ['mmdet'], 'onedl': ['onedl-mmengine']}
    """
    there = set(installed)
    found = {
        stack: [name for names in modules.values() for name in names if name in there]
        for stack, modules in STACKS.items()
    }
    return {stack: names for stack, names in found.items() if names}


def is_onedl(module: str) -> bool:
    """Return True if a module was installed from its onedl fork."""
    for name in STACKS[ONEDL][module]:
        try:
            metadata.version(name)
            return True
        except metadata.PackageNotFoundError:
            continue
    return False


def find_module_folder(module: str) -> Optional[Path]:
    """Return the folder of a module without importing the module, or ``None`` if it is not installed."""
    try:
        spec = importlib.util.find_spec(module)
    except Exception:  # a broken path entry
        return None
    if spec is None:
        return None
    places = list(spec.submodule_search_locations or [])
    if places:
        return Path(places[0])
    return None if spec.origin is None else Path(spec.origin).parent


def find_config_file(name: str) -> str:
    """Return the file of a shipped config, ``'mmseg::pidnet/....py'``; return a name without ``::`` unchanged.

    Raises:
        ModuleNotFoundError: The framework is not installed, or not in :data:`FRAMEWORKS`.
        FileNotFoundError: The framework does not ship this config.
    """
    package, shipped, inner = name.partition('::')
    if not shipped:
        return name
    if package not in FRAMEWORKS:  # looking for another package may import it
        raise ModuleNotFoundError(f'{name}: {package} is not one of {", ".join(FRAMEWORKS)}', name=package)
    folder = find_module_folder(package)
    if folder is None:
        raise ModuleNotFoundError(f'{name}: {package} is not installed', name=package)
    path = folder / '.mim' / 'configs' / inner
    if not path.is_file():
        raise FileNotFoundError(f'{name}: {package} does not ship this config: {path} is missing')
    return str(path)


def build_base_source(name: str) -> str:
    """Return a ``_base_`` expression for a shipped config that works with OpenMMLab and with its onedl forks.

    Example:
        >>> build_base_source('mmseg::pspnet/pspnet_r50-d8_4xb2-40k_cityscapes-512x1024.py')
        "__import__('mmseg').__path__[0] + '/.mim/configs/pspnet/pspnet_r50-d8_4xb2-40k_cityscapes-512x1024.py'"
    """
    package, _, inner = name.partition('::')
    return f'__import__({package!r}).__path__[0] + {SHIPPED + inner!r}'


def weighs_ignored_labels() -> bool:
    """Return True if mmseg's cross entropy divides by a sum of class weights that includes those of ignored labels."""
    return not is_onedl('mmseg')
