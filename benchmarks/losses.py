"""The guarded cross entropy, compared with PyTorch's and mmseg's: time and memory of forward + backward."""

from __future__ import annotations

from functools import partial
from typing import Callable, Dict, List

import torch
import torch.nn.functional as F
from mmseg.registry import MODELS
from torch import Tensor

import mmguard  # noqa: F401 (registers the losses)
from benchmarks.timing import Row, interleaved, peak_memory

CLASSES, IGNORED = 19, 255


def rows(device: str, rounds: int) -> List[Row]:
    torch.manual_seed(0)
    logits = torch.randn(2, CLASSES, 512, 512, device=device, requires_grad=True)
    clean = torch.randint(0, CLASSES, (2, 512, 512), device=device)
    label = clean.masked_fill(torch.rand(clean.shape, device=device) < 0.1, IGNORED)
    weights = [0.8 + 0.02 * i for i in range(CLASSES)]
    class_weight = torch.tensor(weights, device=device)
    guarded = MODELS.build(dict(type='GuardedCrossEntropyLoss', class_weight=weights)).to(device)
    stock = MODELS.build(dict(type='mmseg.CrossEntropyLoss', class_weight=weights))
    unweighted = MODELS.build(dict(type='GuardedCrossEntropyLoss'))
    stock_unweighted = MODELS.build(dict(type='mmseg.CrossEntropyLoss'))

    def step(loss: Callable[[], Tensor]) -> Callable[[], None]:
        def run() -> None:
            loss().backward()
            logits.grad = None

        return run

    def torch_loss(scores: Tensor, target: Tensor) -> Tensor:
        return F.cross_entropy(scores, target, class_weight, ignore_index=IGNORED)

    def guarded_loss(scores: Tensor, target: Tensor) -> Tensor:
        return guarded(scores, target, ignore_index=IGNORED)

    wrapped = ('OhemCrossEntropy', 'DiceLoss')
    compiled, torch_compiled = torch.compile(guarded_loss, fullgraph=True), torch.compile(torch_loss, fullgraph=True)
    calls: Dict[str, Callable[[], object]] = {
        'guarded': step(lambda: guarded_loss(logits, label)),
        'torch': step(lambda: torch_loss(logits, label)),
        'guarded, compiled': step(lambda: compiled(logits, label)),
        'torch, compiled': step(lambda: torch_compiled(logits, label)),
        # mmseg's loss fails with class weights and ignored pixels, so it gets only one of the two.
        'guarded, clean': step(lambda: guarded(logits, clean)),
        'mmseg, clean': step(lambda: stock(logits, clean)),
        'guarded, unweighted': step(lambda: unweighted(logits, label, ignore_index=IGNORED)),
        'mmseg, unweighted': step(lambda: stock_unweighted(logits, label, ignore_index=IGNORED)),
    }
    for name in wrapped:
        calls[name] = step(partial(MODELS.build(dict(type='GuardedLoss', loss=name)), logits, label))
        calls[f'mmseg, {name}'] = step(partial(MODELS.build(dict(type=f'mmseg.{name}')), logits, label))
    for _ in range(3):  # the counter's first steps recompile
        calls['guarded, compiled']()
    ms = interleaved(calls, rounds, device)
    mib = {name: peak_memory(calls[name], device) for name in ('guarded, clean', 'mmseg, clean')}
    return [
        Row('loss, eager / F.cross_entropy', ms['guarded'], ms['torch'], 1.10),
        Row('loss, compiled / F.cross_entropy, eager', ms['guarded, compiled'], ms['torch'], 0.70),
        Row('loss, compiled / F.cross_entropy, compiled', ms['guarded, compiled'], ms['torch, compiled'], None),
        Row('loss / mmseg, class weights', ms['guarded, clean'], ms['mmseg, clean'], 1.05),
        Row('loss / mmseg, ignored pixels', ms['guarded, unweighted'], ms['mmseg, unweighted'], 1.05),
        *(Row(f'GuardedLoss of {name} / mmseg', ms[name], ms[f'mmseg, {name}'], None) for name in wrapped),
        Row('loss, peak memory / mmseg', mib['guarded, clean'], mib['mmseg, clean'], 1.10, 'MiB'),
    ]
