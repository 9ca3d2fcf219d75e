"""Modules that ``custom_imports`` names, found in the project of a config without any folder on ``sys.path``."""

from __future__ import annotations

import importlib
import os
import sys
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from typing import Any, Dict, List, Optional, Set

from mmguard.errors import CannotRun
from mmguard.text import describe_exit

#: Modules of the import system, whose frames lie between an import statement and a finder.
_IMPORTLIB = ('importlib', '_frozen_importlib', '_frozen_importlib_external')
#: Files at the root of a project, the surest first.
_MARKS = ('.git', 'pyproject.toml', 'setup.py')


class ProjectFinder(MetaPathFinder):
    """Last finder of top-level modules, in some folders and only while ``custom_imports`` are imported.

    It serves :func:`import_modules` and the modules that it served, but not what those import in turn: a framework that
    tries an optional import finds nothing here.
    """

    def __init__(self) -> None:
        self.folders: List[str] = []
        self._served: Set[str] = set()

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> Optional[ModuleSpec]:
        frame: Any = sys._getframe(1)
        while _get_package(frame) in _IMPORTLIB:
            frame = frame.f_back
        if path is not None or not (frame.f_globals is globals() or _get_package(frame) in self._served):
            return None
        spec = PathFinder.find_spec(fullname, self.folders)
        if spec is not None:
            self._served.add(fullname)
        return spec


def _get_package(frame: Any) -> str:
    return str(frame.f_globals.get('__name__')).partition('.')[0]


FINDER = ProjectFinder()


def import_modules(custom_imports: Any, file: Optional[str] = None) -> Dict[str, Exception]:
    """Import the modules that ``custom_imports`` names; return those that fail, with their exceptions.

    Args:
        custom_imports: Value in the config.
        file (str, optional): The config. Modules are found next to it, in its repository and in the working directory.
            Default: the places of the last call.

    Raises:
        CannotRun: A module ends the program.
    """
    if file is not None:
        FINDER.folders = [*list_project(os.path.dirname(os.path.abspath(file)), *_MARKS), os.getcwd()]
    names = custom_imports.get('imports') if isinstance(custom_imports, dict) else None
    failed: Dict[str, Exception] = {}
    sys.meta_path.append(FINDER)
    try:
        for name in [names] if isinstance(names, str) else names or ():
            try:
                importlib.import_module(name)
            except SystemExit as error:
                raise CannotRun(f'custom_imports: {name} {describe_exit(error)} when it is imported') from error
            except Exception as error:  # a module of the user's may raise anything
                failed[name] = error
    finally:
        sys.meta_path.remove(FINDER)
    return failed


def require_modules(custom_imports: Any, file: Optional[str] = None) -> None:
    """Import the modules that ``custom_imports`` names; raise the first failure that it does not allow."""
    for name, error in import_modules(custom_imports, file).items():
        if not (custom_imports.get('allow_failed_imports') and isinstance(error, ImportError)):
            raise ImportError(f'custom_imports: {name} cannot be imported: {error}') from error


def list_project(folder: str, *marks: str) -> List[str]:
    """Return a folder and those above it, up to the nearest with the first mark that exists, such as ``'.git'``.

    Without a mark it is the folder only.
    """
    folders = [Path(folder), *Path(folder).parents]
    roots = (n for mark in marks for n, one in enumerate(folders) if (one / mark).exists())
    return list(map(str, folders[: next(roots, 0) + 1]))
