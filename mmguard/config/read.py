"""Reading of a config without building anything."""

from __future__ import annotations

import importlib
import os
import sys
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Dict, List, Optional

from mmguard.config.classes import FRAMEWORK_OF, SCOPES, scope_in
from mmguard.config.load import is_data, load_config
from mmguard.config.types import Misplaced, separate_misplaced
from mmguard.errors import CannotRun
from mmguard.text.failures import ended_by
from mmguard.text.words import short

if TYPE_CHECKING:  # `mmguard explain` prints the rules without mmengine, too
    from mmengine.config import Config


@dataclass
class ReadConfig:
    """Config as plain dicts, lists and strings.

    Args:
        data (dict): The config; classes of the new style are dotted strings. Values of a wrong type are left out of it,
            and listed in ``misplaced``.
        file (str): Its file.
        notes (list[str]): What could not be checked, and why.

    Attributes:
        written (dict): ``data`` as it was given.
        misplaced (list[Misplaced]): The values of a wrong type.
    """

    data: Dict[str, Any]
    file: str = '<config>'
    notes: List[str] = field(default_factory=list)
    written: Dict[str, Any] = field(init=False, repr=False)
    misplaced: List[Misplaced] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self.written = self.data
        self.data, self.misplaced = separate_misplaced(self.data)

    @property
    def scope(self) -> str:
        """The config's ``default_scope``, else what its types say, as ``'mmdet'``; ``''``: unknown."""
        scope = self.data.get('default_scope')
        if isinstance(scope, str):
            return scope
        found = scope_in(self.data.get('model')) or scope_in(self.data)
        if found:
            return found
        # A file of only models or data sets, as in _base_, does not say. Only mmseg has SegDataPreProcessor.
        preprocessor = self.part('model').get('data_preprocessor') or self.data.get('data_preprocessor')
        kind = str(preprocessor.get('type')) if isinstance(preprocessor, dict) else ''
        if self.is_old:
            return 'mmseg' if 'decode_head' in self.part('model') else 'mmdet'
        return {'SegDataPreProcessor': 'mmseg', 'DetDataPreprocessor': 'mmdet'}.get(kind, '')

    @property
    def framework(self) -> str:
        """``'mmseg'`` or ``'mmdet'``, also of what is built on one of them (mmyolo); ``''``: unknown."""
        return FRAMEWORK_OF.get(self.scope, '')

    def unknown_framework(self) -> List[str]:
        """Explain that ``default_scope`` is not a known framework, whose own parts are not checked."""
        scope = self.data.get('default_scope')
        if not isinstance(scope, str) or scope in ('mmengine', *SCOPES):
            return []
        known = ', '.join(SCOPES)
        return [
            f'default_scope = {short(scope)} is not a framework that mmguard knows ({known}): its own heads, losses, '
            f'data sets and transforms are neither checked nor guarded'
        ]

    @property
    def is_old(self) -> bool:
        """True if it is of MMDetection 2.x or MMSegmentation 0.x (or of MMDetection 1.x)."""
        data = self.part('data')
        return isinstance(data.get('train'), (dict, list, tuple)) and bool(
            {'samples_per_gpu', 'train_dataloader'} & set(data)
        )

    def part(self, name: str) -> Dict[str, Any]:
        """Return a dict of the config's top level; empty if the key is missing."""
        found = self.data.get(name)
        return found if isinstance(found, dict) else {}


def read_config(file: str, run_code: bool = False) -> ReadConfig:
    """Read a config file, text-style or pure Python, or one that ships (``'mmseg::pidnet/....py'``).

    Its ``custom_imports`` are imported as by ``python tools/train.py`` in a project; those of YAML and JSON only with
    ``run_code``. One that fails becomes a note: the rest of the config can still be checked.

    Raises:
        CannotRun: It cannot be read.
        Exception: An error of the import of mmengine.
    """
    config = load_config(file, import_custom_modules=False, run_code=run_code)
    return from_mmengine(config, file, run_code or not is_data(file))


def from_mmengine(config: Config, file: Optional[str] = None, run_code: bool = True) -> ReadConfig:
    """Read a config that is already loaded."""
    read = ReadConfig(config.to_dict(), file or config.filename or '<config>')
    custom = read.data.get('custom_imports')
    if run_code:
        read.notes += _import_custom(custom)
    elif custom is not None:
        read.notes.append('custom_imports: not imported, a config in YAML or JSON is data; with --run-code they are')
    read.notes += read.unknown_framework()
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
        except SystemExit as error:
            raise CannotRun(f'custom_imports: {name} {ended_by(error)} when it is imported') from error
        except Exception as error:  # a module of the user's may raise anything
            notes.append(f'custom_imports: {name} does not import ({error}); its classes were not checked')
    return notes
