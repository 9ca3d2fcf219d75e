"""Exception of commands; for invalid labels see :class:`mmguard.labels.tally.LabelGuardError`."""

from __future__ import annotations


class CannotRun(Exception):
    """Reason why a command cannot run, as text for the user: file, value, what to do."""
