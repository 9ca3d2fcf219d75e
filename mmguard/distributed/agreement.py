"""Ranks agree on their losses before backward, so that none of them waits for a gradient that never comes."""

from __future__ import annotations

import logging
import weakref
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Sequence, Tuple
from weakref import WeakKeyDictionary

import torch
from torch import nn

from mmguard.distributed.control import Control, world
from mmguard.distributed.layout import Entry, Layout, Losses, digest, lacking, layout_of, tensors_of, union
from mmguard.distributed.reach import trainable, unreached, zero_of
from mmguard.errors import LabelGuardError
from mmguard.log.pace import Pace
from mmguard.words import counted

ON_MISMATCH = ('fill', 'raise')
ON_NONFINITE = ('keep', 'skip', 'raise')
TIMEOUT = 1800.0

#: The loss that carries the zeros where a rank has none at all, and none is known.
FILLED = 'loss_filled'

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


def check_expected(expected: Sequence[str]) -> Sequence[str]:
    """Checks an argument of :class:`LossAgreement`.

    Raises:
        TypeError: It is no sequence of strings.
    """
    if isinstance(expected, str) or not all(isinstance(key, str) for key in expected):
        raise TypeError(f'expected must be a sequence of names of losses, got {expected!r}')
    return expected


class Filled(NamedTuple):
    """What one rank lacked.

    Attributes:
        rank (int): Which.
        losses (list[str]): Those that it did not have, or that were constant (without a graph).
        samples (list[str]): The files of its batch.
    """

    rank: int
    losses: List[str]
    samples: List[str]


class Agreed(NamedTuple):
    """What all ranks decided together.

    Attributes:
        losses (dict): The losses, the same keys on every rank.
        skip (bool): Whether this iteration is to be left out, because a loss is not finite on some rank.
        nonfinite (list[tuple]): Rank, names of its losses that are not finite, its samples; of the ranks that have any.
        filled (list[Filled]): What was filled in, of each rank that lacked anything; the same list on every rank.
    """

    losses: Losses
    skip: bool
    nonfinite: List[Report]
    filled: List[Filled]


class LossAgreement:
    """Compares the dictionaries of losses of all ranks, 24 bytes of each where they agree.

    The bytes go from host to host, over gloo; a GPU neither sends them nor is waited for.

    Ranks that have the same keys with a graph go on as they are. Where one lacks a key (a head that skips a branch
    without targets), or has a constant in its place, it gets a zero that hangs on every trainable parameter: the
    gradient is 0, and DistributedDataParallel sees the same parameters everywhere. So it does for a key that all ranks
    lack, but had before or were said to have (``expected``). Nothing is exchanged where nothing is distributed.

    Parameters that no loss reaches at all, as in a first iteration without targets on any rank, get zeros in the same
    way where ``module`` is a DistributedDataParallel that waits for them, and the first rank names them, once.

    Args:
        module (nn.Module): The model (or its DistributedDataParallel).
        group (ProcessGroup, optional): The ranks that take part. ``None``: all.
        on_mismatch (str): ``'fill'`` as above; ``'raise'``: every rank raises the same ``LabelGuardError``.
        on_nonfinite (str): ``'keep'``: not looked at; ``'skip'``: all ranks leave the iteration out; ``'raise'``. The
            last two wait for the device once per call.
        timeout (float): Seconds after which a rank that does not come is named, by ``AbsentRankError``.
        expected (Sequence[str]): Losses that the model has where there are targets, should the first batches have none.
        warn (Callable): Takes a line for the log, on the first rank. Default: that of the logger ``mmguard``.

    Raises:
        ValueError: An unknown ``on_mismatch`` or ``on_nonfinite``.
        TypeError: ``expected`` is no sequence of strings.
    """

    def __init__(
        self,
        module: nn.Module,
        group: Optional[Any] = None,
        on_mismatch: str = 'fill',
        on_nonfinite: str = 'keep',
        timeout: float = TIMEOUT,
        expected: Sequence[str] = (),
        warn: Callable[[str], None] = logging.getLogger('mmguard').warning,
    ) -> None:
        check_words(on_mismatch, on_nonfinite)
        self._module = weakref.ref(module)
        self.on_mismatch = on_mismatch
        self.on_nonfinite = on_nonfinite
        self._control = Control(group, timeout)
        self._known: Layout = dict.fromkeys(check_expected(expected), Entry(is_list=False, graph=True))
        self._warn = warn
        self._pace = Pace()
        #: Digest of a layout -> parameters out of its reach on this rank.
        self._unreached: Dict[int, List[str]] = {}
        self._looked = False
        #: A layout with which there was nothing to do, and its digest.
        self._settled: Tuple[Optional[Layout], int] = (None, 0)

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
        # From here on every rank goes the same way: what decides is the same on all of them.
        mine = self._settled[1] if layout == self._settled[0] else digest(layout)
        same, any_nonfinite = self._control.compared(mine, bool(nonfinite))
        filled: List[Filled] = []
        if not same or mine != self._settled[1]:
            losses, filled = self._made_equal(losses, layout, same, samples, mine)
        if not any_nonfinite:
            return Agreed(losses, False, [], filled)
        reports = self._control.gathered((self._control.rank, nonfinite, list(samples)))
        return self._judged(losses, [report for report in reports if report[1]], filled)

    def report(self, line: str) -> None:
        """Says a line on the first rank, unless there were many of late."""
        if self._control.rank == self._control.ranks[0] and self._pace.lets_pass():
            held_back = self._pace.take_held_back()
            self._warn(line + (f' (and {held_back} such lines since the last one)' if held_back else ''))

    def leave(self, why: str) -> None:
        """Says that this rank comes no more, and why: those that wait for it notice at once."""
        self._control.leave(why)

    def _made_equal(
        self, losses: Losses, layout: Layout, same: bool, samples: Sequence[str], mine: int
    ) -> Tuple[Losses, List[Filled]]:
        """The losses with all that any rank has or had, and what each lacked."""
        filled: List[Filled] = []
        whole = self._whole([layout])
        if not same or lacking(layout, whole):
            layouts, files = zip(*self._control.gathered((layout, list(samples))))
            if not same and self.on_mismatch == 'raise':
                raise LabelGuardError(describe_mismatch(layouts, files, self._control.ranks))
            whole = self._whole(layouts)
            lists = [lacking(one, whole) for one in layouts]
            filled = [Filled(*told) for told in zip(self._control.ranks, lists, files) if told[1]]
        if torch.is_grad_enabled():
            self._known = {key: entry for key, entry in whole.items() if key != FILLED}
            self._look(losses, mine)
        full = self._filled(losses, layout, whole, self._unreached.get(mine, []))
        self._settled = (layout, mine) if full is losses and not filled else (None, 0)
        return full, filled

    def _whole(self, layouts: Sequence[Layout]) -> Layout:
        """What every rank is to have. Without gradients, as in validation, only what some rank has now."""
        if not torch.is_grad_enabled():
            return union(layouts)
        whole = union([*layouts, self._known])
        if any(entry.graph for entry in whole.values()):
            return whole
        constant = {key: entry._replace(graph=True) for key, entry in whole.items() if 'loss' in key}
        return {**whole, **(constant or {FILLED: Entry(is_list=False, graph=True)})}

    def _look(self, losses: Losses, mine: int) -> None:
        """Finds what no loss reaches, once for each layout; the first time, the first rank names it."""
        if mine not in self._unreached:
            tensors = [tensor for key, value in losses.items() for tensor in tensors_of(key, value)]
            self._unreached[mine] = unreached(self._module(), tensors)
        if not self._looked:
            self._looked = True
            of_ranks = self._control.gathered(self._unreached[mine])
            names = [name for name in of_ranks[0] if all(name in others for others in of_ranks)]
            if names:
                self.report(f'guard: {describe_unreached(names)}')

    def _filled(self, losses: Losses, layout: Layout, whole: Layout, out_of_reach: List[str]) -> Losses:
        """The losses with every key; what was missing, or constant, hangs on the parameters with a zero."""
        names, module = lacking(layout, whole), self._module()
        if names:
            zero = zero_of(module)
        elif out_of_reach and self.on_mismatch == 'fill':
            names = [key for key, entry in layout.items() if entry.graph]
            zero = zero_of(module, [one for name, one in trainable(module) if name in out_of_reach])
        else:
            return losses
        filled = dict(losses)
        for key in names:
            entry = whole[key]
            there = list(tensors_of(key, losses[key])) if key in losses else []
            there = [loss + zero for loss in there] or [zero if entry.graph else zero.detach()]
            filled[key] = there if entry.is_list else there[0]
        return filled

    def _judged(self, losses: Losses, nonfinite: List[Report], filled: List[Filled]) -> Agreed:
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
    on_nonfinite: str = 'keep',
    expected: Sequence[str] = (),
) -> Losses:
    """:class:`LossAgreement` for a loop of your own: call it on every rank, just before the losses are summed.

    What was filled in or left out is said on the first rank, by the logger ``mmguard``.

    Args:
        losses (dict): Name -> tensor, or list of tensors.
        module (nn.Module): The model (or its DistributedDataParallel).
        group, on_mismatch, timeout, expected: As there.
        samples (Sequence[str]): The files of this rank's batch, for messages.
        on_nonfinite (str): As there. With ``'skip'``, ask the answer instead of the losses:
            ``if not losses: continue`` does so on all ranks, or on none.

    Returns:
        dict: The losses, with the same keys on every rank; the dictionary itself where nothing was to do. An empty one
        where the iteration is to be left out.

    Example:
        >>> losses = {'loss_cls': torch.ones(())}
        >>> align_losses(losses, torch.nn.Linear(1, 1)) is losses  # not distributed
        True
    """
    made = _AGREEMENTS.setdefault(module, {})
    key = (world(), group, on_mismatch, on_nonfinite, timeout, tuple(expected))
    if key not in made:
        made[key] = LossAgreement(module, group, on_mismatch, on_nonfinite, timeout, expected)
    agreed = made[key](losses, samples)
    if agreed.filled:
        made[key].report(f'guard: {describe_filled(agreed.filled)}')
    if agreed.skip:
        made[key].report(f'guard: left out, losses that are not finite: {describe_nonfinite(agreed.nonfinite)}')
    return {} if agreed.skip else agreed.losses


def describe_filled(filled: Sequence[Filled]) -> str:
    """``rank 1 had no loss_bbox (samples: a.jpg); filled with zeros, ...``."""
    lacks = [f'rank {rank} had no {", ".join(losses)} (samples: {_shown(files)})' for rank, losses, files in filled]
    return (
        f'{_shown(lacks, "; ")}; filled with zeros, so that the ranks stay in step. Most often a batch without targets'
    )


def describe_unreached(names: Sequence[str]) -> str:
    """Which parameters get no gradient, and what to do."""
    return (
        f'no loss of any rank reaches {counted(len(names), "parameter")}: {_shown(names)}. With a first batch without '
        f'targets that is to be expected. A branch that is never used (frozen, dropped) needs requires_grad=False, or '
        f'DistributedDataParallel find_unused_parameters=True'
    )


def _shown(items: Sequence[str], between: str = ', ') -> str:
    """The first eight."""
    more = [f'and {len(items) - 8:,} more'] if len(items) > 8 else []
    return between.join([*items[:8], *more]) or 'unknown'


def describe_mismatch(layouts: Sequence[Layout], samples: Sequence[Sequence[str]], ranks: Sequence[int]) -> str:
    """Which rank lacks which key, and which samples it had."""
    whole = union(layouts)
    lines = []
    for rank, layout, files in zip(ranks, layouts, samples):
        missing = [key for key in whole if key not in layout]
        constant = [key for key in lacking(layout, whole) if key in layout]
        parts = [
            f'{what} {", ".join(keys)}'
            for what, keys in (('lacks', missing), ('has no gradient for', constant))
            if keys
        ]
        if parts:
            lines.append(f'rank {rank} {"; ".join(parts)} (samples: {_shown(files)})')
    return (
        f'ranks differ in their losses: {". ".join(lines)}. A head that skips a branch, most often because a batch has '
        f"no targets: DistributedDataParallel would wait for ever. on_mismatch='fill' trains on with zeros"
    )


def describe_nonfinite(reports: Sequence[Report]) -> str:
    """``rank 1: loss_bbox (samples: a.jpg, b.jpg)``."""
    return '; '.join(f'rank {rank}: {", ".join(names)} (samples: {_shown(files)})' for rank, names, files in reports)


def _nonfinite_of(losses: Losses) -> List[str]:
    """Names of the losses that are trained on and not finite; one wait for the device."""
    trained = {key: tensors_of(key, value) for key, value in losses.items() if 'loss' in key}
    named = [(key, part.detach().isfinite().all()) for key, parts in trained.items() for part in parts]
    if not named:
        return []
    flags = torch.stack([finite.to(named[0][1].device) for _, finite in named]).tolist()
    return list(dict.fromkeys(key for (key, _), finite in zip(named, flags) if not finite))
