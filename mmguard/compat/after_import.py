"""Callbacks that run after a module is imported."""

from __future__ import annotations

import importlib.util
import sys
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any, Callable, Optional, Tuple


def call_after_import(modules: Tuple[str, ...], call: Callable[[], None]) -> None:
    """Call ``call`` once, after the first import of any of ``modules``."""
    sys.meta_path.insert(0, _ImportFinder(modules, call))


class _ImportFinder(MetaPathFinder):
    def __init__(self, modules: Tuple[str, ...], call: Callable[[], None]) -> None:
        self.modules = modules
        self.call = call

    def find_spec(self, fullname: str, path: Any = None, target: Optional[ModuleType] = None) -> Optional[ModuleSpec]:
        if fullname not in self.modules or self not in sys.meta_path:
            return None
        place = sys.meta_path.index(self)
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(fullname)  # the module was found by another finder
        if spec is None or spec.loader is None:
            sys.meta_path.insert(place, self)
            return spec
        exec_module = spec.loader.exec_module

        def exec_module_and_call(module: ModuleType) -> None:
            exec_module(module)
            self.call()

        spec.loader.exec_module = exec_module_and_call  # type: ignore[method-assign]
        return spec
