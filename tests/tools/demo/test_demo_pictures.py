"""The pictures are written, whole, and show the pixels."""

from __future__ import annotations

import cv2
import numpy as np
from matplotlib.colors import to_rgb

from mmguard.tools.demo.death import values_of
from mmguard.tools.demo.pictures import colour_of, draw_history, draw_offenders, overlay


def test_pictures_are_readable(dataset, tmp_path):
    values = list(values_of(dataset.planted))
    records = [
        {'iter': 2, 'samples': [{'values': {str(value): count for value, count in planted.items()}}]}
        for planted in dataset.planted.values()
    ]
    draw_offenders(dataset, values, tmp_path / 'offenders.png')
    draw_history(records, {1: 9.0, 2: 8.0, 3: 7.5}, values, tmp_path / 'skipped.png')
    draw_history([], {1: 9.0}, values, tmp_path / 'nothing.png')
    assert sorted(path.name for path in tmp_path.iterdir()) == ['nothing.png', 'offenders.png', 'skipped.png']
    for path in tmp_path.iterdir():
        picture = cv2.imread(str(path))
        assert min(picture.shape[:2]) > 400
        assert picture.std() > 5
    loud = 255 * np.array(to_rgb(colour_of(26, values)))[::-1]
    shown = cv2.imread(str(tmp_path / 'offenders.png')).astype(float)
    assert (
        np.abs(shown / shown.max(axis=2, keepdims=True).clip(1) - loud / loud.max()).max(axis=2) < 0.08
    ).sum() > 2000


def test_overlay_colours_these_pixels_alone():
    photo = np.full((40, 60, 3), 100, np.uint8)
    label = np.zeros((40, 60), np.uint8)
    label[10:20, 30:50] = 200
    picture = overlay(photo, label, {200: '#ff0000'}).astype(int)
    assert picture.shape == (80, 120, 3)
    red = picture[..., 0] - picture[..., 1] > 100
    inside = np.zeros_like(red)
    inside[21:39, 61:99] = True  # the outline is white
    assert (red == inside).all()
