"""Third stage of a dry run: the first images of the validation, through ``val_step`` and the user's evaluator."""

from __future__ import annotations

import copy
from itertools import islice
from typing import Any, Dict, List, Tuple

import numpy as np
import torch
from torch.nn.functional import interpolate

from mmguard.config.tree import walk
from mmguard.properties.datasets import seed_all
from mmguard.properties.program import Program
from mmguard.properties.result import DoesNotApply, Result, broken, note, ran
from mmguard.properties.runner import build_loader, has_validation, judge_failure, start_runner
from mmguard.text import quantity

#: Number of images, and the seconds for each that training on as many pixels would take.
IMAGES, SECONDS = 2, 6.0
#: Multiple of the sides of a smaller image: some models take no others.
_MULTIPLE = 64


def check_validation(program: Program) -> List[Result]:
    """Validate two images, and look up ``save_best`` among the results."""
    if not program.config.get('val_cfg') or not program.config.get('val_dataloader'):
        raise DoesNotApply('the config has no validation')
    build_loader(program, 'val')
    runner, model = start_runner(program), program.build_model()
    if not has_validation(program):
        return []
    evaluator, seen, scaled = runner.val_loop.evaluator, 0, 1.0
    model.eval()
    try:
        with torch.no_grad(), program.scope():
            seed_all(0)
            for data in islice(runner.val_dataloader, IMAGES):
                smaller, factor = shrink_images(data, program.count_pixels(SECONDS), program.find_side())
                try:
                    outputs, scaled = model.val_step(smaller), max(scaled, factor)
                except Exception:
                    if factor == 1:
                        raise
                    outputs = model.val_step(data)  # some models need large images
                evaluator.process(data_samples=outputs, data_batch=data)
                seen += len(outputs)
                if seen >= IMAGES or program.seconds_left() < 0:
                    break
            values = {str(name): value for name, value in evaluator.evaluate(seen).items()}
    except Exception as error:
        return [judge_failure(f'validation, image {seen + 1}', error)]
    finally:
        for metric in evaluator.metrics:
            metric.results = []
        model.train()
    numbers = {name: float(value) for name, value in values.items() if isinstance(value, (float, np.floating))}
    listed = ', '.join(f'{name} {value:.3g}' for name, value in list(numbers.items())[:3])
    words = f'{quantity(seen, "image")} of your {len(runner.val_dataloader.dataset):,}'
    words += f', {scaled:.1f} times smaller than they are' if scaled > 1 else ''
    words += f'; the untrained model has {listed}' if listed else ''
    results = [ran('validation', words, dict(images=seen, values=list(values)))]
    return results + _check_save_best(program, values) + _check_thresholds(program)


def shrink_images(data: Any, most: float, least: int) -> Tuple[Any, float]:
    """Return a batch with images of at most some pixels, but of a least side, and the factor by which they shrank.

    Predictions have the size of the file, whatever the size of the image.
    """
    images = data.get('inputs') if isinstance(data, dict) else None
    if not isinstance(images, list) or not all(torch.is_tensor(one) and one.dim() == 3 for one in images):
        return data, 1.0
    factor = (sum(one[0].numel() for one in images) / most) ** 0.5
    factor = min(factor, *(min(one.shape[-2:]) / least for one in images), factor)
    if factor <= 1:
        return data, 1.0
    smaller = copy.deepcopy(data)
    for number, (image, sample) in enumerate(zip(images, smaller['data_samples'])):
        height, width = (_MULTIPLE * max(1, round(side / factor / _MULTIPLE)) for side in image.shape[-2:])
        down, right = height / image.shape[-2], width / image.shape[-1]
        smaller['inputs'][number] = interpolate(image[None].float(), (height, width))[0].to(image.dtype)
        known = sample.metainfo.get('scale_factor', (1.0, 1.0))
        size = dict(
            img_shape=(height, width), pad_shape=(height, width), scale_factor=(known[0] * right, known[1] * down)
        )
        sample.set_metainfo({name: value for name, value in size.items() if name in sample.metainfo})
    return smaller, factor


def _check_save_best(program: Program, values: Dict[str, Any]) -> List[Result]:
    """Name a ``save_best`` that is not among the results; it ends the training after the first validation."""
    hook = (program.config.get('default_hooks') or {}).get('checkpoint') or {}
    asked = hook.get('save_best')
    asked = [asked] if isinstance(asked, str) else asked or []
    wrong = [name for name in asked if name != 'auto' and name not in values]
    if not wrong or not values:
        return []
    return [broken('save_best', f'{wrong[0]} is not among the results: {", ".join(list(values)[:8])}')]


def _check_thresholds(program: Program) -> List[Result]:
    return [
        note('test_cfg', f'score_thr={node["score_thr"]}: no score reaches it, so nothing is predicted')
        for path, node in walk(program.config.model)
        if isinstance(node.get('score_thr'), (int, float)) and node['score_thr'] >= 1
    ]
