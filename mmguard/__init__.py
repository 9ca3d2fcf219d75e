"""mmguard: keep a bad label from killing, or quietly spoiling, a training run.

Transforms, losses and hooks are registered automatically if mmengine is imported, before or after mmguard.
:mod:`mmguard.functional`, :mod:`mmguard.nn`, :mod:`mmguard.distributed` and :mod:`mmguard.detection` need only torch
and numpy. These packages and scans of label files do not import mmengine.
"""

import importlib as _importlib
import importlib.util as _util
import sys as _sys
import warnings as _warnings
from importlib.abc import MetaPathFinder as _MetaPathFinder
from types import ModuleType as _ModuleType
from typing import Any as _Any
from typing import List as _List

from mmguard.labels.tally import LabelGuardError, Tally
from mmguard.version import __version__

__all__ = [
    'LabelGuardError', 'Tally', '__version__', 'check', 'dry_run', 'explain', 'read_log', 'register', 'scan',
]  # fmt: skip

#: {public name that is imported at its first use: module that defines it}.
_LAZY = {
    'LabelGuard': 'mmguard.loops',
    'check_target': 'mmguard.functional.check_target',
    'read_log': 'mmguard.log.guard_log',
    **dict.fromkeys(('Diagnosis', 'check', 'dry_run', 'explain', 'scan'), 'mmguard.commands.api'),
}
#: Public subpackages, which are available after `import mmguard`, as torch.nn is.
_PACKAGES = ('detection', 'distributed', 'functional', 'nn', 'testing')

#: {public name that needs a framework: module that defines it}.
_OF_FRAMEWORKS = {
    'FlightRecorderHook': 'mmguard.hooks',
    'LabelGuardHook': 'mmguard.hooks',
    'RankGuardHook': 'mmguard.hooks',
    'GuardedCrossEntropyLoss': 'mmguard.losses',
    'GuardedLoss': 'mmguard.losses',
    'GuardInstanceLabels': 'mmguard.transforms',
    'GuardSegLabels': 'mmguard.transforms',
    'guard_config': 'mmguard.commands.apply.guarded',
}


def register() -> None:
    """Register transforms, losses and hooks with mmengine, and with mmseg and mmdet if these can be imported.

    ``import mmguard`` calls this function if mmengine is already imported, as when a config imports mmguard with
    ``custom_imports``. Otherwise mmguard calls it when ``mmengine.runner``, ``mmseg.registry`` or ``mmdet.registry`` is
    imported, or when a class such as ``mmguard.GuardedLoss`` is first used. Further calls are harmless.

    Raises:
        ImportError: mmengine is not installed, or cannot be imported.
    """
    from mmguard.registration import register_all

    register_all()


def _register_or_warn() -> None:
    try:
        register()
    except Exception as error:  # mmguard must not break an import of mmengine for another purpose
        _warnings.warn(
            f'mmguard: registration failed: {error}. Run `mmguard env` to check the installation', stacklevel=2
        )


class _RegisterAfterImport(_MetaPathFinder):
    """Import finder that calls :func:`register` once, after the first import of one of its ``modules``."""

    # Not mmengine itself, nor its registry: mmcv imports them while half imported, and cannot be imported at that
    # point.
    modules = ('mmengine.runner', 'mmseg.registry', 'mmdet.registry')

    def find_spec(self, fullname: str, path: _Any = None, target: _Any = None) -> _Any:
        if fullname not in self.modules or self not in _sys.meta_path:
            return None
        place = _sys.meta_path.index(self)
        _sys.meta_path.remove(self)
        spec = _util.find_spec(fullname)  # the module was found by another finder
        if spec is None or spec.loader is None:
            _sys.meta_path.insert(place, self)
            return spec
        exec_module = spec.loader.exec_module

        def exec_module_and_register(module: _ModuleType) -> None:
            exec_module(module)
            _register_or_warn()

        spec.loader.exec_module = exec_module_and_register  # type: ignore[method-assign]
        return spec


if _sys.modules.get('mmengine') is not None:
    _register_or_warn()
else:
    _sys.meta_path.insert(0, _RegisterAfterImport())


def __getattr__(name: str) -> _Any:
    if name in _LAZY:
        return getattr(_importlib.import_module(_LAZY[name]), name)
    if name in _PACKAGES:
        return _importlib.import_module(f'mmguard.{name}')
    if name in _OF_FRAMEWORKS:
        try:
            register()  # the other classes may be named in a config
            return getattr(_importlib.import_module(_OF_FRAMEWORKS[name]), name)
        except ImportError as error:
            raise AttributeError(f'mmguard.{name} needs a module that cannot be imported: {error}') from error
    raise AttributeError(f'module {__name__!r} has no attribute {name!r}')


def __dir__() -> _List[str]:
    return sorted({*__all__, *_LAZY, *_PACKAGES, *_OF_FRAMEWORKS})
