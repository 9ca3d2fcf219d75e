"""Image and label move together: what is drawn into both is found at the same place after every step."""

from __future__ import annotations

from typing import Any, Dict, List, NamedTuple, Optional, Tuple

import numpy as np
import torch
from mmengine.dataset import pseudo_collate
from mmengine.registry import MODELS

from mmguard.properties.alignment import Box, displacement, draw_boxes, draw_field, fill_boxes, has_third_values
from mmguard.properties.program import Program, seed_all, spread
from mmguard.properties.result import Result, Unavailable, broken, holds, not_tested
from mmguard.properties.samples import make_masks
from mmguard.properties.steps import watched_steps

#: Gray levels of what is drawn and of what is around it.
BRIGHT, DARK = 200, 50
#: Key of results whose image and labels were drawn.
_DRAWN = 'mmguard_drawn'
#: Times that a sample is loaded, at least: random steps draw again each time.
TRIES = 8


class Seen(NamedTuple):
    """Image and labels after a step.

    Attributes:
        step (str): Its name.
        image (ndarray): Of shape (H, W, C).
        figures (dict[str, ndarray]): Kind of label -> what it shows, of shape (H, W).
        valid (dict[str, ndarray]): Kind of label -> where it says anything.
        label (ndarray, optional): The label map.
    """

    step: str
    image: np.ndarray
    figures: Dict[str, np.ndarray]
    valid: Dict[str, np.ndarray]
    label: Optional[np.ndarray]


def check(program: Program) -> List[Result]:
    """Draw the same figure into images and labels after loading; look for it after each step."""
    dataset = program.dataset('train')
    tries = max(TRIES, program.samples)
    ignored = program.ignore_values()
    wrong: Dict[str, Result] = {}
    known: Dict[str, int] = {}
    for number in range(tries):
        index = spread(len(dataset), tries)[number % min(tries, len(dataset))]
        steps = trace(program, dataset, index, number, ignored)
        if not steps:
            continue
        for kind in steps[-1].figures:
            found = _judge(kind, steps, ignored)
            if found is None:
                continue
            known[kind] = known.get(kind, 0) + 1
            if found.outcome == 'broken':
                wrong.setdefault(kind, found)
        if program.seconds_left() < 0:
            break
    if not known:
        raise Unavailable('no step loads an image with its labels, or nothing of the figure was left in the image')
    return [wrong.get(kind) or holds(kind, tries=count) for kind, count in known.items()]


def trace(program: Program, dataset: Any, index: int, seed: int, ignored: Tuple[int, ...]) -> List[Seen]:
    """Load a sample with a figure drawn into it, and return image and labels after each step."""
    draw = Drawing(np.random.default_rng(seed), program)
    steps: List[Seen] = []

    def on_step(name: str, results: Any) -> Any:
        draw(results)
        if draw.done:
            seen = look(name, results, ignored)
            if seen is not None:
                steps.append(seen)
        return results

    with program.scope(), watched_steps(dataset, on_step):
        seed_all(seed)
        try:
            sample = dataset[index]
        except Exception:  # another property names it
            return []
    final = look('the pipeline', sample, ignored)
    if final is None:
        return []
    steps.append(final)
    batched = _run_preprocessor(program, sample, ignored)
    return steps if batched is None else [*steps, batched]


class Drawing:
    """Draws figures in place of images and their labels, as soon as both are loaded.

    Args:
        rng (Generator): Draws each image another figure.
        program (Program): Says how many classes there are.
    """

    def __init__(self, rng: np.random.Generator, program: Program) -> None:
        self._rng = rng
        self._highest = max(1, len(program.class_names()) - 1)
        self.done = False

    def __call__(self, results: Any) -> None:
        if not isinstance(results, dict) or results.get(_DRAWN) or not isinstance(results.get('img'), np.ndarray):
            return
        labels = [name for name in ('gt_seg_map', 'gt_bboxes', 'gt_masks') if results.get(name) is not None]
        if not labels or results['img'].ndim not in (2, 3):
            return
        height, width = results['img'].shape[:2]
        if 'gt_bboxes' in results:
            boxes = draw_boxes(self._rng, height, width)
            figure = fill_boxes(boxes, height, width)
            if not self._replace_instances(results, boxes, height, width):
                return
        else:
            figure = draw_field(self._rng, height, width)
        if 'gt_seg_map' in results:
            if results['gt_seg_map'].shape[:2] != (height, width):
                return  # as in tests, where only the image was resized
            drawn = figure.astype(results['gt_seg_map'].dtype) * min(self._highest, 254)
            results['gt_seg_map'] = drawn
        shown = np.where(figure > 0, BRIGHT, DARK) + self._rng.integers(-12, 13, figure.shape)
        image = results['img']
        results['img'] = (
            (shown[..., None] if image.ndim == 3 else shown)
            .repeat(image.shape[2] if image.ndim == 3 else 1, -1)
            .reshape(image.shape)
            .astype(image.dtype)
        )
        results[_DRAWN] = self.done = True

    def _replace_instances(self, results: Dict[str, Any], boxes: List[Box], height: int, width: int) -> bool:
        number, known = len(boxes), results['gt_bboxes']
        tensor = torch.tensor(boxes, dtype=torch.float32)
        if hasattr(known, 'tensor'):
            if known.tensor.shape[-1] != 4:
                return False
            results['gt_bboxes'] = type(known)(tensor)
        else:
            results['gt_bboxes'] = tensor if torch.is_tensor(known) else tensor.numpy()
        results['gt_bboxes_labels'] = np.zeros(number, np.int64)
        if 'gt_ignore_flags' in results:
            results['gt_ignore_flags'] = np.zeros(number, bool)
        if results.get('gt_masks') is not None:
            results['gt_masks'] = make_masks(results['gt_masks'], boxes, height, width)
        return True


# ---- what is there after a step


def look(step: str, results: Any, ignored: Tuple[int, ...]) -> Optional[Seen]:
    """Return image and labels of a sample, packed or not; ``None`` where it has none."""
    if not isinstance(results, dict):
        return None
    image, boxes, masks, label = results.get('img'), results.get('gt_bboxes'), results.get('gt_masks'), None
    if torch.is_tensor(results.get('inputs')) and results['inputs'].dim() == 3:
        image = results['inputs'].permute(1, 2, 0).cpu().numpy()
        packed = results.get('data_samples')
        instances = packed.gt_instances if packed is not None and 'gt_instances' in packed else None
        boxes = instances.bboxes if instances is not None and 'bboxes' in instances else None
        masks = instances.masks if instances is not None and 'masks' in instances else None
        if packed is not None and 'gt_sem_seg' in packed:
            label = next(iter(packed.gt_sem_seg.values())).squeeze().cpu().numpy()
    elif isinstance(results.get('gt_seg_map'), np.ndarray):
        label = results['gt_seg_map']
    if not isinstance(image, np.ndarray) or image.ndim not in (2, 3):
        return None
    height, width = image.shape[:2]
    figures: Dict[str, np.ndarray] = {}
    valid: Dict[str, np.ndarray] = {}
    if label is not None and label.ndim == 2:
        figures['label map'], valid['label map'] = label, ~np.isin(label, ignored)
    if boxes is not None and len(boxes):
        tensor = getattr(boxes, 'tensor', boxes)
        figures['boxes'] = fill_boxes(tensor, height, width)
    if masks is not None and len(masks):
        planes = masks.to_ndarray() if hasattr(masks, 'to_ndarray') else np.asarray(masks)
        figures['masks'] = planes.max(0)
    return Seen(step, image, figures, valid, label) if figures else None


def _run_preprocessor(program: Program, sample: Any, ignored: Tuple[int, ...]) -> Optional[Seen]:
    """Return image and labels after the model's preprocessor, which may resize batches."""
    node = (program.config.get('model') or {}).get('data_preprocessor') or program.config.get('data_preprocessor')
    try:
        with program.scope():
            preprocessor = MODELS.build(node)
            batch = preprocessor(pseudo_collate([sample]), True)
        packed = {'inputs': batch['inputs'][0], 'data_samples': batch['data_samples'][0]}
    except Exception:  # it may need a whole model
        return None
    return look(type(preprocessor).__name__, packed, ignored)


def _judge(kind: str, steps: List[Seen], ignored: Tuple[int, ...]) -> Optional[Result]:
    """Compare image and label at the end; where they differ, name the first step after which they did."""
    last = [seen for seen in steps if kind in seen.figures]
    if not last:
        return None
    problem = _problem(kind, last[-1], ignored)
    if problem is None:
        return None
    if not problem:
        return holds(kind)
    for number, seen in enumerate(last):
        # Later steps may make good what one did: the first after which it stays wrong.
        if all(_problem(kind, later, ignored) for later in last[number:]):
            words = _problem(kind, seen, ignored)
            return broken(f'{kind}, {seen.step}', f'after this step {words}', step=seen.step)
    return not_tested(kind, 'no step')


def _problem(kind: str, seen: Seen, ignored: Tuple[int, ...]) -> Optional[str]:
    """Say how image and label differ; empty: they do not, ``None``: nothing can be seen."""
    figure = seen.figures[kind]
    if figure.shape != seen.image.shape[:2]:
        return f'the image is {seen.image.shape[:2]} and the {kind} {figure.shape}'
    if kind == 'label map' and seen.label is not None:
        between = has_third_values(seen.label, ignored)
        if len(between) > 1:
            return f'the label map holds values that it had not: {", ".join(map(str, between[:4]))} (interpolated)'
    found = displacement(seen.image, figure, seen.valid.get(kind))
    if not found.is_known:
        return None
    return f'the image is {found} against its {kind}' if found.is_clear else ''
