"""What the losses of a process left out of training, said once, at its end."""

from __future__ import annotations

import atexit
import logging
import os
import weakref
from typing import Any, Dict, Tuple

import torch

from mmguard.functional.value_table import read_tally
from mmguard.labels.space import describe_values
from mmguard.labels.tally import Tally
from mmguard.text.words import counted

_alive: weakref.WeakSet[Any] = weakref.WeakSet()
#: Name of a loss -> the counts of those that are gone, on the device: whoever drops a loss waits for nothing.
_gone: Dict[str, torch.Tensor] = {}


if hasattr(os, 'register_at_fork'):
    os.register_at_fork(after_in_child=_gone.clear)


def note(loss: Any) -> None:
    """Have the counts of a loss reported at the end of this process, not of one that is forked from it."""
    loss.__dict__['_made_as'] = _identity(loss)
    atexit.unregister(_report)  # a process of multiprocessing forgets what its parent registered, since Python 3.13
    atexit.register(_report)
    _alive.add(loss)


def take_counts_of(loss: Any) -> None:
    """Save the counts of a loss that is garbage-collected, or that lives until the process ends.

    torch.export before 2.7 makes another object around the ``__dict__`` of a module; that one's end says nothing.
    """
    if loss.__dict__.get('_made_as') != _identity(loss):
        return
    name, counts = type(loss).__name__, loss.counts_by_value
    loss.reset_tally()
    if counts is not None:
        _gone[name] = counts if name not in _gone else _gone[name].to(counts.device) + counts


def _identity(loss: Any) -> Tuple[int, int]:
    return os.getpid(), id(loss)


def last_line(name: str, tally: Tally) -> str:
    """One line about the losses of a name.

    Example:
        >>> last_line('CrossEntropyLoss', Tally(total=196608, skipped=2503, values={11: 2500, 12: 3}))
        'mmguard: CrossEntropyLoss skipped 2,503 of 196,608 labels: values 11 (2,500 times), 12 (3 times)'
    """
    numbers = (('skipped', tally.skipped), ('clipped', tally.remapped))
    what = ' and '.join(f'{verb} {number:,}' for verb, number in numbers if number)
    values = f': {describe_values(tally.values, others=tally.other_values)}' if tally.values else ''
    return f'mmguard: {name} {what} of {counted(tally.total, "label")}{values}'


def _report() -> None:
    try:
        for loss in list(_alive):
            take_counts_of(loss)
        tallies = {name: read_tally(counts) for name, counts in _gone.items()}
    except RuntimeError:  # a device that died cannot be read; the process ends for a reason of its own
        return
    for name, tally in tallies.items():
        if tally:
            logging.getLogger('mmguard').warning(last_line(name, tally))
