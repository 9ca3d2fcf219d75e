"""Ranks agree on their losses before backward, so that none of them waits for a gradient that never comes."""

from __future__ import annotations

import logging
import weakref
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Sequence, Tuple
from weakref import WeakKeyDictionary

import torch
from torch import nn

from mmguard.distributed.channel import Channel, channel_of, world
from mmguard.distributed.loss_structure import (
    Entry,
    Layout,
    Losses,
    digest,
    lacking,
    layout_of,
    nonfinite_losses,
    tensors_of,
    union,
)
from mmguard.distributed.unused_parameters import trainable, unreached, zero_of
from mmguard.labels.errors import LabelGuardError
from mmguard.log.messages import RateLimiter, describe_filled, describe_mismatch, describe_nonfinite, describe_unreached

ON_MISMATCH = ('fill', 'raise')
ON_NONFINITE = ('keep', 'skip', 'raise')
TIMEOUT = 1800.0

#: The loss that carries the zeros where a rank has none at all, and none is known.
FILLED = 'loss_filled'


def check_arguments(on_mismatch: str, on_nonfinite: str, expected: Sequence[str]) -> None:
    """Checks the arguments of :class:`LossAgreement`.

    Raises:
        ValueError: An unknown word.
        TypeError: ``expected`` is no sequence of strings.
    """
    for name, word, words in (('on_mismatch', on_mismatch, ON_MISMATCH), ('on_nonfinite', on_nonfinite, ON_NONFINITE)):
        if word not in words:
            raise ValueError(f'{name} must be one of {", ".join(map(repr, words))}, got {word!r}')

    if isinstance(expected, str) or not all(isinstance(key, str) for key in expected):
        raise TypeError(f'expected must be a sequence of names of losses, got {expected!r}')


class RankLosses(NamedTuple):
    """Some losses of one rank.

    Attributes:
        rank (int): Which.
        losses (list[str]): Their names.
        samples (list[str]): The files of its batch.
    """

    rank: int
    losses: List[str]
    samples: List[str]


class Agreed(NamedTuple):
    """What all ranks decided together.

    Attributes:
        losses (dict): The losses, the same keys in the same order on every rank.
        skip (bool): Whether this iteration is to be left out, because a loss is not finite on some rank.
        nonfinite (list[RankLosses]): Those that are not finite, of each rank that has any.
        filled (list[RankLosses]): Those that were filled in, of each rank that did not have them, or had them without a
            graph (constant); the same list on every rank.
    """

    losses: Losses
    skip: bool
    nonfinite: List[RankLosses]
    filled: List[RankLosses]


class LossAgreement:
    """Compares the dictionaries of losses of all ranks, 24 bytes of each where they agree.

    The bytes go from host to host, over gloo; a GPU neither sends them nor is waited for.

    Ranks that have the same keys with a graph, in the same order, go on as they are. Where one lacks a key (a head that
    skips a branch without targets), or has a constant in its place, it gets a zero that hangs on every trainable
    parameter: the gradient is 0, and DistributedDataParallel sees the same parameters everywhere. So it does for a key
    that all ranks lack, but had before or were said to have (``expected``). Every rank ends with the same order of
    keys, that of the rank with the most, so that a loop may reduce them entry by entry. Nothing is exchanged where
    nothing is distributed.

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
        check_arguments(on_mismatch, on_nonfinite, expected)
        self._module = weakref.ref(module)
        self.on_mismatch = on_mismatch
        self.on_nonfinite = on_nonfinite
        self._channel = channel_of(group, timeout)
        self._known: Layout = dict.fromkeys(expected, Entry(is_list=False, graph=True))
        self._warn = warn
        self._limiter = RateLimiter()
        #: Digest of a layout -> parameters out of its reach on this rank.
        self._unreached: Dict[int, List[str]] = {}
        #: The items of a layout with which there was nothing to do, in their order, and its digest.
        self._settled: Tuple[Optional[List[Tuple[str, Entry]]], int] = (None, 0)

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
        nonfinite = [] if self.on_nonfinite == 'keep' else nonfinite_losses(losses)
        channel = self._channel
        if channel is None:
            return self._judged(losses, [RankLosses(0, nonfinite, list(samples))] if nonfinite else [], [])
        # From here on every rank goes the same way: what decides is the same on all of them.
        mine = self._settled[1] if list(layout.items()) == self._settled[0] else digest(layout)
        same, any_nonfinite = channel.compared(mine, bool(nonfinite))
        filled: List[RankLosses] = []
        if not same or mine != self._settled[1]:
            losses, filled = self._made_equal(channel, losses, layout, same, samples, mine)
        if not any_nonfinite:
            return Agreed(losses, False, [], filled)
        reports = channel.gathered(RankLosses(channel.rank, nonfinite, list(samples)))
        return self._judged(losses, [report for report in reports if report.losses], filled)

    def report(self, line: str) -> None:
        """Says a line on the first rank, unless there were many of late."""
        is_first = self._channel is None or self._channel.rank == self._channel.ranks[0]
        if is_first and self._limiter.allow():
            self._warn(line + self._limiter.since_last())

    def leave(self, why: str) -> None:
        """Says that this rank comes no more, and why: those that wait for it notice at once."""
        if self._channel is not None:
            self._channel.leave(why)

    def _made_equal(
        self, channel: Channel, losses: Losses, layout: Layout, same: bool, samples: Sequence[str], mine: int
    ) -> Tuple[Losses, List[RankLosses]]:
        """The losses with all that any rank has or had, in one order, and what each lacked."""
        filled: List[RankLosses] = []
        whole = self._whole([layout])
        if not same or lacking(layout, whole):
            layouts, files = zip(*channel.gathered((layout, list(samples))))
            if self.on_mismatch == 'raise':
                lacks = self._lacks(channel, layouts, union(layouts), files)
                if any(one.losses for one in lacks):
                    raise LabelGuardError(describe_mismatch(lacks, layouts))
            whole = self._whole(layouts)
            filled = [one for one in self._lacks(channel, layouts, whole, files) if one.losses]
        if torch.is_grad_enabled():
            self._known = {key: entry for key, entry in whole.items() if key != FILLED}
            self._look(channel, losses, mine)
        full = self._filled(losses, layout, whole, self._unreached.get(mine, []))
        self._settled = (list(layout.items()), mine) if same and full is losses and not filled else (None, 0)
        return full, filled

    @staticmethod
    def _lacks(
        channel: Channel, layouts: Sequence[Layout], whole: Layout, files: Sequence[List[str]]
    ) -> List[RankLosses]:
        return [RankLosses(*one) for one in zip(channel.ranks, (lacking(one, whole) for one in layouts), files)]

    def _whole(self, layouts: Sequence[Layout]) -> Layout:
        """What every rank is to have. Without gradients, as in validation, only what some rank has now."""
        if not torch.is_grad_enabled():
            return union(layouts)
        whole = union([*layouts, self._known])
        if any(entry.graph for entry in whole.values()):
            return whole
        constant = {key: entry._replace(graph=True) for key, entry in whole.items() if 'loss' in key}
        return {**whole, **(constant or {FILLED: Entry(is_list=False, graph=True)})}

    def _look(self, channel: Channel, losses: Losses, mine: int) -> None:
        """Finds what no loss reaches, once for each layout; the first time, the first rank names it."""
        is_first = not self._unreached
        if mine not in self._unreached:
            tensors = [tensor for key, value in losses.items() for tensor in tensors_of(key, value)]
            self._unreached[mine] = unreached(self._module(), tensors)
        if is_first:
            of_ranks = channel.gathered(self._unreached[mine])
            names = [name for name in of_ranks[0] if all(name in others for others in of_ranks)]
            if names:
                self.report(f'guard: {describe_unreached(names)}')

    def _filled(self, losses: Losses, layout: Layout, whole: Layout, out_of_reach: List[str]) -> Losses:
        """The losses with every key, in the order of ``whole``; what was missing, or constant, hangs on the parameters
        with a zero."""
        names, module = lacking(layout, whole), self._module()
        if names:
            zero = zero_of(module)
        elif out_of_reach and self.on_mismatch == 'fill':
            names = [key for key, entry in layout.items() if entry.graph]
            zero = zero_of(module, [one for name, one in trainable(module) if name in out_of_reach])
        else:
            return losses if [*layout] == [*whole] else {key: losses[key] for key in whole}
        filled = dict(losses)
        for key in names:
            entry = whole[key]
            there = list(tensors_of(key, losses[key])) if key in losses else []
            there = [loss + zero for loss in there] or [zero.clone() if entry.graph else zero.detach().clone()]
            filled[key] = there if entry.is_list else there[0]
        return {key: filled[key] for key in whole}

    def _judged(self, losses: Losses, nonfinite: List[RankLosses], filled: List[RankLosses]) -> Agreed:
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
        dict: The losses, with the same keys in the same order on every rank; the dictionary itself where nothing was to
        do. An empty one where the iteration is to be left out.

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
