"""What a built model takes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Dict, Iterator, Optional, Sequence

from mmguard.labels.spaces.heads import (
    THINGS,
    ignored_by,
    is_classifier,
    label_spaces,
    names_in,
    spaces_of_head,
    takes_labels,
)
from mmguard.labels.spaces.space import KINDS, LabelSpaces, Space


class _Built:
    """A module, read as a part of a config is."""

    def __init__(self, path: str, module: Any) -> None:
        self.path = path
        self.module = module

    def get(self, key: str, otherwise: Any = None) -> Any:
        return getattr(self.module, key, otherwise)

    def is_a(self, *names: str) -> bool:
        return any(base.__name__ in names for base in type(self.module).__mro__)


def from_model(model: Any, names: Sequence[str] = ()) -> LabelSpaces:
    """Which labels are valid for the heads of a model.

    Args:
        model (nn.Module): Out of wrappers such as DDP.
        names (sequence[str]): The classes of the data set: as many are valid where no head tells classes apart.
    """
    heads = (_Built(name, module) for name, module in model.named_modules())
    ends = (head for head in heads if (names_in(head.path) or [''])[-1].endswith('_head') or is_classifier(head))
    return label_spaces(ends, names, 'the classes of the data set')


def of_loss(model: Any, loss_name: str) -> Dict[str, Space]:
    """Kind -> the labels, as files have them, that a loss can be trained on: those of the head that owns it.

    A ``num_classes`` of the loss itself goes before that of its head. What stands in no head that is known may be about
    either kind. Empty where nothing counts classes: region proposals see no label.

    Args:
        model (nn.Module): Out of wrappers such as DDP.
        loss_name (str): Of the loss in it, ``'decode_head.loss_decode.0'``.
    """
    loss, *owners = _upwards(model, loss_name)
    own = _first_int([loss.module], 'num_classes')
    for owner in owners:
        found = {space.kind: space for space in spaces_of_head(owner)}
        if found:
            if own is not None and owner.get(THINGS) is None:
                place = f'{loss_name}.num_classes'
                found = {kind: replace(space, num_classes=own, place=place) for kind, space in found.items()}
            return found
    if any(not takes_labels(owner) for owner in owners):
        return {}
    number = _first_int([loss.module, *(owner.module for owner in owners)], 'num_classes')
    if number is None:
        return {}
    ignored = _first_int([owner.module for owner in owners], 'ignore_index')
    ignored = ignored_by(loss.module) if ignored is None else ignored
    return {kind: Space(kind, number, loss_name, ignored if kind == 'pixels' else None) for kind in KINDS}


def _upwards(model: Any, name: str) -> Iterator[_Built]:
    """A module, and those around it, the model last."""
    parts = name.split('.')
    for depth in range(len(parts), -1, -1):
        path = '.'.join(parts[:depth])
        yield _Built(path, model.get_submodule(path))


def _first_int(owners: Sequence[Any], name: str) -> Optional[int]:
    values = (getattr(owner, name, None) for owner in owners)
    return next((value for value in values if isinstance(value, int) and not isinstance(value, bool)), None)
