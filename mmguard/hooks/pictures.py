"""Pictures of a loop's worst files, for the run's visualizer."""

from __future__ import annotations

from typing import Any, Callable, Dict, List, Sequence, Set, Tuple

import numpy as np
from mmengine import dist

from mmguard.hooks.discovery import dataset_of, find_wrapped
from mmguard.labels.samples import file_of
from mmguard.labels.tally import Tally
from mmguard.text import describe_error, visible

#: Pixels of the longer side of a picture.
LONGEST = 1024
#: Colour of invalid labels, which no palette has.
LOUD = (255, 0, 170)


def add_pictures(
    runner: Any, mode: str, worst: Sequence[Tuple[str, Tally]], shorten: Callable[[str], str], step: int
) -> None:
    """Pass a picture of each file to the visualizer, as ``guard_train_worst_1`` and so on.

    Image and labels are loaded from the file by the ``Load...`` transforms at the start of the pipeline: what the
    model sees is cropped and sanitized. A file that cannot be drawn is named in the log.
    """
    if dist.get_rank() != 0:  # only the visualizer of rank 0 writes
        return
    warn = runner.logger.warning
    try:
        found = _find(dataset_of(runner, mode), {str(tally.source) for _, tally in worst}, shorten)
    except Exception as error:  # a data set may raise anything, and a picture must not end a training
        warn(f'guard: no pictures, the data set cannot be read: {visible(describe_error(error))}')
        return
    for place, (kind, tally) in enumerate(worst, 1):
        name = str(tally.source)
        try:
            if name not in found:
                raise LookupError('the data set does not list this file')
            results = _load(*found[name])
            if 'img' not in results:
                raise LookupError('no Load... transform at the beginning of the pipeline loads the image')
            label = results['gt_seg_map'] if kind == 'pixels' else None
            has_boxes = kind == 'instances' and 'gt_bboxes' in results  # the label may belong to the image
            boxes = _find_invalid_boxes(results, tally) if has_boxes else np.zeros((0, 4))
            picture = draw(results['img'], label, boxes, tally.values)
        except Exception as error:
            warn(f'guard: no picture of {visible(name)}: {visible(describe_error(error))}')
            continue
        runner.visualizer.add_image(f'guard_{mode}_worst_{place}', picture, step)


def _find(dataset: Any, names: Set[str], shorten: Callable[[str], str]) -> Dict[str, Tuple[Any, Dict[str, Any]]]:
    """Return name -> the data set that lists the file, and its info."""
    found = {}
    for reader in _find_readers(dataset):
        for info in map(reader.get_data_info, range(len(reader))):
            listed = (file_of(info), info.get('img_path'))  # a packed sample may only keep the image's path
            found.update(dict.fromkeys(names.intersection(shorten(str(one)) for one in listed), (reader, info)))
    return found


def draw(image: np.ndarray, label: Any, boxes: np.ndarray, values: Any) -> np.ndarray:
    """Return the image with invalid labels painted and boxes outlined, at most 1,024 pixels high and wide.

    Shapes: ``image`` (height, width[, channels]), BGR; ``label`` (height, width); ``boxes`` (number, 4), two corners;
    the picture (height, width, 3), RGB, uint8.
    """
    pixels = image[..., None] if image.ndim == 2 else image
    pixels = pixels[..., 2::-1] if pixels.shape[2] > 2 else pixels[..., [0, 0, 0]]
    step = max(1, -(-max(pixels.shape[:2]) // LONGEST))
    painted = np.nan_to_num(pixels[::step, ::step]).clip(0, 255)
    if label is not None:
        painted = painted * 0.55  # so that single pixels are visible
    painted = np.ascontiguousarray(painted, dtype=np.uint8)
    height, width = painted.shape[:2]
    if label is not None:
        rows, columns = (place // step for place in np.nonzero(np.isin(label, list(values))))
        inside = (rows < height) & (columns < width)
        painted[rows[inside], columns[inside]] = LOUD
    thick = max(1, max(height, width) // 300)
    for box in np.nan_to_num(boxes / step):
        left, right = sorted(box[[0, 2]].clip(0, width - 1).astype(int))
        top, bottom = sorted(box[[1, 3]].clip(0, height - 1).astype(int))
        painted[top : bottom + 1, left : left + thick] = painted[top : bottom + 1, right : right + thick] = LOUD
        painted[top : top + thick, left : right + 1] = painted[bottom : bottom + thick, left : right + 1] = LOUD
    return painted


def _find_readers(dataset: Any) -> List[Any]:
    """Return the data sets that read files themselves."""
    inner = find_wrapped(dataset)
    return [reader for wrapped in inner for reader in _find_readers(wrapped)] if inner else [dataset]


def _load(dataset: Any, info: Dict[str, Any]) -> Dict[str, Any]:
    for transform in dataset.pipeline.transforms:
        if not type(transform).__name__.startswith('Load'):
            break
        info = transform(info)
    return info


def _find_invalid_boxes(results: Dict[str, Any], tally: Tally) -> np.ndarray:
    """Return the boxes with an invalid label, and those that are not finite, without area or outside the image."""
    boxes = results['gt_bboxes']
    corners = np.asarray(getattr(boxes, 'tensor', boxes), dtype=np.float64)
    height, width = results['img'].shape[:2]
    left, top, right, bottom = corners.T
    is_good = (left < right) & (top < bottom) & (right > 0) & (bottom > 0) & (left < width) & (top < height)
    is_invalid = np.isin(results['gt_bboxes_labels'], list(tally.values))
    return corners[is_invalid | ~(is_good & np.isfinite(corners).all(axis=1))]
