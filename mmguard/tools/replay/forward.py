"""One sample through the model: forward in training mode, backward, on the CPU."""

from __future__ import annotations

import copy
import linecache
import math
import os
import re
import traceback
from dataclasses import dataclass, field
from typing import Any, Dict, List, Optional

import torch
from mmengine.dataset import pseudo_collate
from torch import nn

from mmguard.hooks.rank_guard_hook import nonfinite_gradients
from mmguard.text.failures import own_failure

#: What batch norm says to a single value per channel.
_ONE_VALUE = 'Expected more than 1 value per channel'
_FRAMEWORKS = re.compile(r'^(?:.*/)?((?:mmseg|mmdet)/(?:models|datasets|structures|engine|utils)/.*)$')
_BELOW = re.compile(r'/(?:torch|numpy|mmcv|mmengine|PIL|cv2|mmguard)/|^<')


@dataclass
class Raised:
    """An exception, and where.

    Args:
        type, message (str): As Python prints them; the message in one line.
        place (str): ``'mmseg/models/losses/cross_entropy_loss.py:45 in cross_entropy'``.
        line (str): That line of source.
        own (bool): Whether it came up in mmguard itself.
    """

    type: str
    message: str
    place: str
    line: str
    own: bool = False

    def __str__(self) -> str:
        return f'{self.type}: {self.message}' if self.message else self.type


@dataclass
class Pass:
    """What came of one forward and backward.

    Args:
        raised (Raised, optional): The exception that ended it.
        losses (dict[str, float]): As logged.
        nonfinite_losses (list[str]): Those that are NaN or infinite.
        nonfinite_gradients (list[str]): Parameters, those nearest to the loss first.
        notes (list[str]): What was done otherwise than in training.
    """

    raised: Optional[Raised] = None
    losses: Dict[str, float] = field(default_factory=dict)
    nonfinite_losses: List[str] = field(default_factory=list)
    nonfinite_gradients: List[str] = field(default_factory=list)
    notes: List[str] = field(default_factory=list)

    @property
    def fails(self) -> bool:
        return self.raised is not None or bool(self.nonfinite_losses or self.nonfinite_gradients)


def run_sample(model: nn.Module, sample: Any, seed: int) -> Pass:
    """Runs one sample as a batch of one, or, where batch norm does not allow that, twice in a batch of two.

    The model is left as it was, running means included.

    Args:
        model (nn.Module): A model of mmengine.
        sample (dict): As the pipeline packed it. Never written to.
        seed (int): Of dropout and random sampling.
    """
    buffers = [(buffer, buffer.clone()) for buffer in model.buffers()]
    try:
        result = _run(model, [sample], seed)
        if result.raised is not None and _ONE_VALUE in result.raised.message:
            result = _run(model, [sample, sample], seed)
            result.notes.append('batch norm cannot train on a batch of one here: the sample was taken twice')
        return result
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
        # The sum of all is shown only where no part is.
        result.nonfinite_losses = [name for name in wrong if name != 'loss'] or wrong
        if total.requires_grad:
            total.backward()
            result.nonfinite_gradients = nonfinite_gradients(model)
        else:
            result.notes.append('no loss hangs on a parameter: on several GPUs the ranks would wait for gradients')
    except Exception as error:
        result.raised = raised_of(error)
    return result


def raised_of(error: BaseException) -> Raised:
    """An exception with the innermost line of framework or user code that it passed; or of mmguard, if at fault."""
    frames = traceback.extract_tb(error.__traceback__)
    message = ' '.join(str(error).split())[:400]
    if own_failure(error):
        return Raised(type(error).__name__, message, own_failure(error), (frames[-1].line or '').strip(), own=True)
    shown = None
    for frame in frames:
        file = frame.filename.replace(os.sep, '/')
        # mmseg and mmdet count even below a user's own code; torch and mmcv never do.
        if _FRAMEWORKS.search(file) or not _BELOW.search(file):
            shown = frame
    shown = shown or (frames[-1] if frames else None)
    if shown is None:
        return Raised(type(error).__name__, message, '', '')
    file = shown.filename.replace(os.sep, '/')
    match = _FRAMEWORKS.search(file)
    line = (shown.line or linecache.getline(shown.filename, shown.lineno or 0)).strip()
    return Raised(type(error).__name__, message, f'{match[1] if match else file}:{shown.lineno} in {shown.name}', line)
