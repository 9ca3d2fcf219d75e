"""Street scenes with label maps of Cityscapes' train ids, drawn from a seed."""

from __future__ import annotations

from typing import Any, Optional, Sequence, Tuple

import cv2
import numpy as np

ROAD, SIDEWALK, BUILDING, POLE, SIGN, TREE, TERRAIN, SKY = 0, 1, 2, 5, 7, 8, 9, 10
PERSON, RIDER, CAR, BUS, BICYCLE, IGNORED = 11, 12, 13, 15, 18, 255
#: Height of the camera, and nearest distance that is drawn, in meters.
EYE, NEAR = 1.45, 1.5
#: Factor by which a scene is painted larger and then shrunk, for soft edges.
FINER = 2
DARK, GLASS, HAZE = (26, 25, 26), (74, 62, 54), np.array((205, 196, 188), float)

Color = Any  # blue, green, red, as in OpenCV
Span = Tuple[float, float]
Point = Tuple[float, float, float]  # meters: to the right, upwards, ahead


class Canvas:
    """An image and its label map, drawn together as seen by a camera."""

    def __init__(self, width: int, height: int, vanishing: float) -> None:
        self.image = np.zeros((height, width, 3), np.uint8)
        self.label = np.full((height, width), SKY, np.uint8)
        self.image[:] = np.linspace((205, 160, 120), HAZE, height, dtype=np.uint8)[:, None]
        self.focal, self.centre, self.horizon = 0.62 * width, vanishing * width, 0.43 * height

    def project(self, point: Point) -> Tuple[int, int]:
        right, up, ahead = point
        scale = self.focal / max(ahead, NEAR)
        return round(self.centre + scale * right), round(self.horizon + scale * (EYE - up))

    def draw_shape(self, points: Sequence[Point], color: Color, label: Optional[int]) -> None:
        """Draw a flat shape; ``label=None`` keeps the labels (a window)."""
        outline = np.array([self.project(point) for point in points], np.int32)
        cv2.fillPoly(self.image, [outline], self._fade(color, points[0][2]))
        if label is not None:
            cv2.fillPoly(self.label, [outline], label)

    def draw_disc(self, centre: Point, radius: Tuple[float, float], color: Color, label: int, line: int = -1) -> None:
        """Draw an ellipse with these half axes; ``line``: only its outline, in the image."""
        scale = self.focal / centre[2]
        axes = (max(1, round(radius[0] * scale)), max(1, round(radius[1] * scale)))
        cv2.ellipse(self.image, self.project(centre), axes, 0, 0, 360, self._fade(color, centre[2]), line)
        cv2.ellipse(self.label, self.project(centre), axes, 0, 0, 360, label, -1)

    def draw_upright(self, across: Span, up: Span, ahead: float, color: Color, label: Optional[int]) -> None:
        """Draw a rectangle facing the camera."""
        (left, right), (low, top) = across, up
        self.draw_shape(
            [(left, low, ahead), (left, top, ahead), (right, top, ahead), (right, low, ahead)], color, label
        )

    def draw_box(self, across: Span, up: Span, along: Span, color: Color, label: int) -> None:
        """Draw the faces of a box that the camera sees."""
        (left, right), (low, top), (near, far), color = across, up, along, np.array(color, float)
        if right < 0 or left > 0:
            x = right if right < 0 else left
            self.draw_shape([(x, low, near), (x, top, near), (x, top, far), (x, low, far)], 0.7 * color, label)
        if top < EYE:
            roof = [(left, top, near), (right, top, near), (right, top, far), (left, top, far)]
            self.draw_shape(roof, 1.2 * color, label)
        self.draw_upright(across, up, near, color, label)

    @staticmethod
    def _fade(color: Color, ahead: float) -> Tuple[float, ...]:
        share = np.exp(-ahead / 140)
        return tuple((share * np.array(color) + (1 - share) * HAZE).clip(0, 255).tolist())


def draw_street(width: int, height: int, seed: int) -> Tuple[np.ndarray, np.ndarray]:
    """Draw a street: the image (height, width, 3), uint8, BGR, and its label map (height, width), uint8.

    The same seed gives the same street; the hood of the camera's own car is 255, as in Cityscapes.
    """
    random = np.random.default_rng(seed)
    canvas = Canvas(FINER * width, FINER * height, random.uniform(0.42, 0.58))
    kerb = random.uniform(4.2, 5.4)
    for left, right, color, label in (
        (-200, 200, (78, 112, 98), TERRAIN),
        (-kerb - 3, kerb + 3, (146, 150, 154), SIDEWALK),
        (-kerb, kerb, (92, 90, 89), ROAD),
    ):
        canvas.draw_shape([(left, 0, NEAR), (left, 0, 400), (right, 0, 400), (right, 0, NEAR)], color, label)
    for start in np.arange(NEAR + random.uniform(0, 3), 90, 6):
        ends = ((-0.08, start), (-0.08, start + 3), (0.08, start + 3), (0.08, start))
        canvas.draw_shape([(x, 0, z) for x, z in ends], (214, 216, 216), None)
    for side in (-1, 1):
        _draw_houses(canvas, side, kerb + random.uniform(3.2, 4.5), random)
    rows = [(draw, side * (kerb + away), gap) for side in (-1, 1) for draw, away, gap in _ROWS]
    things = [(ahead, draw, right) for draw, right, gap in rows for ahead in _choose_places(gap, random)]
    things += [(random.uniform(8, 14), _draw_car, 1.9), (random.uniform(24, 34), _draw_car, -1.9)]
    things += [(random.uniform(14, 22), _draw_bus, -1.9)] if random.random() < 0.4 else []
    things += [(random.uniform(4.6, 5.8), _draw_rider, random.uniform(1.8, 2.8))] if random.random() < 0.6 else []
    for ahead, draw, right in sorted(things, key=lambda thing: -thing[0]):
        draw(canvas, right, ahead, random)
    bonnet = (FINER * width // 2, round(1.03 * FINER * height)), (FINER * width // 2, round(0.1 * FINER * height))
    cv2.ellipse(canvas.image, *bonnet, 0, 0, 360, (60, 56, 52), -1)
    cv2.ellipse(canvas.label, *bonnet, 0, 0, 360, IGNORED, -1)
    image = cv2.resize(canvas.image, (width, height), interpolation=cv2.INTER_AREA)
    image = image * random.uniform(0.88, 1.08) + random.normal(0, 4, image.shape)
    return image.clip(0, 255).astype(np.uint8), canvas.label[::FINER, ::FINER].copy()


def _choose_places(gap: float, rng: np.random.Generator) -> np.ndarray:
    """Return distances along the street."""
    return np.cumsum(np.concatenate([[rng.uniform(6, 6 + gap)], gap * rng.uniform(0.6, 1.5, int(60 / gap))]))


def _draw_houses(canvas: Canvas, side: int, front: float, rng: np.random.Generator) -> None:
    ends = np.cumsum([NEAR, *rng.uniform(8, 16, 10)])
    for near, far in reversed(list(zip(ends, ends[1:]))):
        wall = np.array((120, 136, 150)) * rng.uniform(0.75, 1.2, 3)
        roof = rng.uniform(7, 17)
        low, high = sorted((side * front, side * (front + 14)))
        canvas.draw_box((low, high), (0, roof), (near, far), wall, BUILDING)
        for floor in np.arange(0.9, roof - 2, 3):
            for start in np.arange(near + 0.9, far - 1.4, 2.4):
                corners = ((floor, start), (floor + 1.7, start), (floor + 1.7, start + 1.3), (floor, start + 1.3))
                canvas.draw_shape([(side * front, y, z) for y, z in corners], GLASS, None)


def _draw_tree(canvas: Canvas, right: float, ahead: float, rng: np.random.Generator) -> None:
    canvas.draw_upright((right - 0.14, right + 0.14), (0, 2.6), ahead, (44, 56, 70), TREE)
    for _ in range(40):
        x, y = rng.normal(right, 0.6), rng.normal(3.4, 0.6)
        size = rng.uniform(0.25, 0.6)
        canvas.draw_disc((x, y, ahead), (size, size), np.array((46, 92, 70)) * rng.uniform(0.7, 1.3), TREE)


def _draw_sign(canvas: Canvas, right: float, ahead: float, rng: np.random.Generator) -> None:
    canvas.draw_upright((right - 0.06, right + 0.06), (0, 2.6), ahead, (92, 94, 96), POLE)
    canvas.draw_disc((right, 2.6, ahead), (0.36, 0.36), (44, 40, 190), SIGN)


def _draw_car(canvas: Canvas, right: float, ahead: float, rng: np.random.Generator) -> None:
    left, right, far, paint = right - 0.88, right + 0.88, ahead + 4.2, rng.uniform(50, 170, 3)
    for wheel in (left, right - 0.2):
        canvas.draw_box((wheel, wheel + 0.2), (0, 0.55), (ahead + 0.2, far), DARK, CAR)
    canvas.draw_box((left, right), (0.28, 0.92), (ahead, far), paint, CAR)
    canvas.draw_box((left + 0.12, right - 0.12), (0.92, 1.5), (ahead + 0.35, far - 1.3), GLASS, CAR)
    canvas.draw_upright((left + 0.12, right - 0.12), (1.42, 1.5), ahead + 0.35, paint, CAR)
    for lamp in (left + 0.06, right - 0.32):
        canvas.draw_upright((lamp, lamp + 0.26), (0.66, 0.84), ahead, (40, 36, 190), CAR)


def _draw_bus(canvas: Canvas, right: float, ahead: float, rng: np.random.Generator) -> None:
    canvas.draw_box((right - 1.25, right + 1.25), (0.2, 3), (ahead, ahead + 10), rng.uniform(50, 170, 3), BUS)
    canvas.draw_upright((right - 1.05, right + 1.05), (1.4, 2.6), ahead, GLASS, BUS)


def _draw_person(canvas: Canvas, right: float, ahead: float, rng: np.random.Generator, label: int = PERSON) -> None:
    for leg in (right - 0.16, right + 0.02):
        canvas.draw_upright(
            (leg, leg + 0.14), (0 if label == PERSON else 0.25, 1), ahead, rng.uniform(50, 170, 3) / 2, label
        )
    canvas.draw_disc((right, 1.2, ahead), (0.23, 0.4), rng.uniform(50, 170, 3), label)
    canvas.draw_disc((right, 1.68, ahead), (0.1, 0.14), (120, 150, 200), label)


def _draw_rider(canvas: Canvas, right: float, ahead: float, rng: np.random.Generator) -> None:
    for wheel in (right - 0.5, right + 0.5):
        canvas.draw_disc((wheel, 0.34, ahead), (0.33, 0.33), DARK, BICYCLE, line=4)
    _draw_person(canvas, right, ahead, rng, RIDER)


#: Objects along the curb: drawing function, distance from the curb, and usual gap between two, in meters.
_ROWS = ((_draw_tree, 2.0, 14), (_draw_sign, 0.5, 22), (_draw_car, -1.2, 9), (_draw_person, 1.6, 12))
