"""Detection of shifts and flips between an image and its label, by test figures that were drawn into both."""

from __future__ import annotations

from typing import Any, Dict, Iterator, List, Optional, Sequence, Tuple

import numpy as np

Box = Tuple[float, float, float, float]

#: Maximum side of the compared arrays in pixels; larger arrays are subsampled.
LONGEST = 384
#: Maximum offset of a label in pixels (after subsampling) that interpolation and rounding can cause.
TOLERANCE = 2
#: Minimum correlation of a displacement, and minimum difference to the correlation without displacement.
CLEAR, GAP = 0.6, 0.06
#: Maximum displacement as a share of the side of an image.
REACH = 0.3

FLIPS: Dict[str, Tuple[int, ...]] = {'': (), 'left-right': (1,), 'top-bottom': (0,), 'by 180 degrees': (0, 1)}


def describe_displacement(image: np.ndarray, figure: np.ndarray, valid: Optional[np.ndarray] = None) -> Optional[str]:
    """Describe how an image is flipped and shifted relative to a figure that was drawn into it.

    The sign of the correlation is ignored: Invert and Solarize reverse it. ``valid`` is False at ignored pixels.
    Return ``''`` if the image is not displaced, and ``None`` if the figure cannot be seen in the image.

    Example:
        >>> field = draw_field(np.random.default_rng(0), 128, 128)
        >>> describe_displacement(field, field), describe_displacement(np.roll(field, 12, 1), field)
        ('', 'shifted by -12 px to the right and 0 px down')
        >>> describe_displacement(field[:, ::-1], field)
        'flipped left-right'
    """
    gray = image.astype(np.float64)
    gray = gray.mean(-1) if gray.ndim == 3 else gray
    thin = -(-max(gray.shape) // LONGEST)
    gray, shown = gray[::thin, ::thin], figure.astype(np.float64)[::thin, ::thin]
    known = np.ones(gray.shape, bool) if valid is None else valid[::thin, ::thin]
    there = _subtract_mean(gray, known)
    best, words, at_rest = 0.0, '', 0.0
    for flip, axes in FLIPS.items():
        here = _subtract_mean(np.flip(shown, axes), np.flip(known, axes))
        for (down, right), value in _find_peaks(there, here):
            is_shifted = max(abs(down), abs(right)) > TOLERANCE
            if not flip and not is_shifted:
                at_rest = max(at_rest, value)
            elif value > best:
                shift = f'shifted by {right * thin} px to the right and {down * thin} px down'
                words = ' and '.join([f'flipped {flip}'] * bool(flip) + [shift] * is_shifted)
                best = value
    if best > at_rest + GAP:
        return words if best > CLEAR else None
    return '' if at_rest > CLEAR else None


def _subtract_mean(values: np.ndarray, mask: np.ndarray) -> np.ndarray:
    if not mask.any():
        return np.zeros_like(values)
    centered = np.where(mask, values - values[mask].mean(), 0.0)
    norm = float(np.sqrt((centered**2).sum()))
    return centered / norm if norm > 0 else centered


def _find_peaks(image: np.ndarray, figure: np.ndarray) -> Iterator[Tuple[Tuple[int, int], float]]:
    """Yield (offset, absolute correlation) of the best offset within ``TOLERANCE``, then of the best larger offset."""
    shape = [size + int(size * REACH) + TOLERANCE + 1 for size in image.shape]
    product = np.fft.rfft2(figure, shape) * np.conj(np.fft.rfft2(image, shape))
    found = np.abs(np.fft.irfft2(product, shape))
    max_shifts = [max(TOLERANCE + 1, int(size * REACH)) for size in image.shape]
    rows, columns = (np.r_[0 : most + 1, -most:0] for most in max_shifts)
    window = found[np.ix_(rows, columns)]
    near = (np.abs(rows)[:, None] <= TOLERANCE) & (np.abs(columns)[None] <= TOLERANCE)
    for values in (np.where(near, window, 0), np.where(near, 0, window)):
        row, column = np.unravel_index(int(values.argmax()), values.shape)
        yield (int(rows[row]), int(columns[column])), float(values[row, column])


def describe_difference(
    image: np.ndarray, figure: np.ndarray, kind: str, is_map: bool, ignored: Sequence[int] = (255,), two: bool = True
) -> Optional[str]:
    """Describe how an image (H, W[, C]) differs from the figure (H, W) in its label; '' if both match.

    Return ``None`` if the figure cannot be seen in the image. If ``two`` is true, the figure was drawn with two values,
    so that values between them come from interpolation.
    """
    height, width = figure.shape
    if not is_map:  # the image may be padded, masks get their padding in the batch
        rest = [part.reshape(-1, *image.shape[2:]) for part in (image[height:], image[:height, width:])]
        is_padded = any(map(len, rest)) and not np.ptp(np.concatenate(rest), 0).any()
        image = image[:height, :width] if is_padded else image
    if figure.shape != image.shape[:2]:
        return f'the image has the shape {image.shape[:2]}, but its {kind} {figure.shape}'
    values, counts = np.unique(figure[~np.isin(figure, ignored)], return_counts=True)
    low, high = sorted(values[np.argsort(counts)[-2:]]) if is_map and two and len(values) > 3 else (0, 0)
    between = [int(value) for value in values if low < value < high]
    if len(between) > 1:  # between the two most frequent values
        return f'the {kind} was interpolated: it holds new values, such as {", ".join(map(str, between[:4]))}'
    found = describe_displacement(image, figure, ~np.isin(figure, ignored) if is_map else None)
    return f'the image is {found} against its {kind}' if found else found


def draw_field(rng: np.random.Generator, height: int, width: int) -> np.ndarray:
    """Return a random pattern of zeros and ones that differs strongly from its shifts, flips and crops."""
    cell = max(4, max(height, width) // 20)
    coarse = rng.random((height // cell + 2, width // cell + 2)) < 0.5
    return np.kron(coarse, np.ones((cell, cell), bool))[:height, :width].astype(np.uint8)


def draw_boxes(rng: np.random.Generator, height: int, width: int) -> List[Box]:
    """Return six boxes (x1, y1, x2, y2) without overlap, each in its own cell of a 3 x 3 grid."""
    boxes = []
    for cell in rng.permutation(9)[:6]:
        top, left = (cell // 3) * height / 3, (cell % 3) * width / 3
        tall, wide = rng.uniform(0.45, 0.85, 2) * np.array((height, width)) / 3
        y, x = top + rng.uniform(0, height / 3 - tall), left + rng.uniform(0, width / 3 - wide)
        boxes.append((float(round(x)), float(round(y)), float(round(x + wide)), float(round(y + tall))))
    return boxes


def fill_boxes(boxes: Any, height: int, width: int) -> np.ndarray:
    """Return an array (height, width) that is 1 inside of the boxes and 0 elsewhere."""
    figure = np.zeros((height, width), np.uint8)
    for x1, y1, x2, y2 in np.asarray(boxes, np.float64).reshape(-1, 4):
        figure[max(0, round(y1)) : max(0, round(y2)), max(0, round(x1)) : max(0, round(x2))] = 1
    return figure
