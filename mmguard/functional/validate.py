"""First stage of a loss, which validates shapes and dtypes. It does not read values, so it does not synchronize."""

from __future__ import annotations

from typing import Any, NamedTuple, Optional, Tuple, Type

from torch import Tensor

MULTILABEL = 'mmguard.functional.binary_cross_entropy_with_logits'

#: Number of classes -> data set from which class weights of this length were probably copied.
CLASSES_OF = {11: 'CamVid', 19: 'Cityscapes', 21: 'Pascal VOC', 59: 'Pascal Context', 150: 'ADE20K', 171: 'COCO-Stuff'}


class TargetShapeError(ValueError, RuntimeError):
    """Error for shapes or arguments that do not fit; it has both types that PyTorch raises."""


class TargetTypeError(TypeError, RuntimeError):
    """Error for a dtype that does not fit; also a ``RuntimeError``, the type that PyTorch raises."""


class Interface(NamedTuple):
    """Argument names, exceptions and message templates of PyTorch's losses, or of OpenMMLab's."""

    scores: str
    target: str
    takes_vectors: bool  #: True if scores may have the shape (C), without a batch.
    value_error: Type[ValueError]
    type_error: Type[TypeError]
    shape: str  #: Message for class indices whose shape does not match the scores.
    dtype: str  #: Message for class indices that are not integers.
    dense: str  #: Message for dense targets whose shape is not that of the scores.
    class_weight: str  #: Message for class weights of the wrong length.


#: ``torch.nn.functional``.
TORCH = Interface(
    'logits',
    'target',
    True,
    TargetShapeError,
    TargetTypeError,
    '{pair}; expected a target of shape {elements}: {advice}',
    '{pair}; class indices are integers. Convert whole numbers with target.long(). For fractions: was a label map '
    'resized bilinearly (use nearest), or divided by 255 (ToTensor is for images)?',
    '{pair}; expected a target of the shape of the logits: {advice}',
    'expected weight of shape ({classes},), one per class, background included, got {shape}. {advice}To weight each '
    'element, use reduction="none" and multiply each loss',
)
#: Losses of mmseg and mmdet.
OPENMMLAB = Interface(
    'cls_score',
    'label',
    False,
    ValueError,
    TypeError,
    'expected label of shape {elements}, got {shape} ({dtype}), with cls_score of shape {scores}: {advice}',
    'label has shape {shape} ({dtype}), cls_score {scores}; class indices must be integers. Was the label map resized '
    'bilinearly (use nearest), or divided by 255 (ToTensor is for images)? If the values are whole, convert them with '
    'label.long()',
    'expected label of shape {scores} (one binary target per score) or {rows} (class indices), got {shape} ({dtype})',
    'class_weight has shape {shape}, but the scores have {classes} channels: one weight per channel is needed (does '
    'the head count a background or no-object class?)',
)


def _fill(template: str, logits: Tensor, target: Tensor, advice: str = '') -> str:
    return template.format(
        pair=describe_pair(logits, target),
        shape=format_shape(target),
        dtype=target.dtype,
        scores=format_shape(logits),
        elements=get_elements_shape(logits),
        rows=tuple(logits.shape[:1] + logits.shape[2:]),
        advice=advice,
    )


def format_shape(tensor: Tensor) -> str:
    return str(tuple(tensor.shape))


def holds_probabilities(logits: Tensor, target: Tensor) -> bool:
    """Return True if the target holds class probabilities, decided by its shape as in ``F.cross_entropy``."""
    return logits.shape == target.shape


def validate_tensors(logits: Any, target: Any) -> None:
    for name, given in (('logits', logits), ('target', target)):
        if not isinstance(given, Tensor):
            raise TypeError(f'{name} must be a Tensor, got {type(given).__name__}: use torch.as_tensor({name})')
    if not logits.is_floating_point():
        order = ' The arguments seem to be swapped: the logits come first.' if target.is_floating_point() else ''
        raise TargetTypeError(f'logits must be floating point scores, got {describe_tensor(logits)}.{order}')


def validate_scores(logits: Tensor, name: str = 'cls_score') -> None:
    if not logits.is_floating_point():
        raise TypeError(
            f'{name} must be floating point logits, got {logits.dtype} of shape {format_shape(logits)}: '
            f'are score and label swapped?'
        )


def validate_class_target(logits: Tensor, target: Tensor, api: Interface = TORCH) -> None:
    r"""Check that class indices have the shape () or (N, \*) for logits (C) or (N, C, \*), and an integer dtype."""
    validate_class_shape(logits, target, api)
    if target.is_floating_point() or target.dtype.is_complex:
        raise api.type_error(_fill(api.dtype, logits, target))


def validate_class_shape(logits: Tensor, target: Tensor, api: Interface = TORCH) -> None:
    r"""Check that class indices have shape () or (N, \*) for logits (C) or (N, C, \*); OpenMMLab requires a batch."""
    if api.takes_vectors:
        validate_logits(logits)
    else:
        validate_scores(logits)
        if logits.dim() < 2:
            template = (
                'cls_score must have shape (N, C) or (N, C, ...): label has shape {shape} ({dtype}), cls_score {scores}'
            )
            raise ValueError(_fill(template, logits, target))
    expected, shape = get_elements_shape(logits), tuple(target.shape)
    if shape != expected and not (logits.dim() == 1 and shape == (1,)):
        advice = _suggest_target(logits, target, api.target, api.scores)
        raise api.value_error(_fill(api.shape, logits, target, advice))


def validate_dense_target(logits: Tensor, target: Tensor, api: Interface = TORCH) -> None:
    """Check that there is one binary target per score."""
    if logits.shape != target.shape:
        raise api.value_error(_fill(api.dense, logits, target, _suggest_dense_target(logits, target)))


def validate_class_weight(weight: Optional[Tensor], classes: int, api: Interface = TORCH) -> None:
    if weight is not None and (weight.numel() != classes or (weight.dim() != 1 and api is not TORCH)):
        data_set = CLASSES_OF.get(weight.numel())
        advice = (
            f'{weight.numel()} is the number of classes of {data_set}: are the data set class or its tables (weights, '
            f'map from ids to classes) still those of {data_set}? '
        )
        text = api.class_weight.format(classes=classes, shape=format_shape(weight), advice=advice if data_set else '')
        raise api.value_error(text)


def validate_weight(weight: Optional[Tensor], target: Tensor) -> None:
    """Check that element weights are a scalar, or have the shape of the labels (sizes of 1 are broadcast)."""
    if weight is None or weight.dim() == 0:
        return
    fits = weight.dim() == target.dim() and all(w in (1, t) for w, t in zip(weight.shape, target.shape))
    if not fits:
        raise ValueError(
            f'expected weight of shape {format_shape(target)}, one per label element, got {format_shape(weight)}'
        )


def validate_dense_weight(weight: Optional[Tensor], target: Tensor) -> None:
    """Check that weights can be broadcast to dense targets, as the frameworks require."""
    if weight is None:
        return
    sizes = zip(reversed(weight.shape), reversed(target.shape))
    if not all(w == t or 1 in (w, t) for w, t in sizes):
        raise ValueError(
            f'expected weight of shape {format_shape(target)} (that of the targets), or one that can be broadcast '
            f'with it, got {format_shape(weight)}'
        )


def squeeze_channel(logits: Tensor, target: Tensor) -> Optional[Tensor]:
    """Return class indices (N, 1, *) or (N, *, 1) as (N, *), or ``None`` if they do not have an extra channel."""
    expected = get_elements_shape(logits)
    if target.dim() != logits.dim() or target.dim() < 2:
        return None
    for dim in (1, -1):
        if target.shape[dim] == 1 and tuple(target.squeeze(dim).shape) == expected:
            return target.squeeze(dim)
    return None


def validate_probability_target(logits: Tensor, target: Tensor, ignore_index: int = -100) -> None:
    """Check that a target of the shape of the logits is floating point, and that ``ignore_index`` is negative."""
    validate_logits(logits)
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


def validate_logits(logits: Tensor) -> None:
    if logits.dim() == 0 or get_num_classes(logits) == 0:
        raise TargetShapeError(
            f'logits must have the shape (C), (N, C) or (N, C, ...) with at least one class, got '
            f'{describe_tensor(logits)}'
        )


def validate_pos_weight(logits: Tensor, pos_weight: Optional[Tensor]) -> None:
    r"""Check that class weights (C) broadcast along the classes, not the last dimension, of logits (N, C, \*)."""
    if pos_weight is None or pos_weight.dim() != 1 or logits.dim() < 3 or pos_weight.numel() == 1:
        return
    if pos_weight.numel() == logits.shape[1] != logits.shape[-1]:
        ones = ', '.join(['1'] * (logits.dim() - 2))
        raise TargetShapeError(
            f'expected pos_weight that broadcasts along the classes, got shape {format_shape(pos_weight)}, which '
            f'broadcasts along the last dimension of logits {format_shape(logits)}. Write pos_weight.view(-1, {ones})'
        )


def validate_label_smoothing(label_smoothing: float) -> None:
    if not 0 <= label_smoothing <= 1:
        raise TargetShapeError(f'label_smoothing must be in [0, 1], got {label_smoothing}')


def validate_reduction(reduction: Any) -> None:
    if reduction not in ('none', 'mean', 'sum'):
        raise ValueError(f"{reduction} is not a valid value for reduction: use 'none', 'mean' or 'sum'")


def get_class_dim(logits: Tensor) -> int:
    return 1 if logits.dim() > 1 else 0


def get_num_classes(logits: Tensor) -> int:
    return logits.shape[get_class_dim(logits)]


def get_elements_shape(logits: Tensor) -> Tuple[int, ...]:
    r"""Return the shape of class indices: (N, \*) for logits (N, C, \*), and () for logits (C)."""
    return () if logits.dim() < 2 else (logits.shape[0], *logits.shape[2:])


def describe_tensor(tensor: Tensor) -> str:
    return f'shape {format_shape(tensor)} of {tensor.dtype}'


def describe_pair(logits: Tensor, target: Tensor) -> str:
    return f'target has {describe_tensor(target)}, logits {describe_tensor(logits)}'


def _suggest_dense_target(logits: Tensor, target: Tensor) -> str:
    if logits.dim() > 1 and tuple(target.shape) == get_elements_shape(logits):
        if logits.shape[1] == 1:
            return 'add the channel with target.unsqueeze(1), or remove it with logits.squeeze(1)'
        return (
            'these look like class indices: pass them to mmguard.functional.cross_entropy, or make them one-hot, '
            f'torch.nn.functional.one_hot(target, {logits.shape[1]}).movedim(-1, 1)'
        )
    if target.dim() == logits.dim() and tuple(target.movedim(-1, 1).shape if target.dim() > 1 else ()) == tuple(
        logits.shape
    ):
        return 'the classes are the last dimension of the target: target.movedim(-1, 1)'
    return 'one target in [0, 1] per logit is needed'


def _suggest_target(logits: Tensor, target: Tensor, name: str, scores_name: str) -> str:
    """Return advice for class indices whose shape does not match the scores."""
    expected, shape, scores = get_elements_shape(logits), tuple(target.shape), tuple(logits.shape)
    if len(shape) == len(scores) > 1:
        if shape == (scores[0], 1, *scores[2:]):
            return f'remove the extra channel: {name}.squeeze(1)'
        if shape == scores:
            return f'it looks one-hot (or soft): class indices are {name}.argmax(dim=1)'
        if shape[:-1] == expected and shape[-1] == 1:
            return f'remove the extra channel: {name}.squeeze(-1)'
        if shape == (scores[0], *scores[2:], scores[1]):
            return (
                f'it looks one-hot with the classes last: class indices are {name}.argmax(dim=-1), the probability '
                f'form is {name}.movedim(-1, 1).float()'
            )
        if shape[:-1] == expected and shape[-1] in (2, 3, 4):
            seen = {2: 'gray and alpha (PIL calls the mode of such a file LA)', 3: 'colors', 4: 'colors and alpha'}
            one = f': keep only {name}[..., 0]' if shape[-1] == 2 else ''
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
        return 'logits with one dimension are the scores (C) of one element, which has a single class index'
    if len(shape) == len(expected) > 1 and shape[0] == expected[0]:
        if shape[1:] == expected[:0:-1]:
            return f'height and width are swapped: {name}.transpose(-1, -2)'
        return (
            f'the sizes differ: resize {scores_name} to {name} (bilinear), or {name} to {scores_name} (nearest, never '
            f'bilinear)'
        )
    if len(shape) == len(expected) and shape[1:] == expected[1:]:
        return f'the batch sizes differ: {shape[0]} in the target, {expected[0]} in {scores_name}'
    return 'one class index per element is needed'
