"""Callback for Lightning; importing this module imports ``lightning.pytorch`` or ``pytorch_lightning``."""

from __future__ import annotations

import importlib
import sys
from typing import Any, Dict, Optional

from mmguard.log.statistics import SCALARS, Stats
from mmguard.loops import LabelGuard as _LabelGuard

_NAMES = ('lightning.pytorch', 'pytorch_lightning')


def _import_callback() -> Any:
    """Return the ``Callback`` of the Lightning package that is already imported, or else of an installed package."""
    for name in sorted(_NAMES, key=lambda name: name not in sys.modules):
        try:
            return importlib.import_module(name).Callback
        except ImportError:
            continue
    raise ModuleNotFoundError("No module named 'lightning': mmguard.lightning needs it, pip install lightning")


_Callback: Any = _import_callback()

#: {stage of a trainer: mode of the log}; the batches of other stages are not counted.
_MODES = {'train': 'train', 'validate': 'val', 'test': 'test'}


class LabelGuard(_LabelGuard, _Callback):
    """Callback that guards the labels of every training, validation and test batch before it goes to the device.

    It has the arguments of :class:`mmguard.loops.LabelGuard` and writes the same log. ``folder`` defaults to the
    folder of the trainer's logger. After each epoch it logs the epoch's counts, summed over ranks, as
    ``guard/skipped_pixels`` and so on (``guard/val/skipped_pixels`` in validation). The batches of the sanity check are
    guarded, but not counted. ``max_skipped_ratio`` is checked at every training batch, separately on each rank.

    Example:
        >>> guard = LabelGuard(num_classes=19)
        >>> trainer = importlib.import_module('lightning.pytorch').Trainer(callbacks=[guard])  # doctest: +SKIP
    """

    def __init__(self, num_classes: int, folder: Optional[str] = None, **options: Any) -> None:
        super().__init__(num_classes, folder or '', **options)
        #: {mode: counts that were logged last}.
        self._logged: Dict[str, Dict[str, int]] = {}

    def setup(self, trainer: Any, pl_module: Any, stage: str) -> None:
        self.folder = self.folder or trainer.log_dir or trainer.default_root_dir
        strategy = trainer.strategy
        transfer = strategy.batch_to_device

        def guard_and_transfer(batch: Any, *arguments: Any, **options: Any) -> Any:
            stage = trainer.state.stage
            if stage in _MODES:
                batch = self(batch, _MODES[stage])
            elif trainer.sanity_checking:
                batch = self.sanitize(batch)[0]
            return transfer(batch, *arguments, **options)

        strategy.batch_to_device = guard_and_transfer

    def teardown(self, trainer: Any, pl_module: Any, stage: str) -> None:
        vars(trainer.strategy).pop('batch_to_device', None)
        self.close()

    def on_exception(self, trainer: Any, pl_module: Any, exception: BaseException) -> None:
        self.teardown(trainer, pl_module, '')

    def on_train_epoch_end(self, trainer: Any, pl_module: Any) -> None:
        self._log_scalars(pl_module, 'train')

    def on_validation_epoch_end(self, trainer: Any, pl_module: Any) -> None:
        self._log_scalars(pl_module, 'val')

    def on_test_epoch_end(self, trainer: Any, pl_module: Any) -> None:
        self._log_scalars(pl_module, 'test')

    def _log_scalars(self, pl_module: Any, mode: str) -> None:
        """Log the counts since the last call, including zeros, because every rank has to log the same names."""
        if mode not in self.totals:
            return
        totals = self.totals[mode]
        seen = [kind for kind, tally in totals.kinds.items() if tally.total]
        counts = {name: count for name, count in zip(SCALARS, totals.vector()) if name.endswith(tuple(seen))}
        before = self._logged.get(mode, {})
        prefix = 'guard/' if mode == 'train' else f'guard/{mode}/'
        for name, count in counts.items():
            number = float(count - before.get(name, 0))
            pl_module.log(f'{prefix}{name}', number, reduce_fx='sum', sync_dist=True)
        self._logged[mode] = counts

    def state_dict(self) -> Dict[str, Any]:
        return {mode: total.to_json() for mode, total in self.totals.items()}

    def load_state_dict(self, state_dict: Dict[str, Any]) -> None:
        self.totals = {mode: Stats.from_json(record) for mode, record in state_dict.items()}
        for mode, total in self.totals.items():
            self._logged[mode] = dict(zip(SCALARS, total.vector()))
