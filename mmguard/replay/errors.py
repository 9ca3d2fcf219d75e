"""Why nothing, or not everything, could be replayed."""

from __future__ import annotations

from mmguard.errors import CannotRun


class CannotReplay(CannotRun):
    """Why there is nothing to replay, in words for the user: file, value, what to do."""
