"""Results of properties, as data."""

from __future__ import annotations

import base64
import io
from functools import partial
from types import MappingProxyType
from typing import Any, Mapping, NamedTuple, Optional, Sequence

import numpy as np

#: What a property can say of a program, the worst first.
OUTCOMES = BROKEN, SETTING, HOLDS, NOT_TESTED = ('broken', 'setting', 'holds', 'not tested')
#: Longest side of a picture.
LONGEST = 480


class Unavailable(Exception):
    """Reason why a property cannot be tested."""


class NoSamples(Unavailable):
    """Absence of samples in a data set."""


class Result(NamedTuple):
    """Outcome of a property for one part of a program.

    Attributes:
        outcome (str): One of ``OUTCOMES``.
        subject (str): The part: a head, a loss, a step of the pipeline, a metric.
        evidence (str): One sentence: what was seen, or why nothing could be.
        data (dict): The same for programs; ``'picture'`` is a data URL.
    """

    outcome: str
    subject: str = ''
    evidence: str = ''
    data: Mapping[str, Any] = MappingProxyType({})

    def __str__(self) -> str:
        return f'{self.subject}: {self.evidence}' if self.subject and self.evidence else self.subject or self.evidence


broken, setting, holds, not_tested = (partial(Result, outcome) for outcome in OUTCOMES)


def worst(results: Sequence[Result]) -> str:
    """Return the outcome of a property from those of the parts."""
    return next((outcome for outcome in OUTCOMES if any(one.outcome == outcome for one in results)), NOT_TESTED)


def encode_picture(values: np.ndarray, outlined: Optional[np.ndarray] = None) -> str:
    """Return an array of shape (H, W) or (H, W, 3), scaled to 0..255, as a data URL of a PNG.

    Args:
        values (ndarray): Gray levels or colours.
        outlined (ndarray, optional): Of shape (H, W): borders between its values are drawn over the picture.
    """
    from PIL import Image

    thin = -(-max(values.shape[:2]) // LONGEST)
    shown = values[::thin, ::thin].astype(np.float64)
    shown = (shown - shown.min()) * 255 / max(float(np.ptp(shown)), 1e-12)
    pixels = (shown if shown.ndim == 3 else shown[..., None].repeat(3, -1)).astype(np.uint8)
    if outlined is not None and outlined.shape == values.shape[:2]:
        outlined = outlined[::thin, ::thin].astype(np.int64)
        rows, columns = np.diff(outlined, axis=0) != 0, np.diff(outlined, axis=1) != 0
        pixels[1:][rows] = pixels[:, 1:][columns] = (255, 0, 170)
    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, 'PNG')
    return f'data:image/png;base64,{base64.b64encode(buffer.getvalue()).decode()}'
