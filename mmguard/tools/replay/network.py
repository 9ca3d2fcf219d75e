"""Forward and backward pass of one sample on the CPU."""

from __future__ import annotations

import copy
import math
import os
import re
import traceback
from dataclasses import dataclass, field
from typing import Any, Dict, List, Optional

import torch
from mmengine.dataset import pseudo_collate
from torch import nn

from mmguard.text import find_own_failure

_FRAMEWORKS = re.compile(r'^(?:.*/)?((?:mmseg|mmdet)/(?:models|datasets|structures|engine|utils)/.*)$')
_BELOW = re.compile(r'/(?:torch|numpy|mmcv|mmengine|PIL|cv2|mmguard)/|^<')


@dataclass
class ReplayException:
    """An exception on one line, and its place: ``mmseg/models/x.py:45 in forward``; ``own``: in mmguard."""

    type: str
    message: str
    place: str
    line: str
    own: bool = False

    def __str__(self) -> str:
        return f'{self.type}: {self.message}' if self.message else self.type


@dataclass
class Pass:
    """Result of one forward and backward pass; gradients that are not finite are named nearest to the loss first."""

    raised: Optional[ReplayException] = None
    losses: Dict[str, float] = field(default_factory=dict)
    nonfinite_losses: List[str] = field(default_factory=list)
    nonfinite_gradients: List[str] = field(default_factory=list)
    notes: List[str] = field(default_factory=list)

    @property
    def fails(self) -> bool:
        return self.raised is not None or bool(self.nonfinite_losses or self.nonfinite_gradients)


def run_sample(model: nn.Module, sample: Any, seed: int) -> Pass:
    """Run one packed sample as both samples of a batch of two, because batch norm can fail on a batch of one.

    The model, including running means, is unchanged afterwards; the seed is for dropout and random sampling.
    """
    buffers = [(buffer, buffer.clone()) for buffer in model.buffers()]
    try:
        return _run(model, [sample, sample], seed)
    finally:
        model.zero_grad(set_to_none=True)
        with torch.no_grad():
            for buffer, before in buffers:
                buffer.copy_(before)


def _run(model: Any, samples: List[Any], seed: int) -> Pass:
    result = Pass()
    torch.manual_seed(seed)
    model.train()
    model.zero_grad(set_to_none=True)
    try:
        data = model.data_preprocessor(pseudo_collate([copy.deepcopy(sample) for sample in samples]), True)
        losses = model(**data, mode='loss')
        total, logged = model.parse_losses(losses)
        result.losses = {name: float(value) for name, value in logged.items()}
        wrong = [name for name, value in result.losses.items() if 'loss' in name and not math.isfinite(value)]
        # The total is shown only if no part is.
        result.nonfinite_losses = [name for name in wrong if name != 'loss'] or wrong
        if total.requires_grad:
            total.backward()
            graded = [(name, one.grad) for name, one in model.named_parameters() if one.grad is not None]
            result.nonfinite_gradients = [name for name, grad in graded[::-1] if not grad.isfinite().all()]
        else:
            result.notes.append('no loss depends on a parameter: on several GPUs the ranks would wait for gradients')
    except Exception as error:
        result.raised = describe_raised(error)
    return result


def describe_raised(error: BaseException) -> ReplayException:
    """Describe an exception with the innermost line of framework or user code, or of mmguard if at fault."""
    frames = traceback.extract_tb(error.__traceback__)
    kind, message = type(error).__name__, ' '.join(str(error).split())[:400]
    if not frames:
        return ReplayException(kind, message, '', '')
    own = find_own_failure(error)
    if own:
        return ReplayException(kind, message, own, (frames[-1].line or '').strip(), own=True)
    places = [(frame, frame.filename.replace(os.sep, '/')) for frame in frames]
    # mmseg and mmdet count even below a user's own code; torch and mmcv never do.
    asked = [(frame, file) for frame, file in places if _FRAMEWORKS.search(file) or not _BELOW.search(file)]
    shown, file = (asked or places)[-1]
    match = _FRAMEWORKS.search(file)
    place = f'{match[1] if match else file}:{shown.lineno} in {shown.name}'
    return ReplayException(kind, message, place, (shown.line or '').strip())
