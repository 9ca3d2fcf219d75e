"""Loads a config with mmengine: what is no config is refused before a line is run, and data is never run."""

from __future__ import annotations

import contextlib
import importlib
import os
import sys
import traceback
import warnings
from typing import TYPE_CHECKING, Any, Iterator

from mmguard.compat.stack import config_file, folder_of
from mmguard.config.bases import check_bases
from mmguard.errors import CannotRun
from mmguard.text.failures import ended_by, line_of, words_of

if TYPE_CHECKING:
    from mmengine.config import Config


def load_config(file: str, import_custom_modules: bool = True) -> Config:
    """A config file, of the text or of the pure-Python style, or one that ships (``'mmseg::pidnet/....py'``).

    Python configs are programs, and are run. YAML and JSON are data, and nothing in them is.

    Args:
        file (str): It.
        import_custom_modules (bool): Whether its ``custom_imports`` are imported, those of the working directory
            included, as ``python tools/train.py`` in a project does.

    Raises:
        CannotRun: It cannot be loaded, and why. Of what is no config nothing was run.
        Exception: What the import of mmengine raises.
    """
    from mmengine.config import Config

    here = os.getcwd()
    if import_custom_modules and here not in sys.path:
        sys.path.append(here)
    try:
        path = config_file(file)
        check_bases(path)
        with warnings.catch_warnings(), _safe_yaml():
            warnings.simplefilter('ignore')
            return Config.fromfile(path, import_custom_modules=import_custom_modules)
    except CannotRun:
        raise
    except SystemExit as error:
        raise CannotRun(f'{file}: the config {ended_by(error)}') from error
    except RecursionError as error:
        raise CannotRun(f'{file} cannot be loaded: its parts or its bases are nested too deeply') from error
    except Exception as error:  # a config is a program: it may raise anything
        raise CannotRun(f'{file} cannot be loaded: {words_of(error)}{line_of(error)}{_of_new_style(error)}') from error


def _of_new_style(error: Exception) -> str:
    """What mmengine's bare RuntimeError means."""
    frames = traceback.extract_tb(error.__traceback__)
    if not isinstance(error, RuntimeError) or str(error) or not frames[-1].filename.endswith('lazy.py'):
        return ''
    return (
        ': a config that imports more than the standard library is of the new style, where what is imported is only '
        'named, and cannot be called'
    )


@contextlib.contextmanager
def _safe_yaml() -> Iterator[None]:
    """mmengine reads YAML with a loader that runs ``!!python/object/apply``; meanwhile with one that does not."""
    import yaml
    from mmengine.fileio import YamlHandler, register_handler

    class SafeYaml(YamlHandler):  # type: ignore[misc]
        def load_from_fileobj(self, file: Any, **kwargs: Any) -> Any:
            return super().load_from_fileobj(file, Loader=yaml.SafeLoader)

    register_handler(['yaml', 'yml'])(SafeYaml)
    try:
        yield
    finally:
        register_handler(['yaml', 'yml'])(YamlHandler)


def import_scope(config: Any) -> None:
    """Imports the package of a config's ``default_scope``, where it is installed.

    mmengine goes on without one that raises an ImportError, and then knows none of its types.

    Raises:
        Exception: Whatever its import raises.
    """
    scope = config.get('default_scope')
    if isinstance(scope, str) and scope.isidentifier() and folder_of(scope) is not None:
        importlib.import_module(scope)
