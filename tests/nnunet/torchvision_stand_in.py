"""Lets nnU-Net's search for a trainer pass where torchvision is missing (its wheel for CUDA cannot be loaded on a CPU).

nnU-Net imports all of its own trainers before it looks elsewhere; one of them imports timm, and timm torchvision.
Nothing of torchvision is used in these tests: every name in it is an empty class here.
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import importlib.util
import os
import shutil
import sys
from pathlib import Path
from types import ModuleType
from typing import Any, Dict, Optional


class _Name(type):
    def __getattr__(cls, name: str) -> Any:
        if name.startswith('__'):
            raise AttributeError(name)
        return _Name(name, (), {})


class _Module(ModuleType):
    def __getattr__(self, name: str) -> Any:
        if name.startswith('__'):
            raise AttributeError(name)
        return _Name(name, (), {})


class _StandIn(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Optional[importlib.machinery.ModuleSpec]:
        if name.partition('.')[0] != 'torchvision':
            return None
        return importlib.machinery.ModuleSpec(name, self, is_package=True)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        return _Module(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        pass


def put_into(folder: Path) -> Dict[str, str]:
    """The environment variables of a Python that has it."""
    shutil.copy(__file__, folder / 'sitecustomize.py')  # Python runs a module of that name when it starts
    repository = Path(__file__).resolve().parents[2]
    return {'PYTHONPATH': os.pathsep.join([str(folder), str(repository)])}


if __name__ == 'sitecustomize' and importlib.util.find_spec('torchvision') is None:
    sys.meta_path.append(_StandIn())
