"""Exception of commands; that of invalid labels is :class:`mmguard.labels.tally.LabelGuardError`."""

from __future__ import annotations


class CannotRun(Exception):
    """Reason why a command cannot run, as text for the user: file, value, what to do."""
