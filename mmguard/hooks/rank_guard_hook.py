"""Hook that keeps ranks in step."""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from typing import Any, Dict, Iterable, Iterator, List, Optional, Sequence, Tuple

from mmengine import dist
from torch import nn

from mmguard.compat.torch_names import exclude_from_compile
from mmguard.distributed.agreement import TIMEOUT, LossAgreement, RankLosses, check_arguments
from mmguard.distributed.loss_structure import find_nonfinite
from mmguard.distributed.unused_parameters import explain_error
from mmguard.hooks.discovery import dataset_of, naming_roots_of, samples_of, unwrap
from mmguard.hooks.runs import HookAroundTraining, run_log_of, train_place, warn_of_problems
from mmguard.labels.samples import relative_to, source_of
from mmguard.labels.space import check_int
from mmguard.labels.tally import LabelGuardError
from mmguard.log.messages import describe_filled, describe_nonfinite, list_names
from mmguard.text import quantity


class RankGuardHook(HookAroundTraining):
    """Keep ranks in step: losses that only some of them have, and losses that are not finite.

    Before backward the ranks agree on their losses (:class:`~mmguard.distributed.LossAgreement`, 24 bytes of each rank,
    from host to host; no GPU waits). What a rank lacks becomes a zero that depends on all trainable parameters, so that
    DistributedDataParallel with ``find_unused_parameters=False`` sees the same parameters everywhere. Rank 0 reports
    which rank lacked what, on the console and in ``label_guard.jsonl``. A rank that ends by an error notifies the
    others, which then do not wait for it. On one GPU only the checks for finite losses remain.

    Args:
        on_mismatch (str): ``'fill'`` (default) as above, or ``'raise'``: every rank raises the same ``LabelGuardError``
            that says which rank lacks which loss and which samples it had.
        on_nonfinite (str): ``'keep'`` (default): losses are not checked. ``'skip'``: if a loss of any rank is not
            finite, all ranks skip the iteration: parameters, buffers, optimizer state, gradient scaler, schedulers and
            the average of the weights (``EMAHook``) stay as they were. ``'raise'``. The last two wait for the device
            once per iteration.
        check_interval (int): Check every so many iterations; those in between are not protected.
        timeout (float): Seconds after which an absent rank is named, by ``AbsentRankError``.
        max_skipped (int): Number of iterations in a row that may be skipped; one more stops the run.
        grad_report (bool): After backward, look for gradients that are not finite and name the parameters (those
            nearest to the loss first). Waits for the device.
        expected (Sequence[str]): Losses that the model has with targets, in case the first batches of all ranks have
            no targets. Without it, parameters that no loss reaches then get zeros.

    Raises:
        ValueError, TypeError: An argument out of range.
        LabelGuardError: While training, see above.
    """

    priority = 'VERY_LOW'

    def __init__(
        self,
        on_mismatch: str = 'fill',
        on_nonfinite: str = 'keep',
        check_interval: int = 1,
        timeout: float = TIMEOUT,
        max_skipped: int = 10,
        grad_report: bool = False,
        expected: Sequence[str] = (),
    ) -> None:
        check_arguments(on_mismatch, on_nonfinite, expected)
        if not timeout > 0:
            raise ValueError(f'timeout must be more than 0 seconds, got {timeout}')
        self.on_mismatch = on_mismatch
        self.on_nonfinite = on_nonfinite
        self.check_interval = check_int('check_interval', check_interval, at_least=1)
        self.timeout = timeout
        self.max_skipped = check_int('max_skipped', max_skipped, at_least=0)
        self.grad_report = grad_report
        self.expected = list(expected)
        self._agreement: Optional[LossAgreement] = None
        self._samples: List[str] = []
        self._roots: List[str] = []
        self._undo, self._held = ExitStack(), ExitStack()
        self._skipped = self._in_a_row = 0
        self._place: Dict[str, int] = {}

    # ---- mmengine calls

    @contextmanager
    def around_training(self, runner: Any) -> Iterator[None]:
        try:
            yield
        except BaseException as error:  # any end of training: loading, a step, validation, Ctrl-C
            if self._agreement is not None:
                self._agreement.leave(f'{type(error).__name__}: {error}')
            raise
        finally:
            self._held.close()
            self._undo.close()
            run_log_of(runner).write()

    def before_train(self, runner: Any) -> None:
        self._roots = naming_roots_of(dataset_of(runner, 'train'))
        warn = runner.logger.warning
        self._agreement = LossAgreement(
            runner.model, None, self.on_mismatch, self.on_nonfinite, self.timeout, self.expected, warn
        )
        model: Any = unwrap(runner.model)
        parse_losses, train_step = model.parse_losses, runner.model.train_step

        def parse_agreed_losses(losses: Any) -> Any:
            return parse_losses(self._agree(runner, losses))

        def train_or_skip(data: Any, optim_wrapper: Any) -> Any:
            # Forward changes running means before a loss is computed.
            buffers = [(one, one.clone()) for one in model.buffers()] if self.on_nonfinite == 'skip' else []
            try:
                return train_step(data, optim_wrapper)
            except _Skip:
                for buffer, before in buffers:
                    buffer.copy_(before)
                for owner, name in _find_iteration_counters(runner):
                    _replace_method(self._held, owner, name, lambda *_, **__: None)
                return {}
            except RuntimeError as error:
                explanation = explain_error(error, model)
                if not explanation:
                    raise
                raise RuntimeError(explanation) from error

        # Backward follows in the same call, so these methods have to be replaced.
        _replace_method(self._undo, model, 'parse_losses', exclude_from_compile(parse_agreed_losses))
        _replace_method(self._undo, runner.model, 'train_step', train_or_skip)
        if self.grad_report:
            self._watch_gradients(runner, model)

    def before_train_iter(self, runner: Any, batch_idx: int, data_batch: Any = None) -> None:
        self._held.close()  # not earlier: a hook that reads the losses may come after this one
        self._samples = [relative_to(source_of(sample), self._roots) for sample in samples_of(data_batch)]
        self._place = train_place(runner, batch_idx)

    def after_train_iter(
        self, runner: Any, batch_idx: int, data_batch: Any = None, outputs: Optional[dict] = None
    ) -> None:
        if self.on_nonfinite == 'skip':
            runner.message_hub.update_scalar('train/guard/skipped_iterations', self._skipped)

    def after_train(self, runner: Any) -> None:
        log = run_log_of(runner)
        if 'train' in log.loops:
            log.end('train')

    # ---- what happens between forward and backward

    def _agree(self, runner: Any, losses: Dict[str, Any]) -> Dict[str, Any]:
        assert self._agreement is not None
        if runner.iter % self.check_interval:
            return losses
        agreed = self._agreement(losses, self._samples)
        if agreed.filled:
            self._keep(runner, agreed.filled)
            self._agreement.report(f'guard: iter {runner.iter + 1}: {describe_filled(agreed.filled)}')
        if not agreed.skip:
            self._in_a_row = 0
            return agreed.losses
        self._skipped += 1
        self._in_a_row += 1
        reports = describe_nonfinite(agreed.nonfinite)
        runner.logger.warning(f'guard: iter {runner.iter + 1} skipped, losses that are not finite: {reports}')
        if self._in_a_row > self.max_skipped:
            raise LabelGuardError(
                f'{quantity(self._in_a_row, "iteration")} in a row with losses that are not finite, more than '
                f'max_skipped={self.max_skipped}. The last: {reports}. Lower the learning rate, clip gradients, or '
                f'look at these samples'
            )
        raise _Skip

    def _keep(self, runner: Any, filled: Sequence[RankLosses]) -> None:
        """Record in the run's log, on rank 0, what any rank lacked."""
        if dist.get_rank() == 0:
            run_log_of(runner).fill('train', self._place, filled)
            warn_of_problems(runner)

    def _watch_gradients(self, runner: Any, model: Any) -> None:
        wrapper = runner.optim_wrapper
        step = wrapper.step
        arrived = _record_arrivals(model, self._undo)

        def check_and_step(*args: Any, **kwargs: Any) -> None:
            names = find_nonfinite_gradients(model, arrived)
            arrived.clear()
            if names:
                runner.logger.warning(
                    f'guard: iter {runner.iter + 1}: gradients of {len(names)} parameters are not finite, nearest '
                    f'to the loss: {", ".join(names[:5])} (samples: {list_names(self._samples)})'
                )
            step(*args, **kwargs)

        _replace_method(self._undo, wrapper, 'step', check_and_step)


class _Skip(Exception):
    """Raised to leave the training step before backward."""


def _replace_method(undo: ExitStack, owner: Any, name: str, method: Any) -> None:
    """Replace a method until ``undo`` is closed."""
    if name in vars(owner):  # a compiled step, another hook's
        undo.callback(setattr, owner, name, vars(owner)[name])
    else:
        undo.callback(delattr, owner, name)  # reveals the method of the class
    setattr(owner, name, method)


def _find_iteration_counters(runner: Any) -> Iterator[Tuple[Any, str]]:
    """Find the methods by which other hooks would count a skipped iteration."""
    for hook in runner.hooks:
        if getattr(hook, 'ema_model', None) is not None:
            yield hook.ema_model, 'update_parameters'  # would count this iteration's unchanged weights again
        # Schedules must not step, and CheckInvalidLossHook would get no loss.
        names = [base.__name__ for base in type(hook).__mro__]
        if 'ParamSchedulerHook' in names or 'CheckInvalidLossHook' in names:
            yield hook, 'after_train_iter'


def _record_arrivals(model: nn.Module, undo: ExitStack) -> Dict[str, None]:
    """Register hooks that collect parameter names in the order in which backward reaches them."""
    arrived: Dict[str, None] = {}
    for name, parameter in model.named_parameters():
        if parameter.requires_grad and hasattr(parameter, 'register_post_accumulate_grad_hook'):  # torch >= 2.1
            hook = parameter.register_post_accumulate_grad_hook(lambda _, name=name: arrived.setdefault(name))
            undo.callback(hook.remove)
    return arrived


def find_nonfinite_gradients(model: nn.Module, arrived: Iterable[str] = ()) -> List[str]:
    """Find parameters whose gradient is not finite, in the order of backward: those nearest to the loss first.

    Args:
        model (nn.Module): After backward.
        arrived (Iterable[str]): Names in the order in which backward reached them; others come last, the last
            registered of them first.
    """
    graded = [(name, parameter.grad) for name, parameter in model.named_parameters() if parameter.grad is not None]
    names = find_nonfinite(graded)[::-1]
    place = {name: number for number, name in enumerate(arrived)}
    return sorted(names, key=lambda name: place.get(name, len(place)))
