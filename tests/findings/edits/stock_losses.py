"""The stock loss of a config, or PyTorch's, on the labels that the loader gives."""

from __future__ import annotations

from typing import Any, Iterator, List, Mapping

import torch
import torch.nn.functional as F
from trained import Trained, heads_of

#: Label maps that a loss is computed on, at most.
MAPS = 6


def loss_fault(found: Trained) -> List[str]:
    """What the loss raises, or that it is not finite; nothing where all is well."""
    try:
        for loss in _losses(found):
            if not bool(torch.isfinite(loss)):
                return [f'the loss is {loss.item()}']
    except Exception as error:
        return [f'the loss raises {type(error).__name__}: {error}']
    return []


def _losses(found: Trained) -> Iterator[torch.Tensor]:
    if found.kind == 'pixels':
        maps = [label for _, label in found.maps.values()]
        for label in maps[:MAPS]:
            target = torch.from_numpy(label.astype('int64'))[None]
            if found.model:
                for head in heads_of(found.model):
                    yield from _of_seg_head(head, target)
            else:
                ignored = -100 if found.ignore_index is None else found.ignore_index
                yield F.cross_entropy(torch.zeros(1, found.num_classes, *label.shape), target, ignore_index=ignored)
    elif found.labels:
        target = torch.tensor(found.labels)
        if found.model:
            yield from _of_det_heads(found.model, target)
        else:
            yield F.cross_entropy(torch.zeros(len(target), found.num_classes), target)


def _of_seg_head(head: Mapping[str, Any], target: torch.Tensor) -> Iterator[torch.Tensor]:
    from mmseg.registry import MODELS

    losses = head.get('loss_decode') or dict(type='CrossEntropyLoss')
    if 'loss_cls' in head:  # queries: their loss sees the classes of the regions
        return
    for config in losses if isinstance(losses, (list, tuple)) else [losses]:
        if config['type'] == 'BoundaryLoss':  # of edges, which no label file holds
            continue
        loss = MODELS.build(dict(config))
        channels = head.get('out_channels') or head['num_classes']
        scores = torch.zeros(1, channels, *target.shape[1:], requires_grad=True)
        # PIDHead alone has OHEM for a loss, and gives it two arguments.
        said = {} if 'OhemCrossEntropy' in str(config) else dict(ignore_index=head.get('ignore_index', 255))
        yield loss(scores, target, **said)


def _of_det_heads(model: Any, target: torch.Tensor) -> Iterator[torch.Tensor]:
    from mmdet.registry import MODELS

    for head in _classifiers(model):
        config, number = dict(head['loss_cls']), head.get('num_classes')
        if not isinstance(number, int):
            continue
        # Heads of queries make a list of weights out of a number.
        is_query = 'DETR' in head['type'] or 'DINO' in head['type']
        loss = MODELS.build(dict(head)).loss_cls if is_query else MODELS.build(config)
        weights = config.get('class_weight')
        channels = number if config.get('use_sigmoid', 'Focal' in config['type']) else number + 1
        if isinstance(weights, (list, tuple)):
            assert len(weights) in (channels, number + 1), f'{len(weights)} weights for {channels} outputs'
        assert not len(target) or int(target.max()) < number, f'label {int(target.max())} in {number} classes'
        yield loss(torch.zeros(len(target), channels, requires_grad=True), target)


def _classifiers(node: Any) -> Iterator[Mapping[str, Any]]:
    if isinstance(node, (list, tuple)):
        for one in node:
            yield from _classifiers(one)
    elif isinstance(node, Mapping):
        if isinstance(node.get('loss_cls'), Mapping):
            yield node
        for one in node.values():
            yield from _classifiers(one)
