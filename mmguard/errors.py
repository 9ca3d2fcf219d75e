"""The exception of commands. That of invalid labels is :class:`mmguard.labels.tally.LabelGuardError`."""

from __future__ import annotations


class CannotRun(Exception):
    """Why a command cannot run, in words for the user: file, value, what to do."""
