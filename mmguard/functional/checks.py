"""Checks of shapes and dtypes. They read no values, so they do not synchronize."""

from __future__ import annotations

from typing import Any, Optional, Tuple

from torch import Tensor


def format_shape(tensor: Tensor) -> str:
    return str(tuple(tensor.shape))


def check_scores(logits: Tensor, name: str = 'cls_score') -> None:
    if not logits.is_floating_point():
        raise TypeError(
            f'{name} must be floating point logits, got {logits.dtype} of shape {format_shape(logits)}: '
            f'are score and label swapped?'
        )


def check_index_target(logits: Tensor, target: Tensor) -> None:
    """Check class indices (N, *) of an integer dtype against logits (N, C, *)."""
    check_scores(logits)
    if logits.dim() < 2:
        raise ValueError(f'cls_score must have shape (N, C) or (N, C, ...): {_describe_label(logits, target)}')
    _check_label_shape(logits, target)
    if target.is_floating_point() or target.dtype.is_complex:
        raise TypeError(
            f'{_describe_label(logits, target)}; class indices must be integers. Was the label map resized bilinearly '
            f'(use nearest), or divided by 255 (ToTensor is for images)? If the values are whole, convert them with '
            f'label.long()'
        )


def _describe_label(logits: Tensor, target: Tensor) -> str:
    return f'label has shape {format_shape(target)} ({target.dtype}), cls_score {format_shape(logits)}'


def _check_label_shape(logits: Tensor, target: Tensor) -> None:
    expected = get_elements_shape(logits)
    if tuple(target.shape) != expected:
        raise ValueError(
            f'expected label of shape {expected}, got {format_shape(target)} ({target.dtype}), with cls_score of shape '
            f'{format_shape(logits)}: {_suggest_target(logits, target, "label", "cls_score")}'
        )


def check_dense_target(logits: Tensor, target: Tensor) -> None:
    """Check binary targets against sigmoid scores of the same shape."""
    check_scores(logits)
    if tuple(target.shape) != tuple(logits.shape):
        raise ValueError(
            f'expected label of shape {format_shape(logits)} (binary targets, as cls_score) or '
            f'{(logits.shape[0], *logits.shape[2:])} (class indices), got {format_shape(target)} ({target.dtype})'
        )


def check_one_channel_target(logits: Tensor, target: Tensor) -> None:
    """Check binary labels (N, *) against scores (N, 1, *)."""
    check_scores(logits)
    _check_label_shape(logits, target)


def check_weight(weight: Optional[Tensor], target: Tensor) -> None:
    """Check that element weights match the labels (sizes equal or 1), or are a scalar."""
    if weight is None or weight.dim() == 0:
        return
    fits = weight.dim() == target.dim() and all(w in (1, t) for w, t in zip(weight.shape, target.shape))
    if not fits:
        raise ValueError(
            f'expected weight of shape {format_shape(target)}, one per label element, got {format_shape(weight)}'
        )


def check_dense_weight(weight: Optional[Tensor], target: Tensor) -> None:
    """Check that weights can be broadcast to dense targets, as the frameworks require."""
    if weight is None:
        return
    sizes = zip(reversed(weight.shape), reversed(target.shape))
    if not all(w == t or 1 in (w, t) for w, t in sizes):
        raise ValueError(
            f'expected weight of shape {format_shape(target)}, as the dense targets, or one that can be broadcast with '
            f'it, got {format_shape(weight)}'
        )


def check_class_weight(class_weight: Optional[Tensor], num_channels: int) -> None:
    if class_weight is not None and tuple(class_weight.shape) != (num_channels,):
        raise ValueError(
            f'class_weight has shape {format_shape(class_weight)}, but the scores have {num_channels} channels: '
            f'one weight per channel is needed (does the head count a background or no-object class?)'
        )


MULTILABEL = 'mmguard.functional.binary_cross_entropy_with_logits'

#: Number of classes -> data set: says where class weights of a wrong length were copied from.
CLASSES_OF = {11: 'CamVid', 19: 'Cityscapes', 21: 'Pascal VOC', 59: 'Pascal Context', 150: 'ADE20K', 171: 'COCO-Stuff'}


class TargetShapeError(ValueError, RuntimeError):
    """Shapes or arguments that do not match. Derives from both exceptions that PyTorch raises."""


class TargetTypeError(TypeError, RuntimeError):
    """A dtype that does not match. Also a ``RuntimeError``, which PyTorch raises."""


def holds_probabilities(logits: Tensor, target: Tensor) -> bool:
    """Return True if the target holds class probabilities, decided by its shape as in ``F.cross_entropy``."""
    return logits.shape == target.shape


def check_tensors(logits: Any, target: Any) -> None:
    for name, given in (('logits', logits), ('target', target)):
        if not isinstance(given, Tensor):
            raise TypeError(f'{name} must be a Tensor, got {type(given).__name__}: torch.as_tensor({name}) makes one')
    if not logits.is_floating_point():
        order = ' They seem to be in the wrong order: the logits come first.' if target.is_floating_point() else ''
        raise TargetTypeError(f'logits must be floating point scores, got {describe_tensor(logits)}.{order}')


def check_class_target(logits: Tensor, target: Tensor) -> None:
    r"""Check class indices () or (N, \*) of an integer dtype against logits (C) or (N, C, \*)."""
    check_class_shape(logits, target)
    if target.is_floating_point() or target.dtype.is_complex:
        raise TargetTypeError(
            f'{describe_pair(logits, target)}; class indices are integers. Whole numbers: target.long(). Fractions: '
            f'was a label map resized bilinearly (use nearest), or divided by 255 (ToTensor is for images)?'
        )


def check_class_shape(logits: Tensor, target: Tensor) -> None:
    r"""Check the shape () or (N, \*) of class indices against logits (C) or (N, C, \*)."""
    check_logits(logits)
    expected = get_elements_shape(logits)
    if tuple(target.shape) != expected and not (logits.dim() == 1 and tuple(target.shape) == (1,)):
        raise TargetShapeError(
            f'{describe_pair(logits, target)}; expected a target of shape {expected}: {_suggest_target(logits, target)}'
        )


def squeeze_channel(logits: Tensor, target: Tensor) -> Optional[Tensor]:
    """Return class indices (N, 1, *) or (N, *, 1) as (N, *); ``None`` without an extra channel."""
    expected = get_elements_shape(logits)
    if target.dim() != logits.dim() or target.dim() < 2:
        return None
    for dim in (1, -1):
        if target.shape[dim] == 1 and tuple(target.squeeze(dim).shape) == expected:
            return target.squeeze(dim)
    return None


def check_probability_target(logits: Tensor, target: Tensor, ignore_index: int = -100) -> None:
    """Check that a target with the shape of the logits, which holds probabilities, is floating point."""
    check_logits(logits)
    if not target.is_floating_point():
        if logits.dim() == 1:
            raise TargetTypeError(
                f'{describe_pair(logits, target)}: logits with one dimension are the scores (C) of one element, whose '
                f'class index is a single number. For one yes-or-no score per element, use {MULTILABEL}'
            )
        raise TargetTypeError(
            f'{describe_pair(logits, target)}: an integer target of the shape of the logits looks one-hot. Pass class '
            f'indices, target.argmax(dim=1), or probabilities, target.float(). If an element may belong to several '
            f'classes, use {MULTILABEL}'
        )
    if ignore_index >= 0:
        raise TargetShapeError(
            f'ignore_index={ignore_index} applies to class indices, but a floating point target of the shape of the '
            f'logits {format_shape(logits)} holds probabilities: leave ignore_index out, or pass class indices, '
            f'target.argmax(dim=1)'
        )


def check_logits(logits: Tensor) -> None:
    if logits.dim() == 0 or get_num_classes(logits) == 0:
        raise TargetShapeError(
            f'logits must have the shape (C), (N, C) or (N, C, ...) with at least one class, got '
            f'{describe_tensor(logits)}'
        )


def check_multilabel_target(logits: Tensor, target: Tensor) -> None:
    """Check that there is one target per logit."""
    if logits.shape == target.shape:
        return
    if logits.dim() == target.dim() + 1 and logits.shape[1] == 1 and tuple(target.shape) == get_elements_shape(logits):
        advice = 'add the channel, target.unsqueeze(1), or take it off, logits.squeeze(1)'
    elif logits.dim() > 1 and tuple(target.shape) == get_elements_shape(logits):
        advice = (
            'these look like class indices: mmguard.functional.cross_entropy takes them, or make them one-hot, '
            f'torch.nn.functional.one_hot(target, {logits.shape[1]}).movedim(-1, 1)'
        )
    elif target.dim() == logits.dim() and tuple(target.movedim(-1, 1).shape if target.dim() > 1 else ()) == tuple(
        logits.shape
    ):
        advice = 'the classes are its last dimension: target.movedim(-1, 1)'
    else:
        advice = 'one target in [0, 1] per logit is needed'
    raise TargetShapeError(f'{describe_pair(logits, target)}; expected a target of the shape of the logits: {advice}')


def check_pos_weight(logits: Tensor, pos_weight: Optional[Tensor]) -> None:
    r"""Check that weights (C) do not broadcast along the last dimension of logits (N, C, \*)."""
    if pos_weight is None or pos_weight.dim() != 1 or logits.dim() < 3 or pos_weight.numel() == 1:
        return
    if pos_weight.numel() == logits.shape[1] != logits.shape[-1]:
        ones = ', '.join(['1'] * (logits.dim() - 2))
        raise TargetShapeError(
            f'expected pos_weight that broadcasts along the classes, got shape {format_shape(pos_weight)}, which '
            f'broadcasts along the last dimension of logits {format_shape(logits)}. Write pos_weight.view(-1, {ones})'
        )


def check_loss_weight(logits: Tensor, weight: Optional[Tensor]) -> None:
    classes = get_num_classes(logits)
    if weight is not None and weight.numel() != classes:
        raise TargetShapeError(
            f'expected weight of shape ({classes},), one per class, background included, got {format_shape(weight)}. '
            f'{_name_dataset(weight.numel())}To weight each element, use reduction="none" and multiply'
        )


def _name_dataset(number: int) -> str:
    name = CLASSES_OF.get(number)
    return (
        ''
        if name is None
        else f'{number} is the number of classes of {name}: are the data set class or its tables '
        f'(weights, map from ids to classes) still those of {name}? '
    )


def check_label_smoothing(label_smoothing: float) -> None:
    if not 0 <= label_smoothing <= 1:
        raise TargetShapeError(f'label_smoothing must lie between 0 and 1, got {label_smoothing}')


def check_reduction(reduction: Any) -> None:
    if reduction not in ('none', 'mean', 'sum'):
        raise ValueError(f"{reduction} is not a valid value for reduction: use 'none', 'mean' or 'sum'")


def get_class_dim(logits: Tensor) -> int:
    return 1 if logits.dim() > 1 else 0


def get_num_classes(logits: Tensor) -> int:
    return logits.shape[get_class_dim(logits)]


def get_elements_shape(logits: Tensor) -> Tuple[int, ...]:
    r"""Return the shape (N, \*) for logits (N, C, \*), () for logits (C)."""
    return () if logits.dim() < 2 else (logits.shape[0], *logits.shape[2:])


def describe_tensor(tensor: Tensor) -> str:
    return f'shape {format_shape(tensor)} of {tensor.dtype}'


def describe_pair(logits: Tensor, target: Tensor) -> str:
    return f'target has {describe_tensor(target)}, logits {describe_tensor(logits)}'


def _suggest_target(logits: Tensor, target: Tensor, name: str = 'target', scores_name: str = 'logits') -> str:
    """Suggest a correction if a class target does not match."""
    expected, shape, scores = get_elements_shape(logits), tuple(target.shape), tuple(logits.shape)
    if len(shape) == len(scores) > 1:
        if shape == (scores[0], 1, *scores[2:]):
            return f'there is an extra channel, {name}.squeeze(1)'
        if shape == scores:
            return f'it looks one-hot (or soft): class indices are {name}.argmax(dim=1)'
        if shape[:-1] == expected and shape[-1] == 1:
            return f'there is an extra channel, {name}.squeeze(-1)'
        if shape == (scores[0], *scores[2:], scores[1]):
            return (
                f'it looks one-hot with the classes last: class indices are {name}.argmax(dim=-1), the probability '
                f'form is {name}.movedim(-1, 1).float()'
            )
        if shape[:-1] == expected and shape[-1] in (2, 3, 4):
            seen = {2: 'gray and alpha (PIL calls the mode of such a file LA)', 3: 'colors', 4: 'colors and alpha'}
            one = f': keep the first, {name}[..., 0]' if shape[-1] == 2 else ''
            return f'the last dimension looks like {seen[shape[-1]]}; a label map holds one class index per pixel{one}'
        if (shape[0], *shape[2:]) == expected:
            return f'it has {shape[1]} channels, as if one-hot, but {scores_name} has {scores[1]} classes'
    if len(scores) > 2 and scores[0] == 1 and shape == scores[2:]:
        return f'the batch dimension is missing: {name}.unsqueeze(0)'
    if len(scores) == 3 and shape == scores[1:]:
        return f'the batch dimension is missing in both: {scores_name}.unsqueeze(0), {name}.unsqueeze(0)'
    if len(scores) > 2 and shape == scores[:-1]:
        return (
            f'the classes are the last dimension of {scores_name}: {scores_name}.movedim(-1, 1), or '
            f'{scores_name}.flatten(0, -2) with {name}.flatten()'
        )
    if len(scores) == 1:
        return 'one dimension means the scores (C) of one element, with a single class index'
    if len(shape) == len(expected) > 1 and shape[0] == expected[0]:
        if shape[1:] == expected[:0:-1]:
            return f'height and width are swapped, {name}.transpose(-1, -2)'
        return (
            f'the sizes differ: resize {scores_name} to {name} (bilinear), or {name} to {scores_name} (nearest, never '
            f'bilinear)'
        )
    if len(shape) == len(expected) and shape[1:] == expected[1:]:
        return f'the batches differ, {shape[0]} targets for {expected[0]} rows of scores'
    return 'one class index per element'
