"""Edits: corrections as data. Screens and JSON show them; `apply` and `fix` write them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Dict, List, Optional, Sequence, Tuple

from mmguard.config.changes import REMOVED, Changes
from mmguard.findings.environment import EnvironmentChanges
from mmguard.language import Message
from mmguard.text import quantity, shorten

#: Label files and the options of `mmguard fix` for each: (file or folder, ((option, value), ...)).
FileChanges = Tuple[Tuple[str, Tuple[Tuple[str, Any], ...]], ...]

#: Ways in which an edit may be written. ``'safe'``: automatically, because it guesses the meaning of no label.
#: ``'asks'``: after the user has answered its question. ``'manual'``: by hand.
SAFE, ASKS, MANUAL = ('safe', 'asks', 'manual')

#: Value on the command line, in place of a number, for every edit without a question.
ALL_SAFE = 'safe'

#: Maximum number of config paths on a line.
_PLACES = 4


@dataclass(frozen=True)
class Edit:
    """One way to correct a finding.

    Args:
        title (str): Change, one sentence in the imperative.
        question (str): Question for the user, which can be answered by looking at the data; empty: the edit is safe.
        config (tuple): Changes of the config: (path, new value), as ``change_config`` accepts
            them.
        options (tuple): Changes of scan options, used without a config: (name, value).
        files (tuple): Changes of label files: (file or folder, ((option of `mmguard fix`, value),
            ...)). They are tried on copies.
        environment (tuple): Changes of the installed packages, as ``EnvironmentFacts.apply_changes`` accepts them.
        lines (tuple[str]): Code to write by hand, if ``config`` cannot express it.
        commands (tuple[str]): Shell commands.
        notes (tuple[str]): Remarks, one sentence each.
        if_not (str): The next step for the answer "no"; empty: the next edit of the finding.
        number (int): Number that selects it on the command line; 0: none.
        unlabelled (tuple[int]): Labels that mean no class if the answer to the question is yes; they may vanish.
        verified (bool, optional): True if the affected parts were built and called after the edit, or, for label files,
            if the written copies were read back. ``None``: not tried.
        doubt (str): Reason why it is not verified.
        is_manual (bool): True if the user must write it.
    """

    title: str
    question: str = ''
    config: Tuple[Tuple[str, Any], ...] = ()
    options: Tuple[Tuple[str, Any], ...] = ()
    files: FileChanges = ()
    environment: EnvironmentChanges = ()
    lines: Tuple[str, ...] = ()
    commands: Tuple[str, ...] = ()
    notes: Tuple[str, ...] = ()
    unlabelled: Tuple[int, ...] = ()
    if_not: str = ''
    number: int = field(default=0, compare=False)
    verified: Optional[bool] = field(default=None, compare=False)
    doubt: str = field(default='', compare=False)
    is_manual: bool = False

    @property
    def applicability(self) -> str:
        """``'safe'``, ``'asks'`` or ``'manual'``."""
        return MANUAL if self.is_manual else ASKS if self.question else SAFE

    @property
    def steps(self) -> List[str]:
        """The commands to type and the lines to write."""
        return [*self.commands, *(self.lines or format_config_lines(self.config))]


def format_config_lines(changes: Changes) -> List[str]:
    """Format changes of a config as lines, with paths of equal values combined.

    Example:
        >>> format_config_lines((('model.decode_head.num_classes', 3), ('model.auxiliary_head.num_classes', 3)))
        ['num_classes=3 at model.decode_head, model.auxiliary_head']
    """
    lines: Dict[str, List[str]] = {}
    for path, value in changes:
        owner, dot, key = path.rpartition('.')
        if value is REMOVED:
            lines.setdefault(f'remove {key}', []).append(owner)
        else:
            lines.setdefault(f'{key}={format_value(value)}' if dot else f'{key} = {format_value(value)}', []).append(
                owner
            )
    return [f'{line}{_join_owners(owners)}' for line, owners in lines.items()]


def _join_owners(owners: Sequence[str]) -> str:
    named = [owner for owner in dict.fromkeys(owners) if owner]
    more = f' and {len(named) - _PLACES} more' if len(named) > _PLACES else ''
    return f' at {", ".join(named[:_PLACES])}{more}' if named else ''


#: Longest value that is shown in full.
_SHOWN = 60


def format_value(value: Any) -> str:
    """Format a value on one line; a long list as its length and ends."""
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
    """Convert a value to JSON types."""
    if isinstance(value, dict):
        return {str(key): to_plain(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [to_plain(inner) for inner in value]
    return value if value is None or isinstance(value, (bool, int, float, str)) else str(value)
