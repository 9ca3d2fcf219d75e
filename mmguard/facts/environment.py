"""Facts about an installation: versions of packages, failed imports and GPUs."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Dict, List, Mapping, NamedTuple, Optional, Tuple

from mmguard.compat.stack import list_distributions

#: Module -> distributions that provide the module, the most common first.
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


class Cuda(NamedTuple):
    """The CUDA version that torch was built for, and the GPUs that torch can use.

    Args:
        version (str): CUDA version of the torch build, such as ``'12.1'``; empty for a CPU build.
        gpus (tuple[str, ...]): Names of the GPUs.
        capability (tuple[int, ...]): Compute capability of the newest GPU, such as ``(12, 0)``; empty without a GPU.
    """

    version: str
    gpus: Tuple[str, ...] = ()
    capability: Tuple[int, ...] = ()

    def __str__(self) -> str:
        built = f'CUDA {self.version}' if self.version else 'the CPU'
        return f'torch for {built}; {", ".join(self.gpus) or "no usable GPU"}'


#: Distribution -> version to install, or ``None`` to uninstall the distribution.
EnvironmentChanges = Mapping[str, Optional[str]]


@dataclass
class EnvironmentFacts:
    """Facts about an installation.

    Args:
        python, system (str): Version of Python, and the operating system.
        versions (dict[str, str]): Distribution -> version.
        missing (list[str]): Modules of ``DISTRIBUTIONS`` that cannot be found.
        errors (dict[str, str]): Module -> exception of its import.
        cuda (Cuda, optional): CUDA of torch and the GPUs; ``None`` if unknown.
        ops (bool, optional): True if mmcv has compiled ops; ``None`` without mmcv.
        reads_objects (bool, optional): True if mmengine can load, with any version of torch, checkpoints that contain
            more than tensors; ``None`` without mmengine.
    """

    python: str = ''
    system: str = ''
    versions: Dict[str, str] = field(default_factory=dict)
    missing: List[str] = field(default_factory=list)
    errors: Dict[str, str] = field(default_factory=dict)
    cuda: Optional[Cuda] = None
    ops: Optional[bool] = None
    reads_objects: Optional[bool] = None

    def find_installed(self, module: str) -> Dict[str, str]:
        """Return the installed distributions of a module as {name: version}."""
        return {name: self.versions[name] for name in DISTRIBUTIONS[module] if name in self.versions}

    def get_version(self, module: str) -> str:
        """Return the version of a module; empty if it is not installed."""
        return next(iter(self.find_installed(module).values()), '')

    def apply_changes(self, changes: EnvironmentChanges) -> EnvironmentFacts:
        """Return the facts expected after changes, assuming that every changed package can be imported.

        A changed mmcv is assumed to have compiled ops, unless it is mmcv-lite.
        """
        wanted = {**self.versions, **changes}
        versions = {name: version for name, version in wanted.items() if version is not None}
        changed = [module for module, names in DISTRIBUTIONS.items() if {*names} & {*changes}]
        errors = {
            module: why
            for module, why in self.errors.items()
            if module.partition('.')[0] not in changed and not any(name in why.lower() for name in changed)
        }
        ops = 'mmcv-lite' not in versions if 'mmcv' in changed else self.ops
        return replace(self, versions=versions, errors=errors, ops=ops)
