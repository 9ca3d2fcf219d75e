"""Pictures of what the guard found."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any, Dict, List, Mapping, Sequence

import cv2
import numpy as np
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator, StrMethodFormatter

from mmguard.files.whole import write_whole
from mmguard.tools.demo.dataset import MEANING, DataSet, read_png

LOUD = ['#ff1fd1', '#ffe600', '#00e5ff', '#ff7a00', '#7dff2a', '#ff3b3b', '#b58cff', '#ffffff']
PANELS = 6
INK = '#20242c'


def colour_of(value: int, values: Sequence[int]) -> str:
    """The same loud colour for a value in every picture; the most frequent value comes first."""
    return LOUD[list(values).index(value) % len(LOUD)]


def draw_offenders(dataset: DataSet, values: Sequence[int], path: Path) -> None:
    """Draws the files with the most invalid pixels, those pixels in loud colours over the darkened photo.

    Args:
        dataset (DataSet): Its ``planted`` files are shown.
        values (list[int]): All invalid values, the most frequent first.
        path (Path): The PNG file to write.
    """
    ranked = sorted(dataset.planted.items(), key=lambda item: -sum(item[1].values()))[:PANELS]
    rows = (len(ranked) + 1) // 2
    figure = Figure(figsize=(13, 4.25 * rows + 0.7), facecolor='white')
    panels = figure.subplots(rows, 2, squeeze=False)
    figure.suptitle(
        'Pixels whose label is no class of the head; the guard trains on without them',
        fontsize=15,
        fontweight='bold',
        color=INK,
    )
    for panel in panels.flat:
        panel.axis('off')
    for panel, (file, counts) in zip(panels.flat, ranked):
        label = read_png(dataset.root / file)
        photo = read_png(dataset.image_of(file))[..., ::-1]
        panel.imshow(overlay(photo, label, {value: colour_of(value, values) for value in counts}))
        panel.set_title(file.replace('gtFine/train/', '…/'), fontsize=9.5, color=INK, family='monospace', loc='left')
        patches = [
            Patch(
                facecolor=colour_of(value, values),
                edgecolor=INK,
                linewidth=0.6,
                label=f'{value} ({MEANING[value]}): {count:,} px',
            )
            for value, count in sorted(counts.items(), key=lambda item: -item[1])
        ]
        panel.legend(
            handles=patches,
            loc='upper left',
            bbox_to_anchor=(-0.01, -0.01),
            ncol=2,
            fontsize=9.5,
            frameon=False,
            labelcolor=INK,
            handlelength=1.2,
            columnspacing=1.6,
        )
    figure.tight_layout(rect=(0, 0, 1, 0.985), h_pad=1.2)
    _save(figure, path)


def overlay(photo: np.ndarray, label: np.ndarray, colours: Mapping[int, str]) -> np.ndarray:
    """Paints the pixels of some label values over a darkened grey photo.

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
        colour = 255 * np.array(to_rgb(name), np.float32)
        # The photo's own light and shadow keep what lies below recognisable.
        picture[mask] = (0.55 + 0.45 * grey[mask] / 255) * colour
        contours = cv2.findContours(mask.astype(np.uint8), cv2.RETR_EXTERNAL, cv2.CHAIN_APPROX_NONE)[-2]
        cv2.drawContours(picture, contours, -1, (255.0, 255.0, 255.0), 1, cv2.LINE_8)
    return picture.clip(0, 255).astype(np.uint8)


def draw_history(records: List[Dict[str, Any]], losses: Mapping[int, float], values: Sequence[int], path: Path) -> None:
    """Draws loss and skipped pixels per iteration.

    Args:
        records (list[dict]): Those of ``label_guard.jsonl``.
        losses (dict[int, float]): Iteration -> loss.
        values (list[int]): All invalid values, the most frequent first.
        path (Path): The PNG file to write.
    """
    iterations = sorted(losses)
    skipped = {value: dict.fromkeys(iterations, 0) for value in values}
    for record in records:
        for sample in record['samples']:
            for value, count in sample['values'].items():
                skipped[int(value)][record['iter']] += count
    figure = Figure(figsize=(10.5, 6.4), facecolor='white')
    above, below = figure.subplots(2, 1, sharex=True, gridspec_kw={'height_ratios': [1, 1.6]})
    above.plot(
        iterations, [losses[number] for number in iterations], color=INK, linewidth=1.8, marker='o', markersize=4
    )
    above.set_ylabel('loss')
    above.set_title('The guarded training goes on: what it skipped, iteration by iteration', loc='left', color=INK)
    floor = np.zeros(len(iterations))
    for value in values:
        heights = np.array([skipped[value][number] for number in iterations], float)
        name = f'label {value} ({MEANING[value]}), {int(heights.sum()):,} px in all'
        below.bar(
            iterations, heights, bottom=floor, color=colour_of(value, values), edgecolor=INK, linewidth=0.6, label=name
        )
        floor += heights
    below.set_xlabel('iteration')
    below.set_ylabel('skipped pixels')
    below.set_ylim(0, max(1.0, 1.42 * floor.max(initial=0)))
    below.yaxis.set_major_formatter(StrMethodFormatter('{x:,.0f}'))
    below.xaxis.set_major_locator(MaxNLocator(integer=True))
    below.set_xlim(min(iterations) - 0.7, max(iterations) + 0.7)
    below.legend(loc='upper left', ncol=2, fontsize=9, frameon=False)
    for axes in (above, below):
        axes.grid(axis='y', color='#d8dce2', linewidth=0.8)
        axes.set_axisbelow(True)
        axes.spines[['top', 'right']].set_visible(False)
    figure.tight_layout()
    _save(figure, path)


def _save(figure: Figure, path: Path) -> None:
    drawn = io.BytesIO()
    figure.savefig(drawn, format='png', dpi=110)
    write_whole(path, drawn.getvalue())
