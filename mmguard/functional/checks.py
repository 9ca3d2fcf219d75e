"""Checks of shapes and dtypes. They look at no value, so they do not synchronise."""

from __future__ import annotations

from typing import Optional

from torch import Tensor


def shape_of(tensor: Tensor) -> str:
    return f'({", ".join(str(size) for size in tensor.shape)})'


def check_scores(logits: Tensor, name: str = 'cls_score') -> None:
    if not logits.is_floating_point():
        raise TypeError(
            f'{name} must be floating point logits, got {logits.dtype} of shape {shape_of(logits)}: '
            f'are score and label in the wrong order?'
        )


def check_index_target(logits: Tensor, target: Tensor) -> None:
    """Check class indices (N, *) of an integer dtype against logits (N, C, *)."""
    check_scores(logits)
    both = f'label has shape {shape_of(target)} ({target.dtype}), cls_score {shape_of(logits)}'
    if logits.dim() < 2:
        raise ValueError(f'cls_score must have shape (N, C) or (N, C, ...): {both}')
    wanted = (logits.shape[0], *logits.shape[2:])
    if tuple(target.shape) != wanted:
        raise ValueError(f'{both}; wanted is label of shape {wanted}: {_advice(logits, target, wanted)}')
    if target.is_floating_point() or target.dtype.is_complex:
        raise TypeError(
            f'{both}; class indices must be integers. Was the label map resized bilinearly (use nearest), or divided '
            f'by 255 (ToTensor is for images)? If the values are whole, convert them with label.long()'
        )


def _advice(logits: Tensor, target: Tensor, wanted: tuple) -> str:
    shape = tuple(target.shape)
    if shape == tuple(logits.shape):
        return 'it looks one-hot (or soft): pass class indices, label.argmax(dim=1)'
    if target.dim() == logits.dim() and shape[1] == 1 and (shape[0], *shape[2:]) == wanted:
        return 'there is an extra channel: pass label.squeeze(1)'
    if target.dim() == logits.dim() and shape[-1] in (1, 3, 4) and shape[:-1] == wanted:
        return 'the last dimension looks like colour channels: a label map holds one class index per pixel'
    if target.dim() == len(wanted) and shape[0] == wanted[0]:
        return (
            'the spatial sizes differ: resize the scores to the label (bilinear) or the label to the scores (nearest)'
        )
    return 'one class index per element is needed'


def check_dense_target(logits: Tensor, target: Tensor) -> None:
    """Check binary targets against sigmoid scores of the same shape."""
    check_scores(logits)
    if tuple(target.shape) != tuple(logits.shape):
        raise ValueError(
            f'label has shape {shape_of(target)} ({target.dtype}), cls_score {shape_of(logits)}; wanted are binary '
            f'targets of the shape of the scores, or class indices of shape '
            f'{(logits.shape[0], *logits.shape[2:])} for scores (N, C, ...)'
        )


def check_one_channel_target(logits: Tensor, target: Tensor) -> None:
    """Check binary labels (N, *) against scores (N, 1, *)."""
    check_scores(logits)
    wanted = (logits.shape[0], *logits.shape[2:])
    if tuple(target.shape) != wanted:
        raise ValueError(
            f'label has shape {shape_of(target)} ({target.dtype}), cls_score {shape_of(logits)}; wanted is label of '
            f'shape {wanted}: {_advice(logits, target, wanted)}'
        )


def check_weight(weight: Optional[Tensor], target: Tensor) -> None:
    """Check that element weights fit the labels (sizes equal or 1), or are one number."""
    if weight is None or weight.dim() == 0:
        return
    fits = weight.dim() == target.dim() and all(w in (1, t) for w, t in zip(weight.shape, target.shape))
    if not fits:
        raise ValueError(
            f'weight has shape {shape_of(weight)}, label {shape_of(target)}: one weight per label element is needed'
        )


def check_dense_weight(weight: Optional[Tensor], target: Tensor) -> None:
    """Check that weights of dense targets can be broadcast with them, which is all that the frameworks ask for."""
    if weight is None:
        return
    sizes = zip(reversed(weight.shape), reversed(target.shape))
    if not all(w == t or 1 in (w, t) for w, t in sizes):
        raise ValueError(
            f'weight has shape {shape_of(weight)}, label {shape_of(target)}: a weight must have the shape of the dense '
            f'targets, or one that can be broadcast with it'
        )


def check_class_weight(class_weight: Optional[Tensor], num_channels: int) -> None:
    if class_weight is not None and tuple(class_weight.shape) != (num_channels,):
        raise ValueError(
            f'class_weight has shape {shape_of(class_weight)}, but the scores have {num_channels} channels: '
            f'one weight per channel is needed (does the head count a background or no-object class?)'
        )
