"""A ``pickle_module`` for ``torch.load`` that builds tensors and calls nothing else, on every version of torch.

Needed for the checkpoints that mmengine's runner writes: ``torch.load(weights_only=True)`` refuses the log history and
the numbers of numpy in them, and cannot be taught to leave them unread.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import IO, Any, Dict, Tuple

import torch
from torch import nn

from mmguard.files.plain_pickle import PlainData, RefusedName


class _Function(tuple):  # type: ignore[type-arg]
    """Calls a function of torch, and takes no attribute: what a pickle names it may also change."""

    __slots__ = ()

    def __call__(self, *args: Any) -> Any:
        return self[0](*args)

    def __setstate__(self, state: Any) -> None:
        raise RefusedName('it sets attributes of a function')


class _Unread:
    """Stands for an object that is not needed: takes whatever the file gives it, and keeps nothing."""

    def __init__(self, *args: Any) -> None: ...

    def __call__(self, *args: Any) -> _Unread:
        return self

    def _take(self, *args: Any) -> None: ...

    __setstate__ = __setitem__ = append = extend = add = _take


def _written_by_torch() -> Dict[Tuple[str, str], Any]:
    """What torch itself names in the pickle of a tensor, of a parameter, and of one that has attributes."""
    marked = nn.Parameter(torch.zeros(1))
    marked.mark = True  # type: ignore[attr-defined]
    samples = (torch.zeros(1), nn.Parameter(torch.zeros(1)), marked)
    rebuild: Any = [sample.__reduce_ex__(2)[0] for sample in samples]
    return {(function.__module__, function.__name__): _Function((function,)) for function in rebuild}


_KNOWN = {
    **_written_by_torch(),
    ('collections', 'OrderedDict'): OrderedDict,
    # What is written with these is not needed, and the real getattr would let a file reach anything.
    **{(module, name): _Unread for module in ('builtins', '__builtin__') for name in ('getattr', 'set', 'slice')},
    **dict.fromkeys([('_codecs', 'encode'), ('collections', 'defaultdict'), ('torch', 'Size')], _Unread),
    ('torch', 'device'): _Unread,
}
#: The history of the log and the facts of a run are objects of these.
_UNREAD_PACKAGES = ('mmengine', 'mmcv', 'mmseg', 'mmdet', 'numpy')


class Unpickler(PlainData):
    """Knows tensors, parameters, and ordered dicts of them.

    Raises:
        RefusedName: It names anything else.
    """

    def find_class(self, module: str, name: str) -> Any:
        if module.partition('.')[0] in _UNREAD_PACKAGES:
            return _Unread
        if module == 'torch' and isinstance(getattr(torch, name, None), torch.dtype):
            return getattr(torch, name)
        return _KNOWN.get((module, name)) or super().find_class(module, name)


def load(file: IO[bytes], **options: Any) -> Any:
    """As ``pickle.load``: torch calls it for files of its older formats."""
    return Unpickler(file, **options).load()
