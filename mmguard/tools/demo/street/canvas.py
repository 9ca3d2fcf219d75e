"""A canvas that paints an image and its label map at once, seen through a camera."""

from __future__ import annotations

from typing import Optional, Sequence, Tuple

import cv2
import numpy as np

Colour = Tuple[float, float, float]  # blue, green, red, as in OpenCV
Point = Tuple[float, float, float]  # metres: to the right, upwards, ahead

EYE = 1.45  # height of the camera, metres
NEAR = 1.5  # nothing nearer is drawn, metres


class Canvas:
    """Image and labels of one street scene.

    Points of the scene are (right, up, ahead) in metres; the camera stands at the origin, ``EYE`` above the road.

    Args:
        width (int): In pixels.
        height (int): In pixels.
        vanishing (float): Where the road vanishes, as a share of the width.
        haze (tuple[float, float, float]): The colour into which distant things fade.
    """

    def __init__(self, width: int, height: int, vanishing: float, haze: Colour) -> None:
        self.image = np.zeros((height, width, 3), np.float32)
        self.label = np.full((height, width), 255, np.uint8)
        self.focal = 0.62 * width
        self.centre = vanishing * width
        self.horizon = 0.43 * height
        self.haze = np.array(haze, np.float32)

    def at(self, point: Point) -> Tuple[float, float]:
        """The pixel at which the camera sees a point."""
        right, up, ahead = point
        scale = self.focal / max(ahead, NEAR)
        return self.centre + scale * right, self.horizon + scale * (EYE - up)

    def pixels(self, metres: float, ahead: float) -> float:
        """How many pixels a length takes at a distance."""
        return self.focal * metres / max(ahead, NEAR)

    def shape(self, points: Sequence[Point], colour: Colour, label: Optional[int]) -> None:
        """Paints a flat shape; ``label=None`` leaves the labels as they are (a window, a shadow)."""
        outline = np.round([self.at(point) for point in points]).astype(np.int32)
        ahead = float(np.mean([point[2] for point in points]))
        cv2.fillPoly(self.image, [outline], self.seen(colour, ahead), lineType=cv2.LINE_8)
        if label is not None:
            cv2.fillPoly(self.label, [outline], label, lineType=cv2.LINE_8)

    def disc(self, centre: Point, radius: Tuple[float, float], colour: Colour, label: Optional[int]) -> None:
        """Paints an ellipse of the given half axes (metres)."""
        x, y = self.at(centre)
        axes = tuple(max(1, round(self.pixels(length, centre[2]))) for length in radius)
        place = (round(x), round(y))
        cv2.ellipse(self.image, place, axes, 0, 0, 360, self.seen(colour, centre[2]), -1)
        if label is not None:
            cv2.ellipse(self.label, place, axes, 0, 0, 360, label, -1)

    def ring(self, centre: Point, radius: float, colour: Colour, label: int) -> None:
        """Paints a wheel: its tyre and a few spokes' worth of label."""
        x, y = self.at(centre)
        size = max(2, round(self.pixels(radius, centre[2])))
        thickness = max(1, round(size / 5))
        cv2.circle(self.image, (round(x), round(y)), size, self.seen(colour, centre[2]), thickness)
        cv2.circle(self.label, (round(x), round(y)), size, label, -1)

    def box(self, low: Point, high: Point, colour: Colour, label: Optional[int]) -> None:
        """Paints the visible faces of a box that stands along the road."""
        (left, bottom, near), (right, top, far) = low, high
        if right < 0 or left > 0:
            side = right if right < 0 else left
            face = [(side, bottom, near), (side, top, near), (side, top, far), (side, bottom, far)]
            self.shape(face, _times(colour, 0.72), label)
        if top < EYE:
            face = [(left, top, near), (right, top, near), (right, top, far), (left, top, far)]
            self.shape(face, _times(colour, 1.2), label)
        face = [(left, bottom, near), (left, top, near), (right, top, near), (right, bottom, near)]
        self.shape(face, colour, label)

    def seen(self, colour: Colour, ahead: float) -> Tuple[float, float, float]:
        """A colour through the haze of a distance."""
        share = 1 - np.exp(-ahead / 140)
        blue, green, red = (1 - share) * np.array(colour) + share * self.haze
        return float(blue), float(green), float(red)


def _times(colour: Colour, factor: float) -> Colour:
    return colour[0] * factor, colour[1] * factor, colour[2] * factor
