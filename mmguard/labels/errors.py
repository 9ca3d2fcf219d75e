"""Exception for invalid labels."""

from __future__ import annotations

from typing import Sequence, Tuple

from mmguard.labels.tally import Tally
from mmguard.text.visible import visible


class LabelGuardError(ValueError):
    """Labels that must not be trained on.

    Args:
        message (str): The finding, its place, and what to do.
        tallies (Sequence[Tally]): The failure cases as data: file, values and counts. Empty where the error
            crossed a process border (a dataloader worker passes on only the message).
        positions (Sequence[tuple]): Indices of the first invalid elements in the label array.
    """

    def __init__(self, message: str, tallies: Sequence[Tally] = (), positions: Sequence[Tuple[int, ...]] = ()) -> None:
        super().__init__(visible(message))
        self.tallies = list(tallies)
        self.positions = list(positions)
