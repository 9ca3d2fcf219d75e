"""Loading of configs. Python files that are not configs are refused and not run; YAML and JSON are parsed as data."""

from __future__ import annotations

import contextlib
import importlib
import os
import re
import sys
import traceback
import warnings
from dataclasses import dataclass, field
from functools import cached_property
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from typing import TYPE_CHECKING, Any, Callable, Dict, Iterator, List, Optional, Set

from mmguard.compat.stack import FRAMEWORKS, find_config_file, find_module_folder
from mmguard.config.classes import SCOPES, UNGUARDED_SCOPES, find_first_scope, get_scope
from mmguard.config.recognition import DATA_ENDINGS, NotAConfig, check_bases
from mmguard.config.tree import WrongTypeValue, separate_wrong_types
from mmguard.errors import CannotRun
from mmguard.files.plain_data import NotPlain, parse_data
from mmguard.files.regular import check_regular, list_project
from mmguard.language import Message
from mmguard.text import describe_error, describe_exit, find_line, shorten, visible_name

if TYPE_CHECKING:
    from mmengine.config import Config

    from mmguard.config.guards import RunGuards


@dataclass
class ReadConfig:
    """A config as plain data: ``written`` includes values of a wrong type, ``data`` leaves them out."""

    #: The config; classes of the new style are dotted strings. Values of a wrong type are removed, and listed in
    #: ``wrong_types``.
    data: Dict[str, Any]
    file: str = '<config>'  #: Path of the config file.
    notes: List[str] = field(default_factory=list)  #: Messages that say which parts were not checked, and why.
    shows_guards: bool = True  #: False to leave out the guards that ``guard=True`` inserts, as at the start of a run.
    written: Dict[str, Any] = field(init=False, repr=False)
    wrong_types: List[WrongTypeValue] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self.written = self.data
        self.data, self.wrong_types = separate_wrong_types(self.data)

    @cached_property
    def run_guards(self) -> Optional[RunGuards]:
        """Guards that a LabelGuardHook with ``guard=True`` adds to this config, or ``None`` without such a hook."""
        hooks = self.data.get('custom_hooks') or ()
        has_hook = any(isinstance(hook, dict) and hook.get('guard') is True for hook in hooks)
        if not self.shows_guards or not has_hook:
            return None
        # Imported here, because that module imports this one.
        found: Optional[RunGuards] = importlib.import_module('mmguard.config.guards').find_run_guards(self)
        return found

    @property
    def run_data(self) -> Dict[str, Any]:
        """``data`` with the guarded pipelines and assigners of the run."""
        return self.data if self.run_guards is None else self.run_guards.tree

    @property
    def scope(self) -> str:
        """``default_scope``, else the first framework prefix of a type, e.g. ``'mmdet'``, or ``''`` if unknown."""
        scope = self.data.get('default_scope')
        if isinstance(scope, str):
            return scope
        found = find_first_scope(self.data.get('model')) or find_first_scope(self.data)
        if found:
            return found
        # A base file of only models or data sets does not name its scope. Only mmseg has SegDataPreProcessor.
        preprocessor = self.part('model').get('data_preprocessor') or self.data.get('data_preprocessor')
        kind = str(preprocessor.get('type')) if isinstance(preprocessor, dict) else ''
        if self.is_old:
            return 'mmseg' if 'decode_head' in self.part('model') else 'mmdet'
        return {'SegDataPreProcessor': 'mmseg', 'DetDataPreprocessor': 'mmdet'}.get(kind, '')

    @property
    def framework(self) -> str:
        """``'mmseg'`` or ``'mmdet'``; ``''`` if unknown."""
        return self.scope if self.scope in SCOPES else ''

    def describe_unguarded(self) -> str:
        """Return a message if the config belongs to a framework that mmguard does not guard, else ``''``."""
        scopes = (self.scope, get_scope(self.part('model').get('type'), ''))
        found = next((scope for scope in scopes if scope in UNGUARDED_SCOPES), '')
        return found and f'a config of {found}: mmguard checks and guards only configs of {" and ".join(SCOPES)}'

    def describe_unknown_framework(self) -> List[str]:
        """Return [message] if mmguard does not know ``default_scope``, so that its parts are not checked, else []."""
        scope = self.data.get('default_scope')
        if not isinstance(scope, str) or scope in FRAMEWORKS:
            return []
        known = ', '.join(SCOPES)
        return [
            f'default_scope = {shorten(scope)} is not a framework that mmguard knows ({known}): its own heads, losses, '
            f'data sets and transforms are neither checked nor guarded'
        ]

    @property
    def is_old(self) -> bool:
        """True if the config is in the style of MMDetection 1.x or 2.x, or MMSegmentation 0.x."""
        data = self.part('data')
        return isinstance(data.get('train'), (dict, list, tuple)) and bool(
            {'samples_per_gpu', 'train_dataloader'} & set(data)
        )

    def part(self, name: str) -> Dict[str, Any]:
        """Return a top-level dict of the config, or {} if it is missing."""
        found = self.data.get(name)
        return found if isinstance(found, dict) else {}


def read_config(file: str, run_code: bool = False) -> ReadConfig:
    """Read a config file (text-style or pure Python, YAML or JSON), or one of a framework (``'mmseg::pidnet/....py'``).

    Import its ``custom_imports`` as ``python tools/train.py`` does in a project, but those of YAML and JSON only with
    ``run_code``. If an import fails, add a note to the result: the rest of the config can still be checked.

    Raises:
        CannotRun: The config cannot be read.
        Exception: Importing mmengine failed.
    """
    config = load_config(file, import_custom_modules=False, run_code=run_code)
    return from_mmengine(config, file, run_code or not is_data(file))


def from_mmengine(config: Config, file: Optional[str] = None, run_code: bool = True) -> ReadConfig:
    """Convert mmengine's ``Config`` to a :class:`ReadConfig`; import its ``custom_imports`` if ``run_code`` is true."""
    read = ReadConfig(config.to_dict(), file or config.filename or '<config>')
    custom = read.data.get('custom_imports')
    if run_code:
        for name, error in import_modules(custom, config.filename or read.file).items():
            read.notes.append(f'custom_imports: {name} cannot be imported ({error}); its classes were not checked')
    elif custom is not None:
        note = Message(
            'custom_imports: not imported, because YAML and JSON are read as data only; add --run-code to import them'
        )
        read.notes.append(note)
    read.notes += read.describe_unknown_framework()
    return read


def load_config(file: str, import_custom_modules: bool = True, run_code: bool = False) -> Config:
    """Load a config file (text-style or pure Python, YAML or JSON), or one of a framework (``'mmseg::pidnet/....py'``).

    A Python config is run. A YAML or JSON config is only parsed, unless ``run_code`` is set.

    Args:
        file (str): The config.
        import_custom_modules (bool): Import its ``custom_imports``, see :func:`import_modules`.
        run_code (bool): Import code that YAML or JSON names: ``custom_imports``, and types and scopes of packages that
            are not frameworks. If false, skip ``custom_imports``, and refuse such types and scopes.

    Raises:
        CannotRun: The config cannot be loaded, or belongs to a framework that mmguard does not guard. A file that is
            not a config is not run.
        Exception: Importing mmengine failed.
    """
    from mmengine.config import Config

    is_code = run_code or not is_data(file)
    try:
        path = find_config_file(file)
        if os.path.exists(path):  # otherwise mmengine raises an error that names the missing file
            check_regular(path)
        check_bases(path)
        with warnings.catch_warnings(), _read_as_plain_data():
            warnings.simplefilter('ignore')
            config = Config.fromfile(path, import_custom_modules=False, use_environment_variables=is_code)
        if import_custom_modules and is_code:
            import_modules(config.get('custom_imports'), path, strict=True)
        if not is_code:
            _check_names(config.to_dict(), f'{file}: ')
        unguarded = ReadConfig(config.to_dict()).describe_unguarded()
        if unguarded:
            raise CannotRun(f'{file} is {unguarded}')
        return config
    except CannotRun:
        raise
    except NotPlain as error:
        raise NotAConfig(f'{file} is not a config: it is {error}. Nothing in it was run') from error
    except SystemExit as error:
        raise CannotRun(f'{file}: the config {describe_exit(error)}') from error
    except RecursionError as error:
        raise CannotRun(f'{file} cannot be loaded: its parts or its bases are nested too deeply') from error
    except Exception as error:  # a config is a program: it may raise anything
        raise CannotRun(
            f'{file} cannot be loaded: {describe_error(error)}{find_line(error)}{_explain_new_style(error)}'
        ) from error


def _explain_new_style(error: Exception) -> str:
    """Explain the RuntimeError without text that mmengine raises for new-style configs; return '' for other errors."""
    frames = traceback.extract_tb(error.__traceback__)
    if not isinstance(error, RuntimeError) or str(error) or not frames[-1].filename.endswith('lazy.py'):
        return ''
    return (
        ': a config that imports more than the standard library is a new-style config, which can refer to imported '
        'names, but cannot call them'
    )


def is_data(file: str) -> bool:
    """Return True if a config is YAML or JSON, judging by its name."""
    return file.lower().endswith(DATA_ENDINGS)


def check_may_build(file: str, run_code: bool) -> None:
    """Raise :class:`CannotRun` if a config is YAML or JSON and the user did not pass ``--run-code``."""
    if is_data(file) and not run_code:
        raise CannotRun(
            f'{file}: a YAML or JSON config is read as data only. Building the classes that it names would run code, '
            'so nothing was built. If you trust the file, add --run-code'
        )


@contextlib.contextmanager
def _read_as_plain_data() -> Iterator[None]:
    """Let mmengine read YAML and JSON as data.

    Without this, mmengine would run ``!!python/object/apply`` in YAML, and a Python file that ``_base_`` names. The
    text is checked after mmengine has filled in its templates.
    """
    from mmengine.fileio import JsonHandler, YamlHandler, register_handler

    def read(text: str, ending: str) -> Any:
        if re.search(r'\{\{[\'"]?\s*\$', text):
            raise NotPlain('YAML or JSON with {{$NAME}}: environment variables are only filled in with --run-code')
        try:
            data = parse_data(text, ending)
        except ValueError as error:
            raise error.__cause__ or error from None
        bases = data.get('_base_') if isinstance(data, dict) else None
        for base in bases if isinstance(bases, list) else [bases]:
            if base is not None and not is_data(str(base)):
                raise NotPlain(f'YAML or JSON whose _base_ is {shorten(base)}: its base must be YAML or JSON, too')
            find_config_file(str(base))  # raises if the package before '::' is not a framework
        return data

    handlers: Dict[str, Any] = {'yaml': YamlHandler, 'yml': YamlHandler, 'json': JsonHandler}
    for name, handler in handlers.items():
        load = {'load_from_fileobj': lambda self, file, end=f'.{name}', **_: read(file.read(), end)}
        register_handler(name)(type('PlainHandler', (handler,), load))
    try:
        yield
    finally:
        for name, handler in handlers.items():
            register_handler(name)(handler)


def _check_names(node: Any, path: str) -> None:
    """Raise :class:`CannotRun` for types and scopes of other packages, because looking up a type imports its module."""
    if isinstance(node, dict):
        for key, value in node.items():
            where = f'{path}{key}'
            is_pickle = str(key).endswith('_file') and str(value).endswith(('.pkl', '.pickle'))  # mmengine unpickles
            if is_pickle or (isinstance(value, str) and key in _NAMES_OF_CODE and not _NAMES_OF_CODE[key](value)):
                raise CannotRun(
                    f'{visible_name(where, 200)} is {shorten(value)}, which may run code from outside the frameworks. '
                    'A YAML or JSON config is read as data only, so nothing was run. If you trust the file, add '
                    '--run-code'
                )
            _check_names(value, f'{where}.')
    elif isinstance(node, (list, tuple)):
        for number, value in enumerate(node):
            _check_names(value, f'{path[:-1]}[{number}].')


def _is_framework(scope: str) -> bool:
    return scope in FRAMEWORKS


def _is_type(kind: str) -> bool:
    scope, dot, name = kind.rpartition('.')
    return not dot or (_is_framework(scope) and name[:1].isupper())


#: Key whose value mmengine looks up or runs -> check that the value is plain data or part of a framework.
_NAMES_OF_CODE: Dict[str, Callable[[str], bool]] = {
    'type': _is_type,
    'default_scope': _is_framework,
    '_scope_': _is_framework,
    'decode_backend': lambda value: value != 'pickle',  # mmseg's LoadBiomedicalAnnotation would unpickle label files
}


def import_scope(config: Any) -> None:
    """Import the package of a config's ``default_scope`` if it is installed, and raise its ImportError.

    mmengine would ignore this error, and then would not know the types of the package.
    """
    scope = config.get('default_scope')
    if isinstance(scope, str) and scope.isidentifier() and find_module_folder(scope) is not None:
        importlib.import_module(scope)


class ProjectFinder(MetaPathFinder):
    """Finder of top-level modules in ``folders``, added to ``sys.meta_path`` while ``custom_imports`` are imported.

    The finder answers only imports by :func:`import_modules` and by modules that it found before. Thus a framework
    that tries an optional import does not get a module of the project.
    """

    def __init__(self) -> None:
        self.folders: List[str] = []
        self._served: Set[str] = set()

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> Optional[ModuleSpec]:
        frame: Any = sys._getframe()
        importer = 'importlib'
        while importer in ('importlib', '_frozen_importlib'):  # frames between the import statement and here
            frame = frame.f_back
            importer = str(frame.f_globals.get('__name__')).partition('.')[0]
        if path is not None or not (frame.f_globals is globals() or importer in self._served):
            return None
        self._served.add(fullname)
        return PathFinder.find_spec(fullname, self.folders)


FINDER = ProjectFinder()


def import_modules(custom_imports: Any, file: Optional[str] = None, strict: bool = False) -> Dict[str, Exception]:
    """Import the modules named in ``custom_imports``, and return {module: exception} for those that fail.

    Look for the modules next to the config ``file``, in its project and in the working directory; without ``file``, in
    the folders of the last call. If ``strict`` is true, raise a failure unless ``allow_failed_imports`` allows it.
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
