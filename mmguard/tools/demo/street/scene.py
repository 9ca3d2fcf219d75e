"""One street: sky, houses, road, trees, poles, and the traffic."""

from __future__ import annotations

from typing import Tuple

import cv2
import numpy as np

from mmguard.tools.demo.street import traffic
from mmguard.tools.demo.street.canvas import Canvas, Colour
from mmguard.tools.demo.street.classes import (
    BUILDING,
    IGNORED,
    LIGHT,
    POLE,
    ROAD,
    SIDEWALK,
    SIGN,
    SKY,
    TERRAIN,
    VEGETATION,
)

FINER = 2  # painted this much larger, then shrunk: soft edges in the image
FACADES = [(120, 140, 160), (96, 112, 138), (150, 162, 172), (88, 96, 120), (128, 128, 130), (104, 128, 168)]
GRAIN = {ROAD: (0.055, 1.0), BUILDING: (0.05, 2.0), VEGETATION: (0.2, 2.5), TERRAIN: (0.12, 1.5), SIDEWALK: (0.05, 1.5)}


def street_scene(width: int, height: int, seed: int) -> Tuple[np.ndarray, np.ndarray]:
    """Draws a street.

    Args:
        width (int): In pixels.
        height (int): In pixels.
        seed (int): The same seed gives the same street.

    Returns:
        tuple: the image (height, width, 3), uint8, BGR, and the label map (height, width), uint8, of Cityscapes train
        ids; the bonnet of the own car is 255, as in Cityscapes.
    """
    random = np.random.default_rng(seed)
    haze = tuple(np.array((222, 212, 202)) * random.uniform(0.9, 1.05))
    canvas = Canvas(FINER * width, FINER * height, random.uniform(0.42, 0.58), haze)
    kerb = random.uniform(5.2, 6.4)
    _sky(canvas, random)
    _ground(canvas, kerb, random)
    for side in (-1, 1):
        _houses(canvas, side, kerb + random.uniform(3.2, 4.5), random)
    things = [(thing[0], index, *thing[1:]) for index, thing in enumerate(_things(kerb, random))]
    for ahead, _, draw, right in sorted(things, key=lambda thing: (-thing[0], thing[1])):
        draw(canvas, right, ahead, random)
    _bonnet(canvas)
    return _photograph(canvas, width, height, random)


def _sky(canvas: Canvas, random: np.random.Generator) -> None:
    height, width = canvas.label.shape
    deep = np.array((205, 165, 125), np.float32) * random.uniform(0.85, 1.1)
    share = (np.arange(height, dtype=np.float32) / canvas.horizon).clip(0, 1)[:, None, None] ** 0.8
    canvas.image[:] = (1 - share) * deep + share * canvas.haze
    clouds = _noise((height, width), 60, random) + 0.5 * _noise((height, width), 20, random)
    cover = ((clouds - random.uniform(0.2, 0.8)) * 0.9).clip(0, 0.85)[..., None]
    canvas.image[:] = (1 - cover) * canvas.image + cover * 246
    canvas.label[:] = SKY


def _ground(canvas: Canvas, kerb: float, random: np.random.Generator) -> None:
    far, near = 400.0, 1.5
    lawn = random.random() < 0.5

    def strip(left: float, right: float, start: float, end: float, colour: Colour, label: object) -> None:
        points = [(left, 0.0, start), (left, 0.0, end), (right, 0.0, end), (right, 0.0, start)]
        canvas.shape(points, colour, label)  # type: ignore[arg-type]

    strip(-200, 200, near, far, (78, 112, 98) if lawn else (142, 146, 150), TERRAIN if lawn else SIDEWALK)
    strip(-kerb - 3, kerb + 3, near, far, (146, 150, 154), SIDEWALK)
    stones = np.arange(2.0, 60.0, 1.5)
    for start in stones:
        for left in (-kerb - 3, kerb):
            strip(left, left + 3, start, start + 0.06, (124, 128, 132), None)
    strip(-kerb, kerb, near, far, (92, 90, 89), ROAD)
    for start in np.arange(random.uniform(0, 3), 90.0, 6.0):
        strip(-0.08, 0.08, max(start, near), max(start + 3, near), (214, 216, 216), None)
    for line in (-kerb + 0.3, kerb - 0.45):
        strip(line, line + 0.12, near, far, (186, 188, 188), None)
    for line in (-kerb, kerb - 0.12):
        strip(line, line + 0.12, near, far, (172, 176, 178), SIDEWALK)


def _houses(canvas: Canvas, side: int, offset: float, random: np.random.Generator) -> None:
    houses = []
    ahead = random.uniform(-2, 4)
    while ahead < 110:
        length = random.uniform(8, 16)
        houses.append((max(ahead, 1.5), ahead + length))
        ahead += length + (random.uniform(3, 7) if random.random() < 0.3 else 0)
    for near, far in reversed(houses):
        paint = np.array(FACADES[random.integers(len(FACADES))]) * random.uniform(0.85, 1.1)
        lit = 1.05 if side > 0 else 0.82
        wall: Colour = tuple(paint * lit)  # type: ignore[assignment]
        front = offset + random.uniform(0, 0.6)
        roof = random.uniform(7, 17)
        low, high = sorted((side * front, side * (front + 14)))
        canvas.box((low, 0.0, near), (high, roof, far), wall, BUILDING)
        _windows(canvas, side * front, near, far, roof, tuple(paint * lit * 0.55), random)  # type: ignore[arg-type]


def _windows(
    canvas: Canvas, wall: float, near: float, far: float, roof: float, frame: Colour, random: np.random.Generator
) -> None:
    for floor in np.arange(0.9, roof - 2, 3.0):
        for start in np.arange(near + 0.9, far - 1.4, 2.4):
            if start > 80:
                continue
            glass: Colour = tuple(np.array((96, 84, 74)) * random.uniform(0.5, 1.5))  # type: ignore[assignment]
            end, top = start + 1.3, floor + 1.7
            for inset, colour in ((-0.12, frame), (0.0, glass)):
                corners = [(floor + inset, start + inset), (top - inset, start + inset)]
                corners += [(top - inset, end - inset), (floor + inset, end - inset)]
                canvas.shape([(wall, y, z) for y, z in corners], colour, None)
    ledge = [(wall, roof - 0.5, near), (wall, roof, near), (wall, roof, far), (wall, roof - 0.5, far)]
    canvas.shape(ledge, frame, None)


def _things(kerb: float, random: np.random.Generator) -> list:
    things = []
    for side in (-1, 1):
        ahead = random.uniform(9, 16)
        while ahead < 75:
            things.append((ahead, _tree, side * (kerb + random.uniform(1.6, 2.4))))
            ahead += random.uniform(9, 20)
        for ahead in np.arange(random.uniform(7, 14), 60, 22.0):
            things.append((ahead, _lamp if random.random() < 0.5 else _sign, side * (kerb + 0.5)))
        ahead = random.uniform(6, 12)
        while ahead < 45:
            if random.random() < 0.6:
                things.append((ahead, traffic.car, side * (kerb - 1.2)))
            ahead += random.uniform(5.5, 9)
        for _ in range(random.integers(1, 4)):
            things.append((random.uniform(6, 22), traffic.person, side * (kerb + random.uniform(0.7, 2.6))))
    for lane in (-1.9, 1.9):
        for ahead in (random.uniform(8, 14), random.uniform(24, 34)):
            if random.random() < 0.7:
                things.append((ahead, traffic.car, lane))
    if random.random() < 0.4:
        things.append((random.uniform(14, 22), traffic.bus, random.choice([-1.9, 1.9])))
    if random.random() < 0.6:
        things.append((random.uniform(4.6, 5.8), traffic.rider, random.choice([-1, 1]) * random.uniform(1.8, 2.8)))
    return things


def _tree(canvas: Canvas, right: float, ahead: float, random: np.random.Generator) -> None:
    trunk, crown = random.uniform(1.8, 2.6), random.uniform(1.2, 1.9)
    points = [(right - 0.16, 0.0), (right - 0.1, trunk + 0.6), (right + 0.1, trunk + 0.6), (right + 0.16, 0.0)]
    canvas.shape([(x, y, ahead) for x, y in points], (44, 56, 70), VEGETATION)
    green = np.array((46, 92, 70)) * random.uniform(0.8, 1.2)
    for step in range(46):
        angle, away = random.uniform(0, 2 * np.pi), crown * np.sqrt(random.random())
        x, y = right + away * np.cos(angle), trunk + 0.8 * crown + 0.95 * away * np.sin(angle)
        light = 0.62 + 0.012 * step + 0.18 * np.sin(angle)
        leaf: Colour = tuple(green * light * random.uniform(0.85, 1.15))  # type: ignore[assignment]
        size = crown * random.uniform(0.16, 0.4)
        canvas.disc((x, y, ahead), (size, size * random.uniform(0.7, 1)), leaf, VEGETATION)


def _mast(canvas: Canvas, right: float, ahead: float, top: float) -> None:
    points = [(right - 0.06, 0.0), (right - 0.05, top), (right + 0.05, top), (right + 0.06, 0.0)]
    canvas.shape([(x, y, ahead) for x, y in points], (92, 94, 96), POLE)


def _sign(canvas: Canvas, right: float, ahead: float, random: np.random.Generator) -> None:
    _mast(canvas, right, ahead, 2.6)
    if random.random() < 0.5:
        canvas.disc((right, 2.6, ahead), (0.36, 0.36), (44, 40, 190), SIGN)
        canvas.disc((right, 2.6, ahead), (0.25, 0.25), (226, 228, 230), None)
    else:
        corners = [(right - 0.4, 2.3), (right - 0.4, 3.0), (right + 0.4, 3.0), (right + 0.4, 2.3)]
        canvas.shape([(x, y, ahead) for x, y in corners], (170, 96, 40), SIGN)
        corners = [(right - 0.1, 2.4), (right, 2.9), (right + 0.1, 2.4)]
        canvas.shape([(x, y, ahead) for x, y in corners], (228, 228, 228), None)


def _lamp(canvas: Canvas, right: float, ahead: float, random: np.random.Generator) -> None:
    _mast(canvas, right, ahead, 3.2)
    canvas.box((right - 0.17, 2.6, ahead - 0.1), (right + 0.17, 3.5, ahead + 0.1), (44, 44, 46), LIGHT)
    colours = [(60, 60, 220), (60, 170, 230), (90, 200, 80)]
    bright = random.integers(3)
    for index, colour in enumerate(colours):
        shown: Colour = colour if index == bright else (34, 34, 36)
        canvas.disc((right, 3.32 - 0.27 * index, ahead - 0.12), (0.1, 0.1), shown, None)


def _bonnet(canvas: Canvas) -> None:
    height, width = canvas.label.shape
    centre, axes = (width // 2, round(1.03 * height)), (round(0.5 * width), round(0.1 * height))
    cv2.ellipse(canvas.image, centre, axes, 0, 0, 360, (70, 66, 62), -1)
    cv2.ellipse(canvas.image, (centre[0], centre[1] + height // 40), axes, 0, 0, 360, (52, 48, 46), -1)
    cv2.ellipse(canvas.label, centre, axes, 0, 0, 360, IGNORED, -1)


def _photograph(canvas: Canvas, width: int, height: int, random: np.random.Generator) -> Tuple[np.ndarray, np.ndarray]:
    """Grain of the surfaces, light, lens and sensor."""
    image: np.ndarray = canvas.image
    for surface, (strength, size) in GRAIN.items():
        grain = 1 + strength * _noise(canvas.label.shape, size, random)
        image = image * np.where(canvas.label == surface, grain, 1).astype(np.float32)[..., None]
    image = image * (1 + 0.06 * _noise(canvas.label.shape, 90, random))[..., None]
    image = cv2.resize(image, (width, height), interpolation=cv2.INTER_AREA)
    image = cv2.GaussianBlur(image, (3, 3), 0.55)
    x, y = np.linspace(-1, 1, width), np.linspace(-1, 1, height)
    image = image * (1.05 - 0.16 * (x[None, :] ** 2 + 0.6 * y[:, None] ** 2)).astype(np.float32)[..., None]
    image = image * random.uniform(0.88, 1.08) + random.normal(0, 2.6, image.shape)
    label = cv2.resize(canvas.label, (width, height), interpolation=cv2.INTER_NEAREST)
    return image.clip(0, 255).astype(np.uint8), label


def _noise(shape: Tuple[int, ...], size: float, random: np.random.Generator) -> np.ndarray:
    """Noise of about unit deviation with spots of a size in pixels."""
    coarse = (max(2, round(shape[0] / size)), max(2, round(shape[1] / size)))
    spots = random.standard_normal(coarse, dtype=np.float32)
    return cv2.resize(spots, (shape[1], shape[0]), interpolation=cv2.INTER_CUBIC)
