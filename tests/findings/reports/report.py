"""What a report is."""

from __future__ import annotations

from typing import Tuple

from situation import SCAN, Build, Situation


def reported(
    codes: Tuple[str, ...],
    build: Build,
    says: Tuple[str, ...] = (),
    never: Tuple[str, ...] = (),
    command: str = SCAN,
) -> Situation:
    """A public report: codes that name its true cause, and what would have helped its writer."""
    return Situation('', codes, build, command=command)
