"""Packages that commands need, and how to install them."""

from __future__ import annotations

from functools import wraps
from typing import Any, Callable, Dict, Optional, TypeVar, cast

from mmguard.compat.stack import install_command

_Function = TypeVar('_Function', bound=Callable[..., Any])

#: Command that installs the ``[scan]`` extra: if one of its packages is missing, most likely all are.
_INSTALL_SCAN = 'pip install pillow rich msgspec jinja2'

#: {module: command that installs it}.
INSTALL: Dict[str, str] = {
    **{module: install_command(module) for module in ('mmengine', 'mmcv', 'mmseg', 'mmdet')},
    **dict.fromkeys(('PIL', 'rich', 'jinja2', 'msgspec'), _INSTALL_SCAN),
    'cv2': 'pip install opencv-python-headless',
    'matplotlib': 'pip install matplotlib',
    'pandas': 'pip install pandas',
    'yaml': 'pip install pyyaml',
    'nibabel': 'pip install nibabel',
    'nnunetv2': 'pip install nnunetv2',
}


def find_install_command(error: ModuleNotFoundError) -> Optional[str]:
    """Return a text with the missing module and its install command, or ``None`` if mmguard does not need the module.

    Example:
        >>> find_install_command(ModuleNotFoundError("No module named 'PIL'", name='PIL'))
        'needs PIL, which is not installed: pip install pillow rich msgspec jinja2'
        >>> find_install_command(ModuleNotFoundError("No module named 'my_project'", name='my_project'))
    """
    module = (error.name or '').partition('.')[0]
    return f'needs {module}, which is not installed: {INSTALL[module]}' if module in INSTALL else None


def name_missing_package(function: _Function) -> _Function:
    """Wrap a public function so that the error for a missing package has the command that installs the package."""

    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except ModuleNotFoundError as error:
            needed = find_install_command(error)
            if needed is None:
                raise
            raise ModuleNotFoundError(f'mmguard.{function.__qualname__} {needed}', name=error.name) from error

    return cast(_Function, call)
