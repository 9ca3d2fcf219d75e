"""Agreement of ranks on their losses before backward, so that no rank hangs because a gradient is missing."""

from __future__ import annotations

import hashlib
import logging
import weakref
from typing import Any, Callable, Dict, Iterable, List, Mapping, NamedTuple, Optional, Sequence, Set, Tuple, Union
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from mmguard.distributed.channel import Channel, get_channel, get_world
from mmguard.log.messages import RateLimiter, describe_filled, describe_unreached

TIMEOUT = 1800.0

Loss = Union[Tensor, List[Tensor]]

Losses = Dict[str, Loss]


class LossEntry(NamedTuple):
    """Description of one item of a dictionary of losses, without its value."""

    is_list: bool  #: True for a list of tensors. Its length may differ: heads return one per image or level.
    graph: bool  #: True if the loss has an autograd graph, so that backward reaches parameters.


Layout = Dict[str, LossEntry]

#: Key of a loss of zeros, which is added if no rank has any loss and no earlier iteration had one.
FILLED = 'loss_filled'


class RankLosses(NamedTuple):
    """Names of the losses that were filled in on one rank, and the files of its batch."""

    rank: int  #: Number of the rank.
    losses: List[str]  #: Names of the losses.
    samples: List[str]  #: The files of this rank's batch.


class Agreed(NamedTuple):
    """Losses of this rank after the agreement of all ranks."""

    losses: Losses  #: The losses, with the same keys in the same order on every rank.
    #: Losses that were filled in, for each rank on which they were missing or constants without a graph. The list is
    #: the same on every rank.
    filled: List[RankLosses]


class LossAgreement:
    """Agreement of all ranks on their losses; if all have the same losses, each rank sends only 24 bytes.

    The bytes go from host to host, over gloo; no GPU sends or waits.

    If all ranks have the same keys in the same order, each with a graph, the losses do not change. If a rank lacks a
    key (a head skips a branch without targets), or has a constant for it, the rank gets a zero that depends on every
    trainable parameter: the gradient is 0, and DistributedDataParallel sees the same parameters on all ranks. A key
    that all ranks lack, but had before, gets such a zero, too. All ranks end with the keys in one order, that of the
    rank with the most keys, so that a loop may reduce losses entry by entry. Without other ranks, nothing is exchanged.

    Parameters that no loss reaches, as in a first iteration without targets on any rank, get a gradient of zeros, too,
    if ``module`` is a DistributedDataParallel that waits for them; the first rank logs their names once.

    Args:
        module (nn.Module): The model (or its DistributedDataParallel).
        timeout (float): Seconds to wait for a rank; then an ``AbsentRankError`` names the rank.
        warn (Callable): Called with a line for the log, on the first rank. Default: ``warning`` of logger ``mmguard``.
    """

    def __init__(
        self,
        module: nn.Module,
        timeout: float = TIMEOUT,
        warn: Callable[[str], None] = logging.getLogger('mmguard').warning,
    ) -> None:
        self._module = weakref.ref(module)
        self._channel = get_channel(timeout)
        self._known: Layout = {}
        self._warn = warn
        self._limiter = RateLimiter()
        #: Digest of a layout -> parameters that its losses do not reach on this rank.
        self._unreached: Dict[int, List[str]] = {}
        #: The items (in order) and the digest of the last layout that needed no change.
        self._settled: Tuple[Optional[List[Tuple[str, LossEntry]]], int] = (None, 0)

    def __call__(self, losses: Losses, samples: Sequence[str] = ()) -> Agreed:
        """Agree on the losses of one iteration, as the model returns them. Every rank must make this call.

        Raises:
            AbsentRankError: A rank did not call within ``timeout``.
            TypeError: A loss is neither a tensor nor a list of tensors.
        """
        layout = build_layout(losses)
        channel = self._channel
        if channel is None:
            return Agreed(losses, [])
        # From here on every rank takes the same branches: they depend only on shared values.
        mine = self._settled[1] if list(layout.items()) == self._settled[0] else compute_digest(layout)
        same = channel.is_same(mine)
        if same and mine == self._settled[1]:
            return Agreed(losses, [])
        return Agreed(*self._fill_layout(channel, losses, layout, same, samples, mine))

    def report(self, line: str) -> None:
        """Log a line on the first rank, unless many lines were logged recently."""
        is_first = self._channel is None or self._channel.rank == 0
        if is_first and self._limiter.allow():
            self._warn(line + self._limiter.describe_held_back())

    def leave(self, reason: str) -> None:
        """Tell the waiting ranks that this rank has left, and why."""
        if self._channel is not None:
            self._channel.leave(reason)

    def _fill_layout(
        self, channel: Channel, losses: Losses, layout: Layout, same: bool, samples: Sequence[str], own_digest: int
    ) -> Tuple[Losses, List[RankLosses]]:
        """Return the losses with all keys that any rank has or had, and for each rank the losses that it lacked."""
        filled: List[RankLosses] = []
        whole = self._merge_layouts([layout])
        if not same or find_missing(layout, whole):
            layouts, files = zip(*channel.gather((layout, list(samples))))
            whole = self._merge_layouts(layouts)
            lacks = (find_missing(one, whole) for one in layouts)
            filled = [RankLosses(*one) for one in zip(channel.ranks, lacks, files) if one[1]]
        if torch.is_grad_enabled():
            self._known = {key: entry for key, entry in whole.items() if key != FILLED}
            self._find_unreached(channel, losses, own_digest)
        full = self._fill(losses, layout, whole, self._unreached.get(own_digest, []))
        self._settled = (list(layout.items()), own_digest) if same and full is losses and not filled else (None, 0)
        return full, filled

    def _merge_layouts(self, layouts: Sequence[Layout]) -> Layout:
        """Return one layout for all ranks; in training (with gradients), it includes losses of earlier iterations."""
        if not torch.is_grad_enabled():
            return merge_layouts(layouts)
        whole = merge_layouts([*layouts, self._known])
        if any(entry.graph for entry in whole.values()):
            return whole
        constant = {key: entry._replace(graph=True) for key, entry in whole.items() if 'loss' in key}
        return {**whole, **(constant or {FILLED: LossEntry(is_list=False, graph=True)})}

    def _find_unreached(self, channel: Channel, losses: Losses, own_digest: int) -> None:
        """Find parameters that no loss reaches, once per layout; the first time, report those that no rank reaches."""
        is_first = not self._unreached
        if own_digest not in self._unreached:
            tensors = [tensor for key, value in losses.items() for tensor in list_tensors(key, value)]
            self._unreached[own_digest] = find_unreached(self._module(), tensors)
        if is_first:
            of_ranks = channel.gather(self._unreached[own_digest])
            names = [name for name in of_ranks[0] if all(name in others for others in of_ranks)]
            if names:
                self.report(f'guard: {describe_unreached(names)}')

    def _fill(self, losses: Losses, layout: Layout, union: Layout, out_of_reach: List[str]) -> Losses:
        """Return the losses in the order of ``union``; zeros replace missing losses, or are added to constants."""
        names, module = find_missing(layout, union), self._module()
        if names:
            zero = make_zero(module)
        elif out_of_reach:
            names = [key for key, entry in layout.items() if entry.graph]
            zero = make_zero(module, [one for name, one in list_trainable(module) if name in out_of_reach])
        else:
            return losses if [*layout] == [*union] else {key: losses[key] for key in union}
        filled = dict(losses)
        for key in names:
            entry = union[key]
            there = list(list_tensors(key, losses[key])) if key in losses else []
            there = [loss + zero for loss in there] or [zero.clone() if entry.graph else zero.detach().clone()]
            filled[key] = there if entry.is_list else there[0]
        return {key: filled[key] for key in union}


#: Model -> arguments -> agreement; deleted with the model.
_AGREEMENTS: WeakKeyDictionary[nn.Module, Dict[Any, LossAgreement]] = WeakKeyDictionary()


def align_losses(losses: Losses, module: nn.Module, samples: Sequence[str] = (), timeout: float = TIMEOUT) -> Losses:
    """Apply :class:`LossAgreement` in your own loop: call this on every rank, just before the losses are summed.

    The first rank logs what was filled in, with the logger ``mmguard``.

    Args:
        losses (dict): Name -> tensor, or list of tensors.
        module (nn.Module): The model (or its DistributedDataParallel).
        samples (Sequence[str]): The files of this rank's batch, for messages.
        timeout (float): See :class:`LossAgreement`.

    Returns:
        dict: The losses, with the same keys in the same order on every rank; ``losses`` itself if nothing changed.

    Example:
        >>> losses = {'loss_cls': torch.ones(())}
        >>> align_losses(losses, torch.nn.Linear(1, 1)) is losses  # not distributed
        True
    """
    made = _AGREEMENTS.setdefault(module, {})
    key = (get_world(), timeout)
    if key not in made:
        made[key] = LossAgreement(module, timeout)
    agreed = made[key](losses, samples)
    if agreed.filled:
        made[key].report(f'guard: {describe_filled(agreed.filled)}')
    return agreed.losses


def build_layout(losses: Mapping[str, Any]) -> Layout:
    """Return the layout of losses as {key: entry}.

    Raises:
        TypeError: A value is neither a tensor nor a list of tensors.
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
    """Return the tensors of one loss; raise TypeError if it is neither a tensor nor a list of tensors."""
    if isinstance(value, Tensor):
        return [value]
    if isinstance(value, (list, tuple)) and all(isinstance(part, Tensor) for part in value):
        return value
    raise TypeError(f'{key!r} in the dictionary of losses must be a tensor or a list of tensors, got {value!r:.200}')


def compute_digest(layout: Layout) -> int:
    """Return a 63-bit digest of a layout; two different layouts collide with probability ``2**-63``.

    The order of the keys counts, because loops reduce losses entry by entry. A list and a tensor give the same digest.
    """
    text = repr([(key, entry.graph) for key, entry in layout.items()])
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), 'big') >> 1


def merge_layouts(layouts: Sequence[Layout]) -> Layout:
    """Return the union of layouts; an entry has a graph if it has one in any layout.

    Keys are in the order of the layout with the most keys. Any other key follows the key before it in its own layout.

    Example:
        >>> entry = LossEntry(is_list=False, graph=True)
        >>> list(merge_layouts([dict.fromkeys('ac', entry), dict.fromkeys('ab', entry), dict.fromkeys('bcd', entry)]))
        ['a', 'b', 'c', 'd']
    """
    joined: Layout = {}
    order: List[str] = []
    for layout in sorted(layouts, key=len, reverse=True):  # stable, so layouts of equal length keep their order
        place = 0
        for key, entry in layout.items():
            known = joined.get(key, entry)
            if key not in joined:
                order.insert(place, key)
            joined[key] = LossEntry(known.is_list, known.graph or entry.graph)
            place = order.index(key) + 1
    return {key: joined[key] for key in order}


def find_missing(layout: Layout, union: Layout) -> List[str]:
    """Return the keys of ``union`` that ``layout`` lacks, or for which only ``union`` has a graph."""
    return [k for k, e in union.items() if k not in layout or (e.graph and not layout[k].graph)]


def make_zero(module: Any, parameters: Iterable[Tensor] = ()) -> Tensor:
    """Return a zero that depends on parameters (default: all trainable ones), so that each gets a gradient of zeros.

    If DistributedDataParallel searches for unused parameters itself, it has marked them already and would not accept
    a second gradient. In this case, the zero does not depend on any parameter.
    """
    hung = list(parameters) or [parameter for parameter in module.parameters() if parameter.requires_grad]
    if not hung:
        return torch.zeros(())
    if getattr(module, 'find_unused_parameters', False):
        return torch.zeros((), device=hung[0].device)
    # Sums over nothing: 0 whatever a parameter holds, while 0 * inf would be NaN.
    return torch.stack([one.flatten()[:0].sum().float().to(hung[0].device) for one in hung]).sum()


def find_unreached(module: Any, losses: Iterable[Tensor]) -> List[str]:
    """Return the names of parameters for which DistributedDataParallel waits forever, because no loss reaches them.

    The list is empty if ``module`` is not a DistributedDataParallel or searches for unused parameters itself
    (``find_unused_parameters=True``, ``static_graph=True``), or if activation checkpointing hides a part of the graph.
    """
    if not isinstance(module, DistributedDataParallel) or not torch.is_grad_enabled():
        return []
    if module.find_unused_parameters or getattr(module, 'static_graph', False):
        return []
    reached = _find_reached(losses)
    return [] if reached is None else [name for name, one in list_trainable(module) if id(one) not in reached]


def list_trainable(module: Any) -> List[Any]:
    """Return (name, parameter) of each trainable parameter; names omit the ``module.`` of a wrapper."""
    inner = module.module if isinstance(module, DistributedDataParallel) else module
    return [(name, one) for name, one in inner.named_parameters() if one.requires_grad]


def _find_reached(losses: Iterable[Tensor]) -> Any:
    """Return the ids of the leaf tensors that the losses depend on, or ``None`` if checkpointing hides a part."""
    leaves: Set[int] = {id(loss) for loss in losses if loss.requires_grad and loss.grad_fn is None}
    waiting: List[Any] = [loss.grad_fn for loss in losses if loss.grad_fn is not None]
    seen = set(waiting)
    while waiting:
        node = waiting.pop()
        if 'Checkpoint' in node.name():  # with use_reentrant=True, a part of the graph is only built in backward
            return None
        if hasattr(node, 'variable'):
            leaves.add(id(node.variable))
        following = {following for following, _ in node.next_functions if following is not None} - seen
        seen |= following
        waiting += following
    return leaves
