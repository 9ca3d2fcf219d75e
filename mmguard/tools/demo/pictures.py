"""Picture of the invalid labels that the guard found."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Mapping

import cv2
import numpy as np
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from mmguard.files.regular import write_whole
from mmguard.tools.demo.dataset import MEANING, DataSet, read_png

COLOURS = dict(
    zip(MEANING, ('#7dff2a', '#00e5ff', '#ff1fd1', '#b58cff', '#ff3b3b', '#ffffff', '#ff9d5c', '#ffe600', '#ff7a00'))
)


def draw_offenders(dataset: DataSet, path: Path) -> None:
    """Draw the planted files to a PNG, with invalid pixels in bright colours over the darkened photo."""
    rows = (len(dataset.planted) + 1) // 2
    figure = Figure(figsize=(13, 4.25 * rows + 0.7), facecolor='white')
    figure.suptitle('Pixels whose label is not a class of the head; the guard continues without them', fontsize=15)
    for panel, (file, counts) in zip(figure.subplots(rows, 2, squeeze=False).flat, dataset.planted.items()):
        photo = read_png(dataset.image_of(file))[..., ::-1]
        panel.imshow(overlay(photo, read_png(dataset.root / file), {value: COLOURS[value] for value in counts}))
        panel.axis('off')
        panel.set_title(file.replace('gtFine/train/', '…/'), fontsize=9.5, family='monospace', loc='left')
        names = {value: f'{value} ({MEANING[value]}): {count:,} px' for value, count in counts.items()}
        patches = [Patch(facecolor=COLOURS[value], edgecolor='black', label=name) for value, name in names.items()]
        panel.legend(handles=patches, loc='upper left', bbox_to_anchor=(0, 0), ncol=2, fontsize=9.5, frameon=False)
    figure.tight_layout(rect=(0, 0, 1, 0.985), h_pad=1.2)
    drawn = io.BytesIO()
    figure.savefig(drawn, format='png', dpi=110)
    write_whole(path, drawn.getvalue())


def overlay(photo: np.ndarray, label: np.ndarray, colours: Mapping[int, str]) -> np.ndarray:
    """Draw the pixels of some label values over a darkened grey photo.

    Args:
        photo (np.ndarray): (height, width, 3), uint8, RGB.
        label (np.ndarray): (height, width).
        colours (dict[int, str]): Label value -> matplotlib colour.

    Returns:
        np.ndarray: the picture at twice the size, uint8, RGB.
    """
    photo = cv2.resize(photo, None, fx=2, fy=2, interpolation=cv2.INTER_CUBIC)
    label = cv2.resize(label, None, fx=2, fy=2, interpolation=cv2.INTER_NEAREST)
    grey = photo.astype(np.float32).mean(axis=2, keepdims=True)
    picture = 0.62 * (0.45 * photo + 0.55 * grey) + 10
    for value, name in colours.items():
        mask = label == value
        # The photo's light and shadow keep the objects recognisable.
        picture[mask] = (0.55 + 0.45 * grey[mask] / 255) * 255 * np.array(to_rgb(name), np.float32)
        contours = cv2.findContours(mask.astype(np.uint8), cv2.RETR_EXTERNAL, cv2.CHAIN_APPROX_NONE)[-2]
        cv2.drawContours(picture, contours, -1, (255.0, 255.0, 255.0), 1, cv2.LINE_8)
    return picture.clip(0, 255).astype(np.uint8)
