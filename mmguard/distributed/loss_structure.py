"""Structure of a dictionary of losses, which may differ between ranks."""

from __future__ import annotations

import hashlib
from typing import Any, Dict, List, Mapping, NamedTuple, Sequence, Union

from torch import Tensor

Loss = Union[Tensor, List[Tensor]]

Losses = Dict[str, Loss]


class LossEntry(NamedTuple):
    """One item of a dictionary of losses."""

    is_list: bool  #: True for a list of tensors. Its length may differ: heads return one per image or level.
    graph: bool  #: True if it carries a graph, so that backward reaches parameters through it.


Layout = Dict[str, LossEntry]


def build_layout(losses: Mapping[str, Any]) -> Layout:
    """Return key -> entry.

    Raises:
        TypeError: A value that is neither a tensor nor a list of tensors.
    """
    layout = {}
    for key, value in losses.items():
        if isinstance(value, Tensor):  # the usual case, and this runs in every iteration
            layout[key] = LossEntry(False, value.requires_grad)
        else:
            tensors = list_tensors(key, value)
            layout[key] = LossEntry(True, bool(tensors) and all(tensor.requires_grad for tensor in tensors))
    return layout


def list_tensors(key: str, value: Any) -> Sequence[Tensor]:
    """Return the tensors of one loss."""
    if isinstance(value, Tensor):
        return [value]
    if isinstance(value, (list, tuple)) and all(isinstance(part, Tensor) for part in value):
        return value
    raise TypeError(f'{key!r} in the dictionary of losses must be a tensor or a list of tensors, got {value!r:.200}')


def compute_digest(layout: Layout) -> int:
    """Return a 63-bit digest of a layout; two layouts collide with probability ``2**-63``.

    The order of the keys counts: loops reduce losses entry by entry. Lists and tensors do not differ: backward sees no
    difference.
    """
    text = repr([(key, entry.graph) for key, entry in layout.items()])
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), 'big') >> 1


def merge_layouts(layouts: Sequence[Layout]) -> Layout:
    """Return every key of any layout, with a graph if any layout has one for it.

    Keys are in the order of the layout with the most keys. A key that it lacks comes after the one before it in another
    layout.

    Example:
        >>> entry = LossEntry(is_list=False, graph=True)
        >>> list(merge_layouts([dict.fromkeys('ac', entry), dict.fromkeys('ab', entry), dict.fromkeys('bcd', entry)]))
        ['a', 'b', 'c', 'd']
    """
    joined: Layout = {}
    order: List[str] = []
    for layout in sorted(layouts, key=len, reverse=True):  # of equal length the first
        place = 0
        for key, entry in layout.items():
            known = joined.get(key, entry)
            if key not in joined:
                order.insert(place, key)
            joined[key] = LossEntry(known.is_list, known.graph or entry.graph)
            place = order.index(key) + 1
    return {key: joined[key] for key in order}


def find_missing(layout: Layout, union: Layout) -> List[str]:
    """Return the keys of ``union`` that ``layout`` lacks, or has without the required graph."""
    return [k for k, e in union.items() if k not in layout or (e.graph and not layout[k].graph)]
