"""What moves in a street: cars, buses, people, riders."""

from __future__ import annotations

import numpy as np

from mmguard.tools.demo.street.canvas import Canvas, Colour
from mmguard.tools.demo.street.classes import BICYCLE, BUS, CAR, PERSON, RIDER

PAINTS = [(52, 46, 44), (196, 194, 190), (128, 124, 120), (66, 44, 150), (120, 74, 34), (40, 34, 34), (84, 102, 58)]
CLOTHES = [(60, 44, 40), (110, 70, 40), (50, 50, 140), (80, 84, 90), (150, 150, 156), (44, 66, 50)]
GLASS = (58, 50, 44)
DARK = (26, 25, 26)
SKIN = (120, 150, 200)


def car(canvas: Canvas, right: float, ahead: float, random: np.random.Generator) -> None:
    """A car seen from behind (to the right) or from the front (to the left)."""
    paint = _pick(PAINTS, random)
    half, length, roof = 0.88, 4.2, random.uniform(1.4, 1.6)
    left, far = right - half, ahead + length
    _shadow(canvas, right, ahead, half + 0.15, length)
    for wheel in (ahead + 0.7, far - 0.9):
        for side in (left + 0.02, right + half - 0.2):
            canvas.box((side, 0.0, wheel - 0.25), (side + 0.18, 0.55, wheel + 0.25), DARK, CAR)
    canvas.box((left, 0.28, ahead), (right + half, 0.92, far), paint, CAR)
    cabin = (left + 0.12, 0.92, ahead + 0.35), (right + half - 0.12, roof, far - 1.3)
    canvas.box(cabin[0], cabin[1], GLASS, CAR)
    roof_line = [
        (left + 0.16, roof - 0.08),
        (left + 0.16, roof),
        (right + half - 0.16, roof),
        (right + half - 0.16, roof - 0.08),
    ]
    canvas.shape([(x, y, ahead + 0.35) for x, y in roof_line], paint, CAR)
    pane = [
        (left + 0.22, 0.98),
        (left + 0.28, roof - 0.12),
        (right + half - 0.28, roof - 0.12),
        (right + half - 0.22, 0.98),
    ]
    canvas.shape([(x, y, ahead + 0.34) for x, y in pane], (88, 78, 70), None)
    lamp: Colour = (40, 36, 190) if right > 0 else (210, 225, 230)
    for side in (left + 0.06, right + half - 0.32):
        _plate(canvas, side, side + 0.26, 0.66, 0.84, ahead, lamp)
    _plate(canvas, right - 0.26, right + 0.26, 0.48, 0.6, ahead, (205, 208, 208))
    _plate(canvas, left, right + half, 0.28, 0.4, ahead, DARK)


def bus(canvas: Canvas, right: float, ahead: float, random: np.random.Generator) -> None:
    """A city bus."""
    paint: Colour = _pick([(40, 150, 200), (60, 60, 170), (170, 160, 150)], random)
    half, length, roof = 1.25, 10.0, 3.0
    _shadow(canvas, right, ahead, half + 0.2, length)
    canvas.box((right - half, 0.3, ahead), (right + half, roof, ahead + length), paint, BUS)
    side = right - half if right > 0 else right + half
    for start in np.arange(ahead + 0.6, ahead + length - 1, 1.5):
        window = [(side, 1.35, start), (side, 2.5, start), (side, 2.5, start + 1.2), (side, 1.35, start + 1.2)]
        canvas.shape(window, GLASS, None)
    _plate(canvas, right - 1.05, right + 1.05, 1.4, 2.6, ahead, GLASS)
    for lamp in (right - 1.15, right + 0.95):
        _plate(canvas, lamp, lamp + 0.2, 0.6, 0.9, ahead, (40, 40, 200))
    for wheel in (right - half + 0.05, right + half - 0.35):
        canvas.box((wheel, 0.0, ahead + 0.1), (wheel + 0.3, 0.45, ahead + 0.4), DARK, BUS)


def person(canvas: Canvas, right: float, ahead: float, random: np.random.Generator, label: int = PERSON) -> None:
    """Somebody who walks (or, with the label of a rider, rides)."""
    coat, trousers = _pick(CLOTHES, random), _pick(CLOTHES, random)
    lift = 0.25 if label == RIDER else 0.0
    stride = random.uniform(0.03, 0.16)
    if label == PERSON:
        _shadow(canvas, right, ahead, 0.3, 0.5)
    for foot in (right - stride, right + stride):
        leg = [(right - 0.1, 0.9 + lift), (foot - 0.09, lift), (foot + 0.09, lift), (right + 0.1, 0.9 + lift)]
        canvas.shape([(x, y, ahead) for x, y in leg], trousers, label)
    canvas.disc((right, 1.16 + lift, ahead), (0.23, 0.36), coat, label)
    canvas.disc((right, 1.62 + lift, ahead), (0.1, 0.14), SKIN, label)
    canvas.disc((right, 1.69 + lift, ahead), (0.1, 0.08), _pick([DARK, (40, 60, 90)], random), label)


def rider(canvas: Canvas, right: float, ahead: float, random: np.random.Generator) -> None:
    """Somebody on a bicycle."""
    _shadow(canvas, right, ahead, 0.8, 0.4)
    for wheel in (right - 0.5, right + 0.5):
        canvas.ring((wheel, 0.34, ahead), 0.33, DARK, BICYCLE)
    frame = [(right - 0.5, 0.36), (right - 0.2, 0.85), (right + 0.4, 0.8), (right + 0.5, 0.36), (right + 0.3, 0.7)]
    canvas.shape([(x, y, ahead) for x, y in frame], (60, 60, 170), BICYCLE)
    person(canvas, right, ahead - 0.01, random, RIDER)


def _shadow(canvas: Canvas, right: float, ahead: float, half: float, length: float) -> None:
    corners = [(right - half, ahead - 0.2), (right + half, ahead - 0.2)]
    corners += [(right + half, ahead + length), (right - half, ahead + length)]
    canvas.shape([(x, 0.0, z) for x, z in corners], (48, 47, 47), None)


def _plate(canvas: Canvas, left: float, right: float, low: float, high: float, ahead: float, colour: Colour) -> None:
    ahead -= 0.01
    canvas.shape([(left, low, ahead), (left, high, ahead), (right, high, ahead), (right, low, ahead)], colour, None)


def _pick(colours: list, random: np.random.Generator) -> Colour:
    chosen = np.array(colours[random.integers(len(colours))], float) * random.uniform(0.85, 1.15)
    return float(chosen[0]), float(chosen[1]), float(chosen[2])
