"""Why nothing, or not everything, could be replayed."""

from __future__ import annotations


class CannotReplay(Exception):
    """Why there is nothing to replay, in words for the user: file, value, what to do."""


def words_of(error: BaseException, limit: int = 400) -> str:
    """An exception in one line: ``'IndexError: Target 24 is out of bounds.'``."""
    text = ' '.join(str(error).split())[:limit]
    return f'{type(error).__name__}: {text}' if text else type(error).__name__
