"""Image and label move together: what is drawn into both is found at the same place after every step."""

from __future__ import annotations

from typing import Any, Dict, List, NamedTuple, Optional, Tuple

import numpy as np
import torch
from mmengine.dataset import pseudo_collate
from mmengine.registry import MODELS

from mmguard.properties.alignment import describe_difference, draw_boxes, draw_field, fill_boxes
from mmguard.properties.program import Program, seed_all, spread
from mmguard.properties.result import Result, Unavailable, broken, encode_picture, holds
from mmguard.properties.samples import make_masks
from mmguard.properties.steps import watched_steps

#: Gray levels of what is drawn and of what is around it.
BRIGHT, DARK = 200, 50
#: Key of results whose image and labels were drawn.
_DRAWN = 'mmguard_drawn'
#: Kind of label that is a label map.
_MAP = 'label map'
#: Times that a sample is loaded, at least: random steps draw again each time.
TRIES = 8


class Seen(NamedTuple):
    """Image of shape (H, W, C) after a step, and kind of label -> what it shows there, of shape (H, W)."""

    step: str
    image: np.ndarray
    figures: Dict[str, np.ndarray]


def check(program: Program) -> List[Result]:
    """Draw the same figure into images and labels after loading; look for it after each step."""
    dataset = program.dataset('train')
    tries = max(TRIES, program.samples)
    indices = spread(len(dataset), tries)
    wrong: Dict[str, Result] = {}
    known: Dict[str, int] = {}
    for number in range(tries):
        steps = trace(program, dataset, indices[number % len(indices)], number)
        for kind in steps[-1].figures if steps else ():
            found = _judge(kind, [seen for seen in steps if kind in seen.figures], program.ignore_values())
            if found is not None:
                known[kind] = known.get(kind, 0) + 1
                if found.outcome == 'broken':
                    wrong.setdefault(kind, found)
        if program.seconds_left() < 0:
            break
    if not known:
        raise Unavailable('no step loads an image with its labels, or nothing of the figure was left in the image')
    return [wrong.get(kind) or holds(kind, '', dict(tries=count)) for kind, count in known.items()]


def trace(program: Program, dataset: Any, index: int, seed: int) -> List[Seen]:
    """Load a sample with a figure drawn into it, and return image and labels after each step."""
    rng, highest = np.random.default_rng(seed), max(1, len(program.class_names()) - 1)
    steps: List[Seen] = []

    def on_step(name: str, results: Any) -> Any:
        if draw(results, rng, min(highest, 254)) or steps:
            steps.extend(look(name, results))
        return results

    with program.scope(), watched_steps(dataset, on_step):
        seed_all(seed)
        try:
            sample = dataset[index]
        except Exception:  # another property names it
            return []
    final = look('the pipeline', sample)
    return [*steps, *final, *_run_preprocessor(program, sample)] if final else []


def draw(results: Any, rng: np.random.Generator, highest: int) -> bool:
    """Draw a figure in place of an image and its labels, as soon as both are loaded. Returns True if it did."""
    if not isinstance(results, dict) or results.get(_DRAWN) or not isinstance(results.get('img'), np.ndarray):
        return False
    image, label = results['img'], results.get('gt_seg_map')
    if image.ndim not in (2, 3) or all(results.get(name) is None for name in ('gt_seg_map', 'gt_bboxes', 'gt_masks')):
        return False
    height, width = image.shape[:2]
    if label is not None and label.shape[:2] != (height, width):
        return False  # as in tests, where only the image was resized
    if 'gt_bboxes' in results:
        boxes = draw_boxes(rng, height, width)
        figure = fill_boxes(boxes, height, width)
        if not _replace_instances(results, boxes, height, width):
            return False
    else:
        figure = draw_field(rng, height, width)
    if label is not None:
        results['gt_seg_map'] = figure.astype(label.dtype) * highest
    shown = np.where(figure > 0, BRIGHT, DARK) + rng.integers(-12, 13, figure.shape)
    shown = shown[..., None] if image.ndim == 3 else shown
    results['img'] = np.broadcast_to(shown, image.shape).astype(image.dtype)
    results[_DRAWN] = True
    return True


def _replace_instances(results: Dict[str, Any], boxes: List[Any], height: int, width: int) -> bool:
    known, tensor = results['gt_bboxes'], torch.tensor(boxes, dtype=torch.float32)
    if hasattr(known, 'tensor'):
        if known.tensor.shape[-1] != 4:
            return False
        results['gt_bboxes'] = type(known)(tensor)
    else:
        results['gt_bboxes'] = tensor if torch.is_tensor(known) else tensor.numpy()
    results['gt_bboxes_labels'] = np.zeros(len(boxes), np.int64)
    if 'gt_ignore_flags' in results:
        results['gt_ignore_flags'] = np.zeros(len(boxes), bool)
    if results.get('gt_masks') is not None:
        results['gt_masks'] = make_masks(results['gt_masks'], boxes, height, width)
    return True


def look(step: str, results: Any) -> List[Seen]:
    """Return image and labels of a sample, packed or not; an empty list where it has none."""
    if not isinstance(results, dict):
        return []
    image, label, instances = results.get('img'), results.get('gt_seg_map'), {}  # type: Any, Any, Any
    if torch.is_tensor(results.get('inputs')) and results['inputs'].dim() == 3:
        image = results['inputs'].permute(1, 2, 0).cpu().numpy()
        packed: Any = results.get('data_samples') or {}
        instances = packed.gt_instances if 'gt_instances' in packed else {}
        if 'gt_sem_seg' in packed:
            label = next(iter(packed.gt_sem_seg.values())).squeeze().cpu().numpy()
    if not isinstance(image, np.ndarray) or image.ndim not in (2, 3):
        return []
    boxes = instances.get('bboxes', results.get('gt_bboxes'))
    masks = instances.get('masks', results.get('gt_masks'))
    figures: Dict[str, np.ndarray] = {}
    if isinstance(label, np.ndarray) and label.ndim == 2:
        figures[_MAP] = label
    if boxes is not None and len(boxes):
        figures['boxes'] = fill_boxes(getattr(boxes, 'tensor', boxes), *image.shape[:2])
    if masks is not None and len(masks):
        figures['masks'] = (masks.to_ndarray() if hasattr(masks, 'to_ndarray') else np.asarray(masks)).max(0)
    return [Seen(step, image, figures)] if figures else []


def _run_preprocessor(program: Program, sample: Any) -> List[Seen]:
    """Return image and labels after the model's preprocessor, which may resize batches."""
    node = (program.config.get('model') or {}).get('data_preprocessor') or program.config.get('data_preprocessor')
    try:
        with program.scope():
            preprocessor = MODELS.build(node)
            batch = preprocessor(pseudo_collate([sample]), True)
        packed = {'inputs': batch['inputs'][0], 'data_samples': batch['data_samples'][0]}
    except Exception:  # it may need a whole model
        return []
    return look(type(preprocessor).__name__, packed)


def _judge(kind: str, steps: List[Seen], ignored: Tuple[int, ...]) -> Optional[Result]:
    """Compare image and label at the end; where they differ, name the first step after which they stay different."""
    words: Optional[str] = ''
    named = None
    for seen in reversed(steps):
        found = describe_difference(seen.image, seen.figures[kind], kind, kind == _MAP, ignored)
        if named is None and not found:
            return None if found is None else holds(kind)
        if not found:  # later steps may make good what an earlier one did
            break
        named, words = seen, found
    if named is None:
        return None
    picture = encode_picture(named.image, named.figures[kind])
    evidence = f'after this step {words}'
    return broken(f'{kind}, {named.step}', evidence, dict(step=named.step, picture=picture))
