"""Running counts of a loss, which stay on the device until they are read, and are reported when the process ends."""

from __future__ import annotations

import atexit
import logging
import os
import threading
import weakref
from typing import Any, Dict, List, Mapping, Optional, Tuple, Union

import torch
from torch import Tensor

from mmguard.compat.torch_names import has_memory, is_compiling, is_fake, is_recomputed
from mmguard.functional.update import build_counts, read_tally
from mmguard.labels.rules import describe_values
from mmguard.labels.tally import SEVERAL, LabelGuardError, Tally
from mmguard.log.messages import warn_unreported
from mmguard.text import quantity

_alive: weakref.WeakSet[Any] = weakref.WeakSet()
#: Losses whose counts a hook has not read yet.
_unread: weakref.WeakSet[CountsLabels] = weakref.WeakSet()
#: Lock for adding counts, because replicas of DataParallel run in threads.
_replicas = threading.Lock()
#: Class name -> counts of deleted losses, kept on the device so that deleting a loss does not synchronize.
_gone: Dict[str, torch.Tensor] = {}


if hasattr(os, 'register_at_fork'):
    os.register_at_fork(after_in_child=_gone.clear)


def register_loss(loss: Any) -> None:
    """Register a loss whose counts are reported when this process exits; forked processes do not report them."""
    loss._made_in = os.getpid()
    atexit.unregister(_report)  # a process of multiprocessing forgets what its parent registered, since Python 3.13
    atexit.register(_report)
    _alive.add(loss)


def take_counts_of(loss: Any) -> None:
    """Save the counts of a loss that is garbage-collected, or that lives until the process ends."""
    if loss.__dict__.get('_made_in') != os.getpid():  # the loss was created in the parent process
        return
    name, counts, copied = type(loss).__name__, loss.counts_by_value, loss.copied_counts
    loss.reset_tally()
    if counts is not None:
        if copied is not None:
            counts = counts - copied.to(counts.device)
        _gone[name] = counts if name not in _gone else _gone[name].to(counts.device) + counts


def has_unread_counts() -> bool:
    """Return True if a guarded loss has counts that no hook has read, e.g. because the loss is in no model."""
    return bool(_unread)


def format_report(name: str, tally: Tally) -> str:
    """Return the line that reports the summed counts of all losses of one type.

    Example:
        >>> format_report('CrossEntropyLoss', Tally(total=196608, skipped=2503, values={11: 2500, 12: 3}))
        'mmguard: CrossEntropyLoss skipped 2,503 of 196,608 labels: values 11 (2,500 times), 12 (3 times)'
    """
    numbers = (('skipped', tally.skipped), ('clipped', tally.remapped))
    what = ' and '.join(f'{verb} {number:,}' for verb, number in numbers if number)
    values = f': {describe_values(tally.values, others=tally.other_values)}' if tally.values else ''
    return f'mmguard: {name} {what} of {quantity(tally.total, "label")}{values}'


def _report() -> None:
    try:
        for loss in list(_alive):
            take_counts_of(loss)
        tallies = {name: read_tally(counts) for name, counts in _gone.items()}
    except RuntimeError:  # a failed device cannot be read; the process ends for another reason
        return
    for name, tally in tallies.items():
        if tally:
            logging.getLogger('mmguard').warning(format_report(name, tally))


class AddsCounts:
    """Mixin of losses that adds up the counts of training calls, without waiting for the device.

    Calls in evaluation mode or without gradient are not counted: validation is not training, and a hard-example
    sampler reads the losses under ``no_grad`` before the training call sees the same labels. Calls that activation
    checkpointing repeats are counted once.

    The sum is not a buffer, so the state_dict is that of the stock loss. DDP would overwrite a buffer with that of rank
    0, and code that averages models would average it.
    """

    training: bool
    #: True if calls in evaluation mode are counted.
    _counts_in_eval = False
    #: The original module, which keeps the counts, if this module is a replica of DataParallel.
    _replica_of: Optional[AddsCounts] = None

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._counts: Optional[Tensor] = None

    def _replicate_for_data_parallel(self) -> Any:
        replica = super()._replicate_for_data_parallel()  # type: ignore[misc]
        # Not by setattr, which would make the module a part of its replica.
        replica.__dict__.update(_counts=None, _replica_of=self._replica_of or self)
        return replica

    def _record(self, counts: Tensor, seen: Optional[int] = None) -> None:
        """Add the counts of a training call, unless they are fake or exist only inside a ``torch.func`` transform."""
        if not ((self.training or self._counts_in_eval) and torch.is_grad_enabled()) or is_fake(counts):
            return
        number: Union[int, Tensor, None] = seen
        if is_compiling():  # a graph would be compiled again for every value of a Python number
            number = None if seen is None else torch.full_like(counts, seen)
        elif not has_memory(counts) or is_recomputed():
            return
        elif type(counts) is not Tensor:  # labels of a subclass give counts of that class
            counts = counts.as_subclass(Tensor)
        if self._replica_of is None:
            self._add(counts, number)
        else:
            with _replicas:
                self._replica_of._add(counts, number)

    def _add(self, counts: Tensor, seen: Union[int, Tensor, None]) -> None:
        before = self._counts
        self._counts = counts if before is None else before.to(counts.device) + counts


class KeepsTally(AddsCounts):
    """Mixin of losses that counts elements seen, skipped and remapped, and each invalid value, over all training calls.

    At the end of the process that made the loss, one line (logger ``mmguard``) reports the elements skipped or
    remapped since the last reset.
    """

    #: Counts that a copied or unpickled loss has from the original loss; only the original reports them.
    copied_counts: Optional[Tensor] = None

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        register_loss(self)

    def __setstate__(self, state: Dict[str, Any]) -> None:
        super().__setstate__(state)  # type: ignore[misc]
        self.copied_counts = self._counts
        register_loss(self)

    def __del__(self) -> None:
        if self.__dict__.get('_counts') is not None:
            take_counts_of(self)

    @property
    def counts_by_value(self) -> Optional[Tensor]:
        """:attr:`counts`, followed (for class indices) by a count per invalid value; ``None`` before any call."""
        return self._counts

    @property
    def counts(self) -> Optional[Tensor]:
        """Elements seen, skipped, remapped since the last reset: int64 (3,) on the device; ``None`` before any call.

        To sum over ranks: ``torch.distributed.all_reduce(criterion.counts.clone())``.
        """
        counts = self.counts_by_value
        return None if counts is None else counts[:3]

    def tally(self) -> Tally:
        """Read the running counts; this waits for the device, so do it only occasionally."""
        counts = self.counts_by_value
        return Tally() if counts is None else read_tally(counts)

    def reset_tally(self) -> None:
        """Reset the counts to 0."""
        self._counts = self.copied_counts = None


class CountsLabels(AddsCounts):
    """Mixin of guarded losses that counts elements seen, skipped and remapped since the hook last read the counts.

    Calls in evaluation mode are counted, too, because the loss of a frozen head may train the rest of the model.
    Only valid elements are counted on the device, because the host knows how many elements were seen.

    Attributes:
        sources (list[str], optional): Files of the samples of the current batch; the hook sets them, so that
            ``on_invalid='raise'`` can name the file.
    """

    sources: Optional[List[str]] = None
    _counts_in_eval = True
    on_invalid: str
    _seen: Union[int, Tensor] = 0

    def take_valid(self) -> Optional[Tuple[Union[int, Tensor], Tensor]]:
        """Return the numbers of elements seen and valid since the last call, or ``None`` if nothing was seen."""
        seen, valid = self._seen, self._counts
        vars(self).update(_seen=0, _counts=None)  # Module.__setattr__ looks for parameters first
        _unread.discard(self)
        return None if valid is None else (seen, valid)

    def take_counts(self) -> Optional[Tensor]:
        """Return counts (seen, skipped, remapped) since the last call: int64 (3,), or ``None`` if nothing was seen."""
        taken = self.take_valid()
        return None if taken is None else build_counts(*taken, self.on_invalid)

    def _add(self, counts: Tensor, seen: Any) -> None:
        self._seen = seen if self._counts is None else self._seen + seen
        super()._add(counts, seen)
        if not isinstance(seen, Tensor):  # else compiled
            warn_unreported(type(self).__name__)
            _unread.add(self)

    def _add_source(self, error: LabelGuardError, label: Optional[Tensor]) -> LabelGuardError:
        """Add the file of the first invalid element to an error, if the labels' first dimension is the batch.

        Labels of boxes and queries are flattened over the batch, so their first index does not identify the sample.
        """
        if not self.sources or not error.positions or label is None:
            return error
        if len(self.sources) == 1:
            source = self.sources[0]
        elif label.dim() > 1 and label.shape[0] == len(self.sources):
            source = self.sources[error.positions[0][0]]
        else:
            return error
        for tally in error.tallies:
            tally.source = source if len(self.sources) == 1 else SEVERAL
        return LabelGuardError(f'{source}: {error}', error.tallies, error.positions)


def take_tallies(losses: Mapping[str, CountsLabels]) -> Dict[str, Tally]:
    """Read the counts of all losses since the last call, with one copy from the device."""
    present: Dict[str, Tuple[Union[int, Tensor], Tensor]] = {}
    on_device: List[Tensor] = []
    for name, loss in losses.items():
        taken = loss.take_valid()
        if taken is not None:
            present[name] = taken
            on_device += (number for number in taken if isinstance(number, Tensor))
    # No stack() for a single number: it takes as long as the rest.
    read = iter(torch.stack(on_device).tolist() if len(on_device) > 1 else [one.item() for one in on_device])
    tallies = {}
    for name, (given, _) in present.items():
        seen = next(read) if isinstance(given, Tensor) else given
        invalid = seen - next(read)
        clipped = losses[name].on_invalid == 'clip'
        tallies[name] = Tally(seen, remapped=invalid) if clipped else Tally(seen, invalid)
    return tallies
