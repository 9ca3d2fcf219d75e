"""The picture is written, and shows the pixels."""

from __future__ import annotations

import cv2
import numpy as np
from matplotlib.colors import to_rgb

from mmguard.tools.demo.pictures import COLOURS, draw_offenders, overlay


def test_the_picture_is_readable_and_shows_the_cars(dataset, tmp_path):
    draw_offenders(dataset, tmp_path / 'offenders.png')
    shown = cv2.imread(str(tmp_path / 'offenders.png')).astype(float)
    assert min(shown.shape[:2]) > 400
    loud = 255 * np.array(to_rgb(COLOURS[26]))[::-1]
    alike = np.abs(shown / shown.max(axis=2, keepdims=True).clip(1) - loud / loud.max()).max(axis=2) < 0.08
    assert alike.sum() > 2000


def test_overlay_colours_these_pixels_only():
    photo = np.full((40, 60, 3), 100, np.uint8)
    label = np.zeros((40, 60), np.uint8)
    label[10:20, 30:50] = 200
    picture = overlay(photo, label, {200: '#ff0000'}).astype(int)
    assert picture.shape == (80, 120, 3)
    red = picture[..., 0] - picture[..., 1] > 100
    inside = np.zeros_like(red)
    inside[21:39, 61:99] = True  # the outline is white
    assert (red == inside).all()
