"""Facts about an installation: packages, versions, the driver; and their changes."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import Any, Dict, List, Optional, Sequence, Tuple

from mmguard.compat.stack import list_distributions

#: Module -> the distributions that may provide it, the usual one first.
DISTRIBUTIONS: Dict[str, Tuple[str, ...]] = {
    'torch': ('torch',),
    'numpy': ('numpy',),
    'cv2': (
        'opencv-python',
        'opencv-python-headless',
        'opencv-contrib-python',
        'opencv-contrib-python-headless',
    ),
    'mmengine': list_distributions('mmengine'),
    'mmcv': list_distributions('mmcv'),
    'mmseg': list_distributions('mmseg'),
    'mmdet': list_distributions('mmdet'),
    'nnunetv2': ('nnunetv2',),
    'torchvision': ('torchvision',),
    'mmguard': ('mmguard',),
}

#: Packages to install: (distribution, version); ``None``: uninstall.
EnvironmentChanges = Tuple[Tuple[str, Optional[str]], ...]


@dataclass
class EnvironmentFacts:
    """Facts about an installation.

    Args:
        python, system (str): Versions.
        versions (dict[str, str]): Distribution -> version.
        missing (list[str]): Modules of ``DISTRIBUTIONS`` that cannot be found.
        errors (dict[str, str]): Module -> why it cannot be imported.
        torch_cuda (str, optional): The CUDA that torch was built for; ``None``: a CPU build.
        cuda_available (bool, optional): True if torch can use a GPU; ``None``: unknown.
        driver (str, optional): Version of the NVIDIA driver.
        driver_cuda (str, optional): The newest CUDA that the driver runs.
        gpus (list[str]): Names of the GPUs.
        ops (bool, optional): True if mmcv has compiled ops; ``None``: no mmcv.
        accepts (dict[str, tuple]): ``'mmseg'``, ``'mmdet'`` -> the versions of mmcv that they accept, from, below
            (empty: no limit).
        tried (dict[str, list[str]]): ``'torch'``, ``'numpy'`` -> the versions that mmguard was run with, oldest first.
    """

    python: str = ''
    system: str = ''
    versions: Dict[str, str] = field(default_factory=dict)
    missing: List[str] = field(default_factory=list)
    errors: Dict[str, str] = field(default_factory=dict)
    torch_cuda: Optional[str] = None
    cuda_available: Optional[bool] = None
    driver: Optional[str] = None
    driver_cuda: Optional[str] = None
    gpus: List[str] = field(default_factory=list)
    ops: Optional[bool] = None
    accepts: Dict[str, Tuple[str, str]] = field(default_factory=dict)
    tried: Dict[str, List[str]] = field(default_factory=dict)

    def find_installed(self, module: str) -> Dict[str, str]:
        """Return distribution -> version for the installed distributions of a module."""
        return {name: self.versions[name] for name in DISTRIBUTIONS[module] if name in self.versions}

    def get_version(self, module: str) -> str:
        """Return the version of a module; empty if it is not installed."""
        return next(iter(self.find_installed(module).values()), '')

    def is_from(self, module: str, low: str, high: str = '') -> bool:
        """Return True if a module is installed in a version from ``low`` to below ``high`` (empty: no limit)."""
        found = self.get_version(module)
        return bool(found) and is_within(found, low, high)

    def apply_changes(self, changes: EnvironmentChanges) -> EnvironmentFacts:
        """Return the facts after changes: a new package can be imported, and mmcv has ops, unlike mmcv-lite."""
        versions, errors = dict(self.versions), dict(self.errors)
        missing, ops, accepts = list(self.missing), self.ops, dict(self.accepts)
        for name, value in changes:
            if value is None:
                versions.pop(name, None)
            else:
                versions[name] = value
            for module in list_modules(name):
                there = any(one in versions for one in DISTRIBUTIONS[module])
                missing = [one for one in missing if one != module] + ([] if there else [module])
                errors = {one: why for one, why in errors.items() if one.partition('.')[0] != module}
                accepts.pop(module, None)  # the limits of another version are unknown
                if module == 'mmcv':
                    ops = 'mmcv-lite' not in versions if there else None
            if name == 'numpy':
                errors = {one: why for one, why in errors.items() if 'numpy' not in why.lower()}
        return replace(self, versions=versions, errors=errors, missing=missing, ops=ops, accepts=accepts)


def format_module(module: str) -> str:
    """Return a module's name as in the table: ``'cv2 (opencv-python)'``."""
    usual = DISTRIBUTIONS[module][0]
    return module if module in DISTRIBUTIONS[module] else f'{module} ({usual})'


def list_modules(distribution: str) -> Sequence[str]:
    """Return the modules that a distribution provides."""
    return [module for module, names in DISTRIBUTIONS.items() if distribution in names]


def is_within(version: str, low: str, high: str = '') -> bool:
    """Return True if a version is at least ``low`` and below ``high``; empty: no limit."""
    key = build_version_key(version)
    return (not low or key >= build_version_key(low)) and (not high or key < build_version_key(high))


def build_version_key(text: str) -> Tuple[Any, ...]:
    """Return a key to compare versions: ``2.0.0rc4`` before ``2.0.0``; ``+cu118`` etc. is ignored.

    Example:
        >>> build_version_key('2.0.0rc4') < build_version_key('2.0.0') < build_version_key('2.13.0+cpu')
        True
    """
    found = re.match(r'(\d+(?:\.\d+)*)(?:\.?(a|b|rc|dev)(\d*))?', text)
    if found is None:
        return ((0, 0, 0, 0), 0, 0)
    numbers = tuple(int(part) for part in found.group(1).split('.'))
    stage = {'dev': -4, 'a': -3, 'b': -2, 'rc': -1, None: 0}[found.group(2)]
    return ((*numbers, 0, 0, 0, 0)[:4], stage, int(found.group(3) or 0))
