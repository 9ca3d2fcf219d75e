"""Edits: what to write instead, as data. Screens and JSON read their fields; `apply` and `fix` write them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Dict, List, Optional, Sequence, Tuple

from mmguard.config.changes import REMOVED, Changes
from mmguard.findings.environment import EnvironmentChanges
from mmguard.language import Message
from mmguard.text import quantity, shorten

#: Files of labels, and what `mmguard fix` does with each: (file or folder, ((option of the command, value), ...)).
FileChanges = Tuple[Tuple[str, Tuple[Tuple[str, Any], ...]], ...]

#: Which edits a machine may write. ``'safe'``: the meaning of no label is changed by a guess. ``'asks'``: the user
#: must know the answer to its question. ``'manual'``: it is shown, and written by hand.
SAFE, ASKS, MANUAL = ('safe', 'asks', 'manual')

#: On a command line, in place of a number: every edit that asks nothing.
ALL_SAFE = 'safe'

#: Places of a config that a line names.
_PLACES = 4


@dataclass(frozen=True)
class Edit:
    """One way to correct what a finding names.

    Args:
        title (str): What is done, one sentence in the imperative.
        applicability (str): ``'safe'``, ``'asks'`` or ``'manual'``.
        question (str): What the user must know, where it asks: answered by looking.
        config (tuple): Places of the config and what they become: (path, value), as ``change_config`` takes
            them.
        options (tuple): The same of what no config says: (name of a scan's option, value).
        files (tuple): Files of labels, and what becomes of them: (file or folder, ((option of `mmguard fix`, value),
            ...)). They are tried on copies.
        environment (tuple): What is installed, and what it becomes, as ``EnvironmentFacts.with_changes`` takes it.
        lines (tuple[str]): Code to write by hand, where ``config`` does not say it in a line.
        commands (tuple[str]): What to type into a shell.
        notes (tuple[str]): What is worth knowing about it, a sentence each.
        if_not (str): The next step for the answer "no"; empty: the next edit of the finding.
        number (int): By which it is asked for on a command line; 0: it has none.
        unlabelled (tuple[int]): Labels that, where the answer to the question is yes, stand for nothing: they may go.
        verified (bool, optional): True if what it touches was built and called with it, or for labels if what it would
            write was read. ``None``: not tried.
        doubt (str): Why it is not verified.
    """

    title: str
    applicability: str = ASKS
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

    @property
    def steps(self) -> List[str]:
        """The commands to type and the lines to write."""
        return [*self.commands, *(self.lines or config_lines(self.config))]


def config_lines(changes: Changes) -> List[str]:
    """Return changes of a config in lines, places with the same value in one.

    Example:
        >>> config_lines((('model.decode_head.num_classes', 3), ('model.auxiliary_head.num_classes', 3)))
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
    """Format a value in one line; long lists as their length and ends."""
    try:
        text = shorten(value, _SHOWN + 1)
    except Exception:  # an object of the user's, whose repr fails
        return f'what cannot be shown ({type(value).__name__})'
    if isinstance(value, (list, tuple)) and len(text) > _SHOWN:
        first, last = value[0], value[-1]
        entries = quantity(len(value), 'entry')
        return Message('[{first}, ..., {last}] ({entries})', first=shorten(first), last=shorten(last), entries=entries)
    return text if len(text) <= _SHOWN else f'{text[: _SHOWN - 3]}...'


def plain(value: Any) -> Any:
    """Convert a value to what JSON has."""
    if isinstance(value, dict):
        return {str(key): plain(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(inner) for inner in value]
    return value if value is None or isinstance(value, (bool, int, float, str)) else str(value)
