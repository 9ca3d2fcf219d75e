"""Modules that ``custom_imports`` names, found in the project of a config without any folder on ``sys.path``."""

from __future__ import annotations

import importlib
import os
import sys
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from typing import Any, Dict, List, Optional, Sequence, Set

from mmguard.errors import CannotRun
from mmguard.text import describe_exit


class ProjectFinder(MetaPathFinder):
    """Last finder of top-level modules, in some folders and only while ``custom_imports`` are imported.

    It serves :func:`import_modules` and the modules that it served, but not what those import in turn: a framework that
    tries an optional import finds nothing here.
    """

    def __init__(self) -> None:
        self.folders: List[str] = []
        self._served: Set[str] = set()

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> Optional[ModuleSpec]:
        frame: Any = sys._getframe()
        importer = 'importlib'
        while importer in ('importlib', '_frozen_importlib'):  # between the import statement and here
            frame = frame.f_back
            importer = str(frame.f_globals.get('__name__')).partition('.')[0]
        if path is not None or not (frame.f_globals is globals() or importer in self._served):
            return None
        self._served.add(fullname)
        return PathFinder.find_spec(fullname, self.folders)


FINDER = ProjectFinder()


def import_modules(custom_imports: Any, file: Optional[str] = None, strict: bool = False) -> Dict[str, Exception]:
    """Import the modules that ``custom_imports`` names; return those that fail, with their exceptions.

    They are found next to the config ``file``, in its project and in the working directory; without it, where the last
    call looked. ``strict`` raises the first failure that ``allow_failed_imports`` does not allow.
    """
    if file is not None:
        FINDER.folders = [*list_project(os.path.dirname(os.path.abspath(file))), os.getcwd()]
    custom: Dict[str, Any] = custom_imports if isinstance(custom_imports, dict) else {}
    names = custom.get('imports') or ()
    failed: Dict[str, Exception] = {}
    sys.meta_path.append(FINDER)
    try:
        for name in [names] if isinstance(names, str) else names:
            try:
                importlib.import_module(name)
            except SystemExit as error:
                raise CannotRun(f'custom_imports: {name} {describe_exit(error)} when it is imported') from error
            except Exception as error:  # a module of the user's may raise anything
                if strict and not (custom.get('allow_failed_imports') and isinstance(error, ImportError)):
                    raise ImportError(f'custom_imports: {name} cannot be imported: {error}') from error
                failed[name] = error
    finally:
        sys.meta_path.remove(FINDER)
    return failed


def list_project(folder: str, marks: Sequence[str] = ('.git', 'pyproject.toml', 'setup.py')) -> List[str]:
    """Return a folder and those above it up to the nearest that holds the first mark that exists; else only itself."""
    folders = [folder, *map(str, Path(folder).parents)]
    roots = (n for mark in marks for n, one in enumerate(folders) if os.path.exists(os.path.join(one, mark)))
    return folders[: next(roots, 0) + 1]
