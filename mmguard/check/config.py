"""Reads a config without building anything of it."""

from __future__ import annotations

import importlib
import os
import sys
import warnings
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Dict, List, Optional

from mmguard.check.classes import SCOPES, scope_in
from mmguard.stack import config_file

if TYPE_CHECKING:  # `mmguard explain` tells the rules without mmengine, too
    from mmengine.config import Config


@dataclass
class ReadConfig:
    """A config as plain dicts, lists and strings.

    Args:
        data (dict): What the config says; classes of the new style are dotted strings.
        file (str): Where it was read from.
        notes (list[str]): What could not be looked at, and why.
    """

    data: Dict[str, Any]
    file: str = '<config>'
    notes: List[str] = field(default_factory=list)

    @property
    def scope(self) -> str:
        """``'mmseg'`` or ``'mmdet'``: the config's ``default_scope``, else what its types say; ``''``: unknown."""
        scope = self.data.get('default_scope')
        if isinstance(scope, str):
            return scope
        found = scope_in(self.data.get('model')) or scope_in(self.data)
        if found:
            return found
        # A file of models or data sets alone, as those in _base_, does not say. Only mmseg has SegDataPreProcessor.
        preprocessor = self.part('model').get('data_preprocessor') or self.data.get('data_preprocessor')
        kind = str(preprocessor.get('type')) if isinstance(preprocessor, dict) else ''
        return {'SegDataPreProcessor': 'mmseg', 'DetDataPreprocessor': 'mmdet'}.get(kind, '')

    def part(self, name: str) -> Dict[str, Any]:
        """A dict of the config's top level; empty where there is none."""
        found = self.data.get(name)
        return found if isinstance(found, dict) else {}


def read_config(file: str) -> ReadConfig:
    """Reads a config file, of the text or of the pure-Python style, or one that ships (``'mmseg::pidnet/....py'``).

    Its ``custom_imports`` are honoured, those of the working directory included, as ``python tools/train.py`` in a
    project does. One that fails becomes a note: the rest of the config can still be checked.

    Raises:
        Exception: Whatever mmengine raises for a file that is no config.
    """
    from mmengine.config import Config

    with warnings.catch_warnings():
        warnings.simplefilter('ignore')
        config = Config.fromfile(config_file(file), import_custom_modules=False)
    return from_mmengine(config, file)


def from_mmengine(config: Config, file: Optional[str] = None) -> ReadConfig:
    """The same for a config that is already loaded."""
    read = ReadConfig(config.to_dict(), file or config.filename or '<config>')
    read.notes += _import_custom(read.data.get('custom_imports'))
    return read


def _import_custom(custom: Any) -> List[str]:
    names = custom.get('imports') if isinstance(custom, dict) else None
    names = [names] if isinstance(names, str) else names
    notes = []
    here = os.getcwd()
    if names and here not in sys.path:
        sys.path.append(here)
    for name in names or ():
        try:
            importlib.import_module(name)
        except Exception as error:  # a module of the user's may raise anything
            notes.append(f'custom_imports: {name} does not import ({error}); its classes were not looked at')
    return notes


__all__ = ['SCOPES', 'ReadConfig', 'from_mmengine', 'read_config']
