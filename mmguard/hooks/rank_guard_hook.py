"""The hook that keeps ranks in step."""

from __future__ import annotations

from typing import Any, Dict, Iterable, Iterator, List, Optional

import torch
from mmengine import dist
from mmengine.hooks import Hook
from torch import nn

from mmguard.distributed.agreement import TIMEOUT, LossAgreement, check_words, describe_nonfinite
from mmguard.errors import LabelGuardError
from mmguard.hooks.discovery import built_train_loop, data_roots_of, samples_of, unwrapped
from mmguard.labels import check_int
from mmguard.log.source import relative_to, source_of
from mmguard.torch_compat import not_compiled


class RankGuardHook(Hook):
    """Keeps ranks in step: losses that only some of them have, and losses that are not finite.

    Before backward the ranks agree on their losses (:class:`~mmguard.distributed.LossAgreement`, 8 bytes of each rank,
    from host to host; no GPU waits). What a rank lacks becomes a zero that hangs on every trainable parameter, so that
    DistributedDataParallel with ``find_unused_parameters=False`` sees the same parameters everywhere. A rank that ends
    by an error says so to the others, which then do not wait for it. On one GPU only the checks for finite losses are
    left.

    Args:
        on_mismatch (str): ``'fill'`` (default) as above, or ``'raise'``: every rank raises the same ``LabelGuardError``
            that says which rank lacks which loss and which samples it had.
        on_nonfinite (str): ``'keep'`` (default): losses are not looked at. ``'skip'``: where a loss of any rank is not
            finite, all ranks leave the iteration out: parameters, buffers, optimizer state, gradient scaler, schedulers
            and the average of the weights (``EMAHook``) are as if it had not been. ``'raise'``. The last two wait for
            the device once per iteration.
        check_interval (int): Check every so many iterations; those between are as unprotected as without the hook.
        timeout (float): Seconds after which a rank that does not come is named, by ``AbsentRankError``.
        max_skipped (int): So many iterations in a row may be skipped; one more stops the run.
        grad_report (bool): After backward, look for gradients that are not finite and name the parameters (those
            nearest to the loss first). Waits for the device.

    Raises:
        ValueError, TypeError: An argument out of range.
        LabelGuardError: While training, see above.
    """

    # Behind the schedulers' hook, so that it can undo their step for an iteration that was skipped.
    priority = 'VERY_LOW'

    def __init__(
        self,
        on_mismatch: str = 'fill',
        on_nonfinite: str = 'keep',
        check_interval: int = 1,
        timeout: float = TIMEOUT,
        max_skipped: int = 10,
        grad_report: bool = False,
    ) -> None:
        check_words(on_mismatch, on_nonfinite)
        if check_int('check_interval', check_interval) < 1:
            raise ValueError(f'check_interval must be at least 1, got {check_interval}')
        if not timeout > 0:
            raise ValueError(f'timeout must be more than 0 seconds, got {timeout}')
        if check_int('max_skipped', max_skipped) < 0:
            raise ValueError(f'max_skipped must be at least 0, got {max_skipped}')
        self.on_mismatch = on_mismatch
        self.on_nonfinite = on_nonfinite
        self.check_interval = check_interval
        self.timeout = timeout
        self.max_skipped = max_skipped
        self.grad_report = grad_report
        self._agreement: Optional[LossAgreement] = None
        self._samples: List[str] = []
        self._roots: List[str] = []
        self._restore: List[Any] = []
        self._held_averages: List[Any] = []
        self._undo: List[Any] = []
        self._skipped = self._in_a_row = 0
        self._iteration = 0
        self._filled_before = False

    # ---- mmengine calls

    def before_run(self, runner: Any) -> None:
        loop = built_train_loop(runner)
        if loop is None:  # only validation runs
            return
        run = loop.run

        def run_or_say_why() -> Any:
            try:
                return run()
            except BaseException as error:  # whatever ends it: loading, a step, validation, Ctrl-C
                if self._agreement is not None:
                    self._agreement.leave(f'{type(error).__name__}: {error}')
                raise
            finally:
                self._put_back()

        loop.run = run_or_say_why

    def before_train(self, runner: Any) -> None:
        self._roots = list(data_roots_of(getattr(runner.train_dataloader, 'dataset', None)))
        self._agreement = LossAgreement(runner.model, None, self.on_mismatch, self.on_nonfinite, self.timeout)
        model: Any = unwrapped(runner.model)
        parse_losses, train_step = model.parse_losses, runner.model.train_step

        def parse_agreed_losses(losses: Any) -> Any:
            return parse_losses(self._agreed(runner, losses))

        def train_or_skip(data: Any, optim_wrapper: Any) -> Any:
            buffers = _copied_buffers(model) if self.on_nonfinite == 'skip' else []
            try:
                return train_step(data, optim_wrapper)
            except _Skip:
                for buffer, before in buffers:
                    buffer.copy_(before)
                self._restore = _schedules_of(runner)
                self._held_averages = list(self._hold_averages(runner))
                return {}

        # Backward follows directly in the same call, so there is no other place to stand in between.
        self._put_in(model, 'parse_losses', not_compiled(parse_agreed_losses))
        self._put_in(runner.model, 'train_step', train_or_skip)
        if self.grad_report:
            self._watch_gradients(runner, model)

    def before_train_iter(self, runner: Any, batch_idx: int, data_batch: Any = None) -> None:
        self._samples = [relative_to(source_of(sample), self._roots) for sample in samples_of(data_batch)]
        self._iteration = runner.iter

    def after_train_iter(
        self, runner: Any, batch_idx: int, data_batch: Any = None, outputs: Optional[dict] = None
    ) -> None:
        for schedule, state in self._restore:
            load = getattr(schedule, 'load_state_dict', None) or schedule.update  # a scheduler, or a parameter group
            load(state)
        self._restore = []
        for average in self._held_averages:
            del average.update_parameters
        self._held_averages = []
        if self.on_nonfinite == 'skip':
            runner.message_hub.update_scalar('train/guard/skipped_iterations', self._skipped)

    def after_train(self, runner: Any) -> None:
        self._put_back()

    # ---- methods of others

    def _put_in(self, owner: Any, name: str, method: Any) -> None:
        self._undo.append((owner, name, vars(owner).get(name)))
        setattr(owner, name, method)

    def _put_back(self) -> None:
        while self._undo:
            owner, name, before = self._undo.pop()
            if before is None:
                vars(owner).pop(name, None)  # the method of the class is there again
            else:
                setattr(owner, name, before)  # a compiled step, another hook's

    def _hold_averages(self, runner: Any) -> Iterator[Any]:
        """Averages of the weights that would count this iteration's weights, which did not change, once more."""
        for hook in runner.hooks:
            average = getattr(hook, 'ema_model', None)
            if average is not None and 'update_parameters' not in vars(average):
                average.update_parameters = lambda *_, **__: None
                yield average

    # ---- what happens between forward and backward

    def _agreed(self, runner: Any, losses: Dict[str, Any]) -> Dict[str, Any]:
        assert self._agreement is not None
        if self._iteration % self.check_interval:
            return losses
        agreed = self._agreement(losses, self._samples)
        if agreed.filled and not self._filled_before:
            self._filled_before = True
            runner.logger.warning(
                f'guard: iter {self._iteration + 1}: this rank ({dist.get_rank()}) had no gradient for '
                f'{", ".join(agreed.filled)} (samples: {", ".join(self._samples)}); filled with zeros, so that the '
                f'ranks stay in step. Most often a batch without targets. Told once'
            )
        if not agreed.skip:
            self._in_a_row = 0
            return agreed.losses
        self._skipped += 1
        self._in_a_row += 1
        reports = describe_nonfinite(agreed.nonfinite)
        runner.logger.warning(f'guard: iter {self._iteration + 1} skipped, losses that are not finite: {reports}')
        if self._in_a_row > self.max_skipped:
            raise LabelGuardError(
                f'{self._in_a_row} iterations in a row with losses that are not finite, more than '
                f'max_skipped={self.max_skipped}. The last: {reports}. Lower the learning rate, clip gradients, or '
                f'look at these samples'
            )
        raise _Skip

    def _watch_gradients(self, runner: Any, model: Any) -> None:
        wrapper = runner.optim_wrapper
        step = wrapper.step
        arrived = _in_order_of_arrival(model)

        def watched_step(*args: Any, **kwargs: Any) -> None:
            names = nonfinite_gradients(model, arrived)
            arrived.clear()
            if names:
                runner.logger.warning(
                    f'guard: iter {self._iteration + 1}: gradients of {len(names)} parameters are not finite, nearest '
                    f'to the loss: {", ".join(names[:5])} (samples: {", ".join(self._samples)})'
                )
            step(*args, **kwargs)

        self._put_in(wrapper, 'step', watched_step)


class _Skip(Exception):
    """Leaves the training step before backward."""


def _in_order_of_arrival(model: nn.Module) -> Dict[str, None]:
    """The parameters, in the order in which backward reaches them; filled anew by each backward."""
    arrived: Dict[str, None] = {}
    for name, parameter in model.named_parameters():
        if parameter.requires_grad and hasattr(parameter, 'register_post_accumulate_grad_hook'):  # torch >= 2.1
            parameter.register_post_accumulate_grad_hook(lambda _, name=name: arrived.setdefault(name))
    return arrived


def nonfinite_gradients(model: nn.Module, arrived: Iterable[str] = ()) -> List[str]:
    """Parameters whose gradient is not finite, those that backward reached first (nearest to the loss) first.

    Args:
        model (nn.Module): After backward.
        arrived (Iterable[str]): Names in the order in which backward reached them; others come last, those that are
            registered last first.
    """
    graded = [(name, parameter.grad) for name, parameter in model.named_parameters() if parameter.grad is not None]
    if not graded:
        return []
    flags = torch.stack([grad.isfinite().all().to(graded[0][1].device) for _, grad in graded]).tolist()
    names = [name for (name, _), finite in zip(graded, flags) if not finite][::-1]
    place = {name: number for number, name in enumerate(arrived)}
    return sorted(names, key=lambda name: place.get(name, len(place)))


def _copied_buffers(model: nn.Module) -> List[Any]:
    """Buffers (running means) and copies of them: forward has changed them before a loss is seen."""
    return [(buffer, buffer.clone()) for buffer in model.buffers()]


def _schedules_of(runner: Any) -> List[Any]:
    """What the schedulers' hook is about to change, and how it was."""
    schedulers = runner.param_schedulers
    groups = list(schedulers.values()) if isinstance(schedulers, dict) else [schedulers or []]
    optimizer = runner.optim_wrapper.optimizer
    saved = [(scheduler, dict(scheduler.state_dict())) for group in groups for scheduler in group]
    saved += [(group, {k: v for k, v in group.items() if k != 'params'}) for group in optimizer.param_groups]
    return saved
