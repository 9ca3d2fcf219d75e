"""Wrapper that sanitizes the labels of any loss, and a class ``GuardedX`` for every stock loss X."""

from __future__ import annotations

import inspect
from typing import Any, Callable, ClassVar, Dict, NoReturn, Optional, Tuple, Type, Union

from torch import Tensor, nn

from mmguard.functional.format import sanitize_target
from mmguard.functional.validate import format_shape
from mmguard.labels.loss_selection import REASONS, USE_OWN_CLASS_REASON
from mmguard.labels.rules import check_int, check_num_classes, check_on_invalid
from mmguard.labels.tally import LabelGuardError
from mmguard.losses.guards import GUARD_BY_NAME, build_guard
from mmguard.nn.counting import CountsLabels
from mmguard.text import shorten

#: Result of a loss; some losses return a dict of parts.
Result = Union[Tensor, Dict[str, Tensor]]


class GuardedLossBase(CountsLabels, nn.Module):
    """Wrapper around a loss that sanitizes the labels, calls the loss, and keeps the result on the graph.

    If all labels are valid, the value is that of the wrapped loss. A batch without any label to train on gives 0 with
    gradient 0. Attributes that heads read or set (``loss_name``, ``use_sigmoid``, ``loss_weight``, ...) are those of
    the wrapped loss, even if they change during training. ``isinstance`` sees the guard as the wrapped loss, because
    some heads choose their targets by the class of the loss.

    Args:
        loss (str, type, dict or nn.Module): The type of the loss (built in the current scope with ``arguments``), the
            config of the loss, or the loss itself.
        num_classes (int, optional): Valid labels are ``[0, num_classes)``. Default: the classes of the scores.
        ignore_index (int, optional): The label to ignore, unless a call passes another one. ``None``
            uses that of the loss (``ignore_index`` or ``ignore_label``).
        on_invalid (str): ``'ignore'``, ``'clip'`` or ``'raise'``.
        arguments: Arguments of the loss, written next to its type. mmdet's heads read some of them there before the
            loss is built.

    Raises:
        TypeError: The loss cannot be guarded (the message gives an alternative), or ``arguments`` are given for a loss
            that is already built.
        ValueError: An argument is given twice with different values.
    """

    scope: ClassVar[Optional[str]] = None
    #: True if heads read the config of a loss before they build the loss.
    heads_read_config: ClassVar[bool] = False

    def __init__(
        self,
        loss: Union[str, type, Dict[str, Any], nn.Module],
        num_classes: Optional[int] = None,
        ignore_index: Optional[int] = None,
        on_invalid: str = 'ignore',
        **arguments: Any,
    ) -> None:
        super().__init__()
        self.on_invalid = check_on_invalid(on_invalid)
        self.num_classes = None if num_classes is None else check_num_classes(num_classes)
        self._own_ignore_index = None if ignore_index is None else check_int('ignore_index', ignore_index)
        if isinstance(loss, nn.Module):
            if arguments:
                raise TypeError(
                    f'{", ".join(arguments)}: the loss is already built ({type(loss).__name__}) and does not take '
                    'more arguments. Pass the arguments to the loss, or pass its type instead'
                )
            self._hold(loss)
        else:
            self._hold(self._build(loss, arguments))
        if ignore_index == getattr(self.loss, 'ignore_index', None):
            self._own_ignore_index = None  # read from the loss and set there
        self.guard = build_guard(self.loss)
        parameters = inspect.signature(self.loss.forward).parameters
        names = list(parameters)
        #: Names of the loss's arguments from ``ignore_index`` on, and the number of arguments between label and these.
        self._named = names[names.index('ignore_index') :] if 'ignore_index' in names[2:] else []
        self._unnamed = len(names) - len(self._named) - 2
        self._accepts_any = any(p.kind is inspect.Parameter.VAR_KEYWORD for p in parameters.values())
        self._accepts = set(parameters)
        self._delegate_attributes()

    def _hold(self, loss: nn.Module) -> None:
        """Set the loss as an attribute, not as a child module, and share its parameters, buffers and modules.

        Their names in a ``state_dict`` are then those of the stock loss, so that checkpoints load in both directions:
        some losses accumulate state (SeesawLoss, EQLV2Loss, GHMC).
        """
        self.__dict__['loss'] = loss
        for held in ('_parameters', '_buffers', '_modules', '_non_persistent_buffers_set'):
            self.__dict__[held] = loss.__dict__[held]

    def train(self, mode: bool = True) -> GuardedLossBase:
        self.loss.train(mode)
        self.training = mode
        return self

    def _apply(self, fn: Callable[[Tensor], Tensor], *args: Any, **kwargs: Any) -> GuardedLossBase:
        self.loss._apply(fn, *args, **kwargs)
        return self

    def __setstate__(self, state: Dict[str, Any]) -> None:
        super().__setstate__(state)
        self._delegate_attributes()

    def _delegate_attributes(self) -> None:
        """Add properties that read and set the attributes of the loss.

        They are properties of the class because torch 2.1 cannot compile a module with its own ``__setattr__``.
        """
        held = {**vars(self.loss), **self.loss._buffers, **self.loss._parameters}
        properties = (name for name, value in inspect.getmembers(type(self.loss)) if isinstance(value, property))
        for name in {*held, *properties} - set(vars(self)):
            if not hasattr(GuardedLossBase, name):
                setattr(GuardedLossBase, name, _delegate(name))

    def _build(self, loss: Union[str, type, Dict[str, Any]], arguments: Dict[str, Any]) -> nn.Module:
        from mmengine.registry import MODELS

        is_nested = isinstance(loss, dict)
        config = merge_arguments(loss, arguments) if isinstance(loss, dict) else {'type': loss, **arguments}
        if is_nested and self.heads_read_config and config.get('use_sigmoid') and 'use_sigmoid' not in arguments:
            raise ValueError(
                "mmdet's heads ignore use_sigmoid=True inside loss=dict(...) and would create one channel too many. "
                'Move all arguments of the loss up: '
                f"dict(type='GuardedLoss', loss={config.get('type')!r}, use_sigmoid=True, ...)"
            )
        if self.scope is not None:
            config.setdefault('_scope_', self.scope)
        if self.heads_read_config or not is_nested:
            with MODELS.switch_scope_and_registry(config.get('_scope_')) as registry:
                built = registry.get(config['type']) if isinstance(config['type'], str) else config['type']
            for name in ('num_classes', 'ignore_index'):
                own = getattr(self, name if name == 'num_classes' else '_own_ignore_index')
                if own is not None and inspect.isclass(built) and name in inspect.signature(built).parameters:
                    config.setdefault(name, own)
        try:
            return MODELS.build(config)
        except (TypeError, ValueError, AssertionError) as error:  # the message may not say what is wrong in the config
            given = ', '.join(f'{name}={shorten(value)}' for name, value in arguments.items())
            hint = f'. Given: {given}; arguments of a base config stay unless _delete_=True removes them'
            text = str(error).rstrip('.') + (hint if given else '')
            raise type(error)(f'{type(self).__name__}: {text}') from error

    @property
    def ignore_index(self) -> Optional[int]:
        """The label to ignore: the argument of the guard, else that of the loss, or ``None`` if neither is set."""
        own = self._own_ignore_index
        return getattr(self.loss, 'ignore_index', None) if own is None else own

    @ignore_index.setter
    def ignore_index(self, ignore_index: Optional[int]) -> None:
        ignore_index = None if ignore_index is None else check_int('ignore_index', ignore_index)
        if self._own_ignore_index is None and hasattr(self.loss, 'ignore_index'):
            self.loss.ignore_index = ignore_index  # type: ignore[assignment]
        else:
            self._own_ignore_index = ignore_index

    def forward(
        self, pred: Tensor, label: Any, *args: Any, ignore_index: Optional[int] = None, **kwargs: Any
    ) -> Result:
        r"""Call the loss with sanitized labels.

        ``label`` holds class indices (N, \*) of an integer dtype, or another target of the loss: a pair of labels and
        qualities, or dense targets, which pass through because they are not used as indices. One of ``args`` may be the
        ``ignore_index``, if the loss accepts it; keywords that are ``None`` and unknown to the loss are left out.

        Raises:
            ValueError, TypeError: Shapes or dtypes that do not fit.
            LabelGuardError: A label is invalid, and ``on_invalid`` is ``'raise'``.
        """
        if self._named and len(args) > self._unnamed:
            kwargs.update(zip(self._named, args[self._unnamed :]))
            ignore_index, args = kwargs.pop('ignore_index'), args[: self._unnamed]
        kwargs = {k: v for k, v in kwargs.items() if v is not None or self._accepts_any or k in self._accepts}
        if self.guard.is_dense(pred, label):
            if ignore_index is not None and 'ignore_index' in self._accepts:
                kwargs['ignore_index'] = ignore_index
            return map_parts(self.loss(pred, label, *args, **kwargs), lambda loss: _attach(loss, pred))
        label, others = self.guard.split_target(label)
        self.guard.check(pred, label, *others)
        num_classes = self._num_classes(pred)
        if ignore_index is None:
            own = self._own_ignore_index
            ignore_index = self.guard.ignore_index if own is None else own
        try:
            sanitized = sanitize_target(label, num_classes, ignore_index, self.on_invalid, self.guard.background)
        except LabelGuardError as error:
            raise self._add_source(error, label) from None
        loss = self.guard(self.guard.blank_scores(pred, sanitized), sanitized, num_classes, *others, *args, **kwargs)
        self._record(sanitized.valid, label.numel())
        # The mean of nothing is NaN in some losses, 1 or a detached 0 in others.
        nothing = ~sanitized.keep.any()
        return map_parts(loss, lambda part: _attach(part.masked_fill(nothing, 0), pred))

    def _num_classes(self, pred: Tensor) -> int:
        of_scores = self.guard.num_classes(pred)
        if self.num_classes is None:
            return of_scores
        if self.guard.background and self.num_classes != of_scores:
            raise ValueError(
                f'num_classes={self.num_classes}, but scores of shape {format_shape(pred)} distinguish {of_scores} '
                f'classes, and label {of_scores} is the background. Set num_classes of GuardedLoss to that of the '
                f'head, or leave it out'
            )
        if self.num_classes > of_scores:
            raise ValueError(
                f'num_classes={self.num_classes}, but scores of shape {format_shape(pred)} distinguish {of_scores} '
                f'classes: label {of_scores} would crash the loss. Set num_classes of GuardedLoss to that of the head'
            )
        return self.num_classes

    @property  # type: ignore[misc]
    def __class__(self) -> type:  # type: ignore[override]
        loss = self.__dict__.get('loss')
        return type(self) if loss is None else type(loss)

    def __reduce_ex__(self, protocol: Any) -> Tuple[Any, ...]:
        return _make_blank, (type(self),), self.__dict__  # pickle would use __class__

    def _get_name(self) -> str:
        return type(self).__name__

    def __getattr__(self, name: str) -> Any:
        try:
            return super().__getattr__(name)
        except AttributeError:
            if name == 'loss' or name.startswith('__'):
                raise
            return getattr(self.loss, name)

    def extra_repr(self) -> str:
        own = f'num_classes={self.num_classes}, ignore_index={self.ignore_index}, on_invalid={self.on_invalid!r}'
        return f'{type(self.loss).__name__}, {own}'


def merge_arguments(loss: Dict[str, Any], arguments: Dict[str, Any]) -> Dict[str, Any]:
    """Merge ``loss=dict(...)`` with the arguments next to it; raise ValueError if the two set different values."""
    twice = [name for name in arguments if name in loss and not _is_same(loss[name], arguments[name])]
    if twice:
        both = ', '.join(f'{name}={loss[name]!r} and {name}={arguments[name]!r}' for name in twice)
        raise ValueError(f'GuardedLoss: given twice, in loss=dict(...) and next to it, with different values: {both}')
    return {**loss, **arguments}


def _is_same(first: Any, second: Any) -> bool:
    try:
        return bool(first == second)
    except (ValueError, RuntimeError):  # arrays and tensors compare by element
        return bool((first == second).all())


def map_parts(loss: Result, change: Callable[[Tensor], Tensor]) -> Result:
    """Apply ``change`` to the value of a loss, or to each part if the loss returns a dict."""
    return {name: change(part) for name, part in loss.items()} if isinstance(loss, dict) else change(loss)


def _attach(loss: Tensor, pred: Tensor) -> Tensor:
    """Attach a loss to the graph of the scores, because DistributedDataParallel hangs if no gradient arrives."""
    if loss.requires_grad or not pred.requires_grad:
        return loss
    return loss + pred[:0].sum()  # the sum of nothing is exactly 0, whatever the scores hold


def _delegate(name: str) -> property:
    return property(lambda guard: getattr(guard.loss, name), lambda guard, value: setattr(guard.loss, name, value))


def _make_blank(cls: Type[nn.Module]) -> nn.Module:
    return cls.__new__(cls)


#: Errors about arguments show the name that a config uses.
GuardedLossBase.__init__.__qualname__ = 'GuardedLoss.__init__'


class RootGuardedLoss(GuardedLossBase):
    """:class:`GuardedLossBase` that builds the inner loss in the default scope of the run."""


def build_guarded_losses(scope: str, base: Type[GuardedLossBase], module: str) -> Dict[str, type]:
    """Return {name: class} with a class ``GuardedX`` for each loss X of a framework, without importing the framework.

    ``GuardedX(**arguments)`` is ``base('X', **arguments)``: it takes the arguments of X, and ``num_classes``,
    ``ignore_index`` and ``on_invalid`` of the guard. If a loss cannot be guarded, instantiating its class raises an
    error that says why. Losses with their own guarded class are left out. ``pickle`` finds the classes in ``module``.
    """
    found: Dict[str, type] = {}
    for full_name in (*GUARD_BY_NAME, *REASONS):
        package, _, stock = full_name.partition('.')
        reason = REASONS.get(full_name)
        if package != scope or reason is USE_OWN_CLASS_REASON:
            continue
        make = _make_guarded(stock, base) if reason is None else _make_refused(stock, reason)
        doc = f"Guarded version of {scope}'s {stock}; see :class:`GuardedLoss`." if reason is None else reason
        made = type(f'Guarded{stock}', (make,), {'__module__': module, '__doc__': doc})
        found[made.__name__] = made
    return found


def _make_guarded(stock: str, base: Type[GuardedLossBase]) -> type:
    class Guarded(base):  # type: ignore[valid-type, misc]
        def __init__(self, **arguments: Any) -> None:
            try:
                super().__init__(stock, **arguments)
            except (TypeError, ValueError, AssertionError) as error:
                if str(error).startswith(f'Guarded{stock}'):
                    raise
                raise type(error)(f'Guarded{stock}: {error}') from error

    return Guarded


def _make_refused(stock: str, reason: str) -> type:
    class Refused(nn.Module):
        def __init__(self, **arguments: Any) -> NoReturn:
            raise TypeError(f'Guarded{stock}: {reason}')

    return Refused
