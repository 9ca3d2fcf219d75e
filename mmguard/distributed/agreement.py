"""Ranks agree on their losses before backward, so that none of them waits for a gradient that never comes."""

from __future__ import annotations

import weakref
from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Tuple
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn

from mmguard.distributed.control import DIGEST_BITS, Control, world
from mmguard.distributed.layout import Layout, Losses, digest, layout_of, tensors_of, union
from mmguard.errors import LabelGuardError

ON_MISMATCH = ('fill', 'raise')
ON_NONFINITE = ('keep', 'skip', 'raise')
TIMEOUT = 1800.0

#: Rank, names of its losses that are not finite, its samples.
Report = Tuple[int, List[str], List[str]]


def check_words(on_mismatch: str, on_nonfinite: str) -> None:
    """Checks the arguments of :class:`LossAgreement`.

    Raises:
        ValueError: An unknown one.
    """
    for name, word, words in (('on_mismatch', on_mismatch, ON_MISMATCH), ('on_nonfinite', on_nonfinite, ON_NONFINITE)):
        if word not in words:
            raise ValueError(f'{name} must be one of {", ".join(map(repr, words))}, got {word!r}')


class Agreed(NamedTuple):
    """What all ranks decided together.

    Attributes:
        losses (dict): The losses, the same keys on every rank.
        skip (bool): Whether this iteration is to be left out, because a loss is not finite on some rank.
        nonfinite (list[tuple]): Rank, names of its losses that are not finite, its samples; of the ranks that have any.
        filled (list[str]): Keys that had to be filled, or to be hung on the parameters, on this rank.
    """

    losses: Losses
    skip: bool
    nonfinite: List[Report]
    filled: List[str]


class LossAgreement:
    """Compares the dictionaries of losses of all ranks, 8 bytes of each where they agree.

    The bytes go from host to host, through shared memory on one machine and by gloo between several; a GPU neither
    sends them nor is waited for.

    Ranks that have the same keys with a graph go on as they are. Where one lacks a key (a head that skips a branch
    without targets), or has a constant in its place, it gets a zero that hangs on every trainable parameter: the
    gradient is 0, and DistributedDataParallel sees the same parameters everywhere. So it does for a key that all ranks
    lack, but had before. Nothing is exchanged where nothing is distributed.

    Args:
        module (nn.Module): The model (or its DistributedDataParallel).
        group (ProcessGroup, optional): The ranks that take part. ``None``: all.
        on_mismatch (str): ``'fill'`` as above; ``'raise'``: every rank raises the same ``LabelGuardError``.
        on_nonfinite (str): ``'keep'``: not looked at; ``'skip'``: all ranks leave the iteration out; ``'raise'``. The
            last two wait for the device once per call.
        timeout (float): Seconds after which a rank that does not come is named, by ``AbsentRankError``.

    Raises:
        ValueError: An unknown ``on_mismatch`` or ``on_nonfinite``.
    """

    def __init__(
        self,
        module: nn.Module,
        group: Optional[Any] = None,
        on_mismatch: str = 'fill',
        on_nonfinite: str = 'keep',
        timeout: float = TIMEOUT,
    ) -> None:
        check_words(on_mismatch, on_nonfinite)
        self._module = weakref.ref(module)
        self.on_mismatch = on_mismatch
        self.on_nonfinite = on_nonfinite
        self._control = Control(group, timeout)
        self._known: Layout = {}

    def __call__(self, losses: Losses, samples: Sequence[str] = ()) -> Agreed:
        """Agrees on the losses of one iteration; every rank must call it.

        Args:
            losses (dict): Name -> tensor, or list of tensors; as they come from the model, before they are summed.
            samples (Sequence[str]): The files of this rank's batch, for messages.

        Raises:
            LabelGuardError: See ``on_mismatch`` and ``on_nonfinite``.
            AbsentRankError: A rank did not come within ``timeout``.
            TypeError: A loss that is neither a tensor nor a list of tensors.
        """
        layout = layout_of(losses)
        nonfinite = [] if self.on_nonfinite == 'keep' else _nonfinite_of(losses)
        if self._control.size == 1:
            return self._judged(losses, [(0, nonfinite, list(samples))] if nonfinite else [], [])
        # From here on every rank goes the same way: what decides is the same number on all of them.
        same, any_nonfinite = self._control.compared(digest(layout, DIGEST_BITS), bool(nonfinite))
        layouts: Sequence[Layout] = [layout]
        if not same:
            layouts, all_samples = zip(*self._control.gathered((layout, list(samples))))
            if self.on_mismatch == 'raise':
                raise LabelGuardError(describe_mismatch(layouts, all_samples, self._control.ranks))
        # What was known before is the same on every rank, so they agree on this, too.
        self._known = union([self._known, *layouts])
        losses, filled = self._filled(losses, layout)
        if not any_nonfinite:
            return Agreed(losses, False, [], filled)
        reports = self._control.gathered((self._control.rank, nonfinite, list(samples)))
        return self._judged(losses, [report for report in reports if report[1]], filled)

    def leave(self, why: str) -> None:
        """Says that this rank comes no more, and why: those on its machine that wait for it are told at once."""
        self._control.leave(why)

    def _filled(self, losses: Losses, layout: Layout) -> Tuple[Losses, List[str]]:
        """The losses with every known key; what was missing, or constant, hangs on the parameters with a zero."""
        names = [k for k, e in self._known.items() if k not in layout or (e.graph and not layout[k].graph)]
        if not names:
            return losses, []
        zero = zero_of(self._module())
        filled = dict(losses)
        for key in names:
            entry = self._known[key]
            there = list(tensors_of(key, losses[key])) if key in losses else []
            there = [loss + zero for loss in there] or [zero if entry.graph else zero.detach()]
            filled[key] = there if entry.is_list else there[0]
        return filled, names

    def _judged(self, losses: Losses, nonfinite: List[Tuple[int, List[str], List[str]]], filled: List[str]) -> Agreed:
        if nonfinite and self.on_nonfinite == 'raise':
            raise LabelGuardError(f'losses that are not finite: {describe_nonfinite(nonfinite)}')
        return Agreed(losses, bool(nonfinite) and self.on_nonfinite == 'skip', nonfinite, filled)


#: Model -> arguments -> agreement, gone with the model.
_AGREEMENTS: WeakKeyDictionary[nn.Module, Dict[Any, LossAgreement]] = WeakKeyDictionary()


def align_losses(
    losses: Losses,
    module: nn.Module,
    group: Optional[Any] = None,
    on_mismatch: str = 'fill',
    samples: Sequence[str] = (),
    timeout: float = TIMEOUT,
) -> Losses:
    """:class:`LossAgreement` for a loop of your own: call it on every rank, just before the losses are summed.

    Args:
        losses (dict): Name -> tensor, or list of tensors.
        module (nn.Module): The model (or its DistributedDataParallel).
        group, on_mismatch, timeout: As there.
        samples (Sequence[str]): The files of this rank's batch, for messages.

    Returns:
        dict: The losses, with the same keys on every rank; the dictionary itself where nothing was to do.

    Example:
        >>> losses = {'loss_cls': torch.ones(())}
        >>> align_losses(losses, torch.nn.Linear(1, 1)) is losses  # not distributed
        True
    """
    made = _AGREEMENTS.setdefault(module, {})
    key = (world(), group, on_mismatch, timeout)
    if key not in made:
        made[key] = LossAgreement(module, group, on_mismatch, timeout=timeout)
    return made[key](losses, samples).losses


def zero_of(module: Any) -> Tensor:
    """A zero that hangs on every trainable parameter: each gets a gradient of zeros through it.

    Where DistributedDataParallel searches for unused parameters itself, it has marked them already and would not take
    a second gradient, so the zero hangs on nothing there.
    """
    parameters = [parameter for parameter in module.parameters() if parameter.requires_grad]
    if not parameters:
        return torch.zeros(())
    if getattr(module, 'find_unused_parameters', False):
        return torch.zeros((), device=parameters[0].device)
    # Sums of nothing: 0 whatever a parameter holds, where 0 * inf would be NaN.
    return torch.stack(
        [parameter.flatten()[:0].sum().float().to(parameters[0].device) for parameter in parameters]
    ).sum()


def describe_mismatch(layouts: Sequence[Layout], samples: Sequence[Sequence[str]], ranks: Sequence[int]) -> str:
    """Which rank lacks which key, and which samples it had."""
    whole = union(layouts)
    lines = []
    for rank, layout, files in zip(ranks, layouts, samples):
        missing = [key for key in whole if key not in layout]
        constant = [key for key, entry in layout.items() if whole[key].graph and not entry.graph]
        parts = [
            f'{what} {", ".join(keys)}'
            for what, keys in (('lacks', missing), ('has no gradient for', constant))
            if keys
        ]
        if parts:
            lines.append(f'rank {rank} {"; ".join(parts)} (samples: {", ".join(files) or "unknown"})')
    return (
        f'ranks differ in their losses: {". ".join(lines)}. A head that skips a branch, most often because a batch has '
        f"no targets: DistributedDataParallel would wait for ever. on_mismatch='fill' trains on with zeros"
    )


def describe_nonfinite(reports: Sequence[Tuple[int, Sequence[str], Sequence[str]]]) -> str:
    """``rank 1: loss_bbox (samples: a.jpg, b.jpg)``."""
    return '; '.join(
        f'rank {rank}: {", ".join(names)} (samples: {", ".join(files) or "unknown"})' for rank, names, files in reports
    )


def _nonfinite_of(losses: Losses) -> List[str]:
    """Names of the losses that are trained on and not finite; one wait for the device."""
    trained = {key: tensors_of(key, value) for key, value in losses.items() if 'loss' in key}
    named = [(key, part.detach().isfinite().all()) for key, parts in trained.items() for part in parts]
    if not named:
        return []
    flags = torch.stack([finite.to(named[0][1].device) for _, finite in named]).tolist()
    return list(dict.fromkeys(key for (key, _), finite in zip(named, flags) if not finite))
