"""Edits: corrections stored as data, so that all commands can show them, and `apply` and `fix` can write them."""

from __future__ import annotations

from dataclasses import dataclass, field
from keyword import iskeyword
from typing import Any, Dict, List, Mapping, Optional, Tuple

from mmguard.config.changes import REMOVED, Changes, change_data
from mmguard.config.tree import Path, join_path, split_path
from mmguard.facts.environment import EnvironmentChanges
from mmguard.facts.labels import FileChanges
from mmguard.language import Message
from mmguard.text import quantity, shorten

#: Applicability of an edit: ``'safe'`` (written without a question, because it does not guess the meaning of a label),
#: ``'asks'`` (needs an answer of the user) or ``'manual'`` (written by the user).
SAFE, ASKS, MANUAL = ('safe', 'asks', 'manual')

#: Value of ``--edit`` that selects all safe edits, instead of the number of an edit.
ALL_SAFE = 'safe'


@dataclass(frozen=True)
class Edit:
    """Proposed correction for a finding: changes to the config, to label files or to packages."""

    title: str  #: Description of the change, one sentence in the imperative.
    question: str = ''  #: Question for the user, which can be answered by looking at the data; empty: the edit is safe.
    config: Changes = ()  #: Changes of the config.
    options: Mapping[str, Any] = field(default_factory=dict)  #: Changes of scan options, used without a config.
    files: FileChanges = field(default_factory=dict)  #: Changes of label files, which are tried on copies.
    environment: EnvironmentChanges = field(default_factory=dict)  #: Changes of the installed packages.
    lines: Tuple[str, ...] = ()  #: Code to write by hand, if ``config`` cannot express it.
    commands: Tuple[str, ...] = ()  #: Shell commands.
    notes: Tuple[str, ...] = ()  #: Remarks, one sentence each.
    #: Labels that are not classes if the question is answered "yes". The edit may remove these labels.
    unlabelled: Tuple[int, ...] = ()
    if_not: str = ''  #: Next step if the question is answered "no"; if empty, the next edit of the finding.
    number: int = field(default=0, compare=False)  #: Number that selects the edit with ``--edit``; 0 if not numbered.
    #: True if the affected parts were built and called after the edit, or, for label files, if the written copies were
    #: read back. ``None``: not tried.
    verified: Optional[bool] = field(default=None, compare=False)
    doubt: str = field(default='', compare=False)  #: Reason why the edit is not verified.
    is_manual: bool = False  #: True if the user must write the change.

    @property
    def applicability(self) -> str:
        """``'safe'`` (no question), ``'asks'`` (needs the user's answer) or ``'manual'`` (the user writes it)."""
        return MANUAL if self.is_manual else ASKS if self.question else SAFE

    @property
    def steps(self) -> List[str]:
        """Shell commands to type, and lines to write into a config."""
        return [*self.commands, *(self.lines or format_config_lines(self.config))]


class Code(str):
    """Python code of a config value, in which ``_base_`` means the config that is changed."""


def as_code(value: Any) -> str:
    """Format a config value as Python code."""
    if isinstance(value, Code):
        return value
    if isinstance(value, dict):
        if all(isinstance(key, str) and key.isidentifier() and not iskeyword(key) for key in value):
            return f'dict({", ".join(f"{key}={as_code(inner)}" for key, inner in value.items())})'
        return f'{{{", ".join(f"{key!r}: {as_code(inner)}" for key, inner in value.items())}}}'
    if type(value) in (list, tuple):
        inner = ', '.join(map(as_code, value))
        return f'[{inner}]' if isinstance(value, list) else f'({inner}{"," * (len(value) == 1)})'
    if isinstance(value, (bool, int, float, complex, str, bytes, type(None))):
        return repr(value)
    return format_value(value)


def format_config_lines(changes: Changes) -> List[str]:
    """Format changes of a config as lines of a new config that inherits from it with ``_base_``.

    Example:
        >>> format_config_lines((('model.decode_head.num_classes', 3), ('model.auxiliary_head.num_classes', 3)))
        ['model = dict(decode_head=dict(num_classes=3), auxiliary_head=dict(num_classes=3))']
        >>> format_config_lines((('model.heads[1].scale', 3),))[0]
        'model = dict(heads=[*_base_.model.heads[:1], dict(_base_.model.heads[1], scale=3), *_base_.model.heads[2:]])'
    """
    whole: Dict[str, Any] = {}
    for path, value in changes:
        outer = next((known for known in whole if path.startswith((f'{known}.', f'{known}['))), '')
        if outer and isinstance(whole[outer], (dict, list, tuple)):  # inside of what an earlier change writes
            whole[outer] = change_data(whole[outer], ((path[len(outer) :], value),))
        else:
            whole[path] = value
    tree: Dict[Any, Any] = {}
    for path, value in whole.items():
        *way, last = split_path(path)
        node = tree
        for step in way if value is not REMOVED else ():
            node = node.setdefault(step, _Inner())
        if value is not REMOVED:
            node[last] = value
    lines = [f'{key} = {_format_inner(value, (key,), False)}' for key, value in tree.items()]
    return [*lines, *(f'remove {path}' for path, value in whole.items() if value is REMOVED)]


class _Inner(Dict[Any, Any]):
    """Changes of some keys of a dict, or of some positions of a list."""


def _format_inner(value: Any, path: Path, in_list: bool) -> str:
    """Format a changed part of a config. A dict in a list becomes a changed copy: mmengine does not merge lists."""
    if not isinstance(value, _Inner):
        # A part of another type does not take the arguments of the old one.
        replaces = isinstance(value, dict) and 'type' in value and not in_list and len(path) > 1
        code = as_code({'_delete_': True, **value} if replaces else value)
        return code if len(code) <= _LONGEST_CODE else format_value(value)
    base = f'_base_.{join_path(path)}'
    if all(isinstance(key, int) for key in value):
        parts, done = [], 0
        for key in sorted(value):
            parts += [f'*{base}[{done or ""}:{key}]'] * (key > done)
            parts.append(_format_inner(value[key], (*path, key), True))
            done = key + 1
        return f'[{", ".join([*parts, f"*{base}[{done}:]"])}]'
    changed = [f'{key}={_format_inner(inner, (*path, key), in_list)}' for key, inner in value.items()]
    return f'dict({", ".join([base] * in_list + changed)})'


#: Maximum length of a value's code; longer values are abbreviated. `mmguard apply` writes every value in full.
_LONGEST_CODE = 1000
#: Maximum number of characters of a value that is shown in full.
_SHOWN = 60


def format_value(value: Any) -> str:
    """Format a value on one line. A long list is abbreviated to its first entry, last entry and length."""
    try:
        text = shorten(value, _SHOWN + 1)
    except Exception:  # a user's object whose repr fails
        return f'a value that cannot be shown ({type(value).__name__})'
    if isinstance(value, (list, tuple)) and len(text) > _SHOWN:
        first, last = value[0], value[-1]
        entries = quantity(len(value), 'entry')
        return Message('[{first}, ..., {last}] ({entries})', first=shorten(first), last=shorten(last), entries=entries)
    return text if len(text) <= _SHOWN else f'{text[: _SHOWN - 3]}...'


def to_plain(value: Any) -> Any:
    """Convert a value to types of JSON: keys and unknown objects become strings, tuples become lists."""
    if isinstance(value, dict):
        return {
            ','.join(map(str, key)) if isinstance(key, tuple) else str(key): to_plain(inner)  # a color is a tuple
            for key, inner in value.items()
        }
    if isinstance(value, (list, tuple)):
        return [to_plain(inner) for inner in value]
    return value if value is None or isinstance(value, (bool, int, float, str)) else str(value)
