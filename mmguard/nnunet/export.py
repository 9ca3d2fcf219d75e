"""Shell line that makes nnU-Net find the guarded trainer."""

from __future__ import annotations

import importlib.util
import os
import shlex
import sys
from pathlib import Path
from typing import Callable, Dict, Optional

from mmguard.errors import CannotRun
from mmguard.files.regular import read_regular

#: nnU-Net's environment variable for folders with trainers, separated as in PATH.
VARIABLE = 'nnUNet_extTrainer'
#: Folder that contains only the module that nnU-Net imports.
FOLDER = Path(__file__).resolve().parent / 'ext_trainer'


def _quote_for_powershell(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _quote_for_fish(text: str) -> str:
    return "'" + text.replace('\\', '\\\\').replace("'", "\\'") + "'"


#: Shell -> function that formats its line.
SHELLS: Dict[str, Callable[[str], str]] = {
    'sh': lambda value: f'export {VARIABLE}={shlex.quote(value)}',
    'fish': lambda value: f'set -gx {VARIABLE} {_quote_for_fish(value)}',
    'powershell': lambda value: f'$env:{VARIABLE} = {_quote_for_powershell(value)}',
}


def export_line(shell: str = 'sh', current_value: Optional[str] = None) -> str:
    """Return the shell line that adds the folder of the guarded trainer to nnUNet_extTrainer.

    Example:
        >>> export_line(current_value='/lab/trainers').startswith('export nnUNet_extTrainer=/lab/trainers:')
        True
    """
    folders = [folder for folder in (current_value or '').split(os.pathsep) if folder.strip()]
    if str(FOLDER) not in folders:
        folders.append(str(FOLDER))
    return SHELLS[shell](os.pathsep.join(folders))


def build_line(shell: str) -> str:
    """Return the line of :func:`export_line` for this environment, after checking that nnU-Net will find the trainer.

    Raises:
        CannotRun: nnU-Net would not find the trainer despite the line.
    """
    why = _explain_failure()
    if why:
        raise CannotRun(why)
    return export_line(shell, os.environ.get(VARIABLE))


def _explain_failure() -> str:
    """Return why nnU-Net would not find the trainer, or '' if nnU-Net will find it."""
    spec = importlib.util.find_spec('nnunetv2')
    if spec is None or not spec.submodule_search_locations:
        return (
            f'nnunetv2 is not installed for {sys.executable}. The trainer runs inside nnU-Net: install mmguard into '
            f'the environment of nnUNetv2_train, or run `pip install nnunetv2` here'
        )
    package = Path(next(iter(spec.submodule_search_locations)))
    # Read, not imported: nnU-Net takes seconds to import.
    paths = package / 'paths.py'
    if not paths.is_file() or VARIABLE.encode() not in read_regular(paths):
        return (
            f'this nnU-Net does not read {VARIABLE}. Update it, or copy {FOLDER / "nnUNetTrainerGuarded.py"} to '
            f'{package / "training" / "nnUNetTrainer"}'
        )
    return ''
