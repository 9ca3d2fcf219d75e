"""The rule for an explicit ``avg_factor``, in numbers."""

from __future__ import annotations


def factor_left(factor: float, kept: float, counted: float) -> float:
    """What is left of a factor where ``kept`` of the ``counted`` elements of a call are valid."""
    if factor == kept:  # counted without the invalid ones
        left = factor
    elif factor >= counted:  # counted over several calls
        left = factor - (counted - kept)
    else:  # averaged, or chosen by hand
        left = factor * kept / counted
    return max(left, min(factor, 1.0))
