"""Hook that fills in zeros for losses that are missing on some ranks."""

from __future__ import annotations

import re
from contextlib import ExitStack, contextmanager
from typing import Any, Dict, Iterator, List, Optional, Sequence

from mmengine import dist

from mmguard.compat.torch_names import exclude_from_compile
from mmguard.distributed.agreement import TIMEOUT, LossAgreement, RankLosses, list_trainable
from mmguard.hooks.discovery import find_naming_roots, find_samples, get_dataset, unwrap
from mmguard.hooks.runs import HookAroundTraining, get_train_position, run_log_of, warn_of_problems
from mmguard.labels.tally import get_source, make_relative
from mmguard.log.messages import describe_filled


class RankGuardHook(HookAroundTraining):
    """Hook that lets distributed training continue if a loss is missing on some ranks.

    Before backward the ranks agree on their losses (see :class:`~mmguard.distributed.LossAgreement`). If all ranks have
    the same losses, each sends only 24 bytes, from host to host, and no GPU waits. A missing loss becomes a zero that
    depends on all trainable parameters, so that DistributedDataParallel with ``find_unused_parameters=False`` sees the
    same parameters on all ranks. Rank 0 logs which rank lacked which loss (console, ``label_guard.jsonl``). A rank that
    ends with an error notifies the others, so that they do not wait for it. With one rank, nothing is exchanged.

    Args:
        timeout (float): Seconds to wait for a rank, after which ``AbsentRankError`` names it.

    Raises:
        ValueError: ``timeout`` is not positive.
    """

    priority = 'VERY_LOW'

    def __init__(self, timeout: float = TIMEOUT) -> None:
        if not timeout > 0:
            raise ValueError(f'timeout must be more than 0 seconds, got {timeout}')
        self.timeout = timeout
        self._agreement: Optional[LossAgreement] = None
        self._samples: List[str] = []
        self._roots: List[str] = []
        self._undo = ExitStack()
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
            self._undo.close()
            run_log_of(runner).write()

    def before_train(self, runner: Any) -> None:
        self._roots = find_naming_roots(get_dataset(runner, 'train'))
        self._agreement = LossAgreement(runner.model, self.timeout, runner.logger.warning)
        model: Any = unwrap(runner.model)
        parse_losses, train_step = model.parse_losses, runner.model.train_step

        def parse_agreed_losses(losses: Any) -> Any:
            return parse_losses(self._agree(runner, losses))

        def train_or_explain(data: Any, optim_wrapper: Any) -> Any:
            try:
                return train_step(data, optim_wrapper)
            except RuntimeError as error:
                explanation = explain_error(error, model)
                if not explanation:
                    raise
                raise RuntimeError(explanation) from error

        # Backward follows in the same call, so these methods have to be replaced.
        _replace_method(self._undo, model, 'parse_losses', exclude_from_compile(parse_agreed_losses))
        _replace_method(self._undo, runner.model, 'train_step', train_or_explain)

    def before_train_iter(self, runner: Any, batch_idx: int, data_batch: Any = None) -> None:
        self._samples = [make_relative(get_source(sample), self._roots) for sample in find_samples(data_batch)]
        self._place = get_train_position(runner, runner.train_loop, batch_idx)

    def after_train(self, runner: Any) -> None:
        log = run_log_of(runner)
        if 'train' in log.modes:
            log.end('train')

    # ---- what happens between forward and backward

    def _agree(self, runner: Any, losses: Dict[str, Any]) -> Dict[str, Any]:
        assert self._agreement is not None
        agreed = self._agreement(losses, self._samples)
        if agreed.filled:
            self._keep(runner, agreed.filled)
            self._agreement.report(f'guard: iter {runner.iter + 1}: {describe_filled(agreed.filled)}')
        return agreed.losses

    def _keep(self, runner: Any, filled: Sequence[RankLosses]) -> None:
        """Write to the run's log which losses are missing on which ranks; only rank 0 writes."""
        if dist.get_rank() == 0:
            run_log_of(runner).add_filled_losses('train', self._place, filled)
            warn_of_problems(runner)


def _replace_method(undo: ExitStack, owner: Any, name: str, method: Any) -> None:
    """Replace a method until ``undo`` is closed."""
    if name in vars(owner):  # a compiled step, another hook's
        undo.callback(setattr, owner, name, vars(owner)[name])
    else:
        undo.callback(delattr, owner, name)  # reveals the method of the class
    setattr(owner, name, method)


def explain_error(error: Exception, model: Any) -> str:
    """Explain DistributedDataParallel's error about missing gradients, with names; return '' for other errors."""
    if 'Expected to have finished reduction' not in str(error):
        return ''
    names = [name for name, _ in list_trainable(model)]
    numbers = re.search(r'Parameter indices which did not receive grad for rank \d+:([\d ]+)', str(error))
    lacking = [names[int(number)] for number in numbers.group(1).split()] if numbers else []
    return (
        f'{", ".join(lacking) or "some parameters of another rank"} got no gradient in the previous iteration. A '
        'branch that is sometimes unused needs DistributedDataParallel(find_unused_parameters=True); a branch that '
        f'is never used (frozen, dropped) needs requires_grad=False. {error}'
    )
