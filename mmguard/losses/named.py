"""``GuardedX`` for every stock loss X of a framework."""

from __future__ import annotations

from typing import Any, Dict, NoReturn, Type

from torch import nn

from mmguard.losses.guarded_loss import GuardedLossBase
from mmguard.losses.guards import GUARD_BY_NAME, REASONS
from mmguard.losses.guards.refused import USE_OWN_CLASS


def named_losses(scope: str, base: Type[GuardedLossBase], module: str) -> Dict[str, type]:
    """Build a class ``GuardedX`` for each loss X of a framework; the framework itself is not imported.

    ``GuardedX(**arguments)`` is ``base('X', **arguments)``: it takes the arguments of X, and ``num_classes``,
    ``ignore_index`` and ``on_invalid`` of the guard. The class of a loss that cannot be guarded says why when it is
    built.

    Args:
        scope (str): ``'mmseg'``, ``'mmdet'`` or ``'mmpretrain'``.
        base (type): The ``GuardedLoss`` of that scope.
        module (str): Where the classes are found again by ``pickle``: ``__name__`` of the module that keeps them.

    Returns:
        dict: Name -> class. Losses that have a guarded class of their own are left out.
    """
    found: Dict[str, type] = {}
    for full_name in (*GUARD_BY_NAME, *REASONS):
        package, _, stock = full_name.partition('.')
        reason = REASONS.get(full_name)
        if package != scope or reason is USE_OWN_CLASS:
            continue
        make = _guarded(stock, base) if reason is None else _refused(stock, reason)
        doc = f"{scope}'s {stock}, safe against any label; see :class:`GuardedLoss`." if reason is None else reason
        made = type(f'Guarded{stock}', (make,), {'__module__': module, '__doc__': doc})
        found[made.__name__] = made
    return found


def _guarded(stock: str, base: Type[GuardedLossBase]) -> type:
    class Guarded(base):  # type: ignore[valid-type, misc]
        def __init__(self, **arguments: Any) -> None:
            try:
                super().__init__(stock, **arguments)
            except (TypeError, ValueError, AssertionError) as error:
                if str(error).startswith(f'Guarded{stock}'):
                    raise
                raise type(error)(f'Guarded{stock}: {error}') from error

    return Guarded


def _refused(stock: str, reason: str) -> type:
    class Refused(nn.Module):
        def __init__(self, **arguments: Any) -> NoReturn:
            raise TypeError(f'Guarded{stock}: {reason}')

    return Refused
