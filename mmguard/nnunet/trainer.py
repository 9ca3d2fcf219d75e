"""Guarded nnU-Net trainer, and a mixin that guards any other trainer."""

from __future__ import annotations

import os
from contextlib import contextmanager
from typing import Any, Dict, Iterator, List, Optional, Tuple

from nnunetv2.training.nnUNetTrainer.nnUNetTrainer import nnUNetTrainer
from torch import distributed as dist
from torch import nn

from mmguard.labels.rules import LabelRule, check_on_invalid, describe_values
from mmguard.labels.tally import LabelGuardError, Tally
from mmguard.log.statistics import Stats, group_tallies
from mmguard.nnunet.case_log import CaseLog
from mmguard.nnunet.label_space import (
    WithIgnoreLabel,
    build_label_rule,
    find_labels_without_output,
    ignore_label_of,
    list_class_names,
    list_valid_labels,
)
from mmguard.nnunet.losses import GuardedLabelLoss, guard_loss
from mmguard.nnunet.transforms import GuardedTransforms, find_case_names, sanitize_batch, take_tallies
from mmguard.text import quantity

#: Environment variable that overrides :attr:`GuardsLabels.on_invalid`.
ON_INVALID = 'MMGUARD_ON_INVALID'


class GuardsLabels:
    """Mixin that guards any trainer that uses nnU-Net's losses.

    List it before the trainer: ``class nnUNetTrainerDA5Guarded(GuardsLabels, nnUNetTrainerDA5)``. Voxels whose label is
    neither declared in ``dataset.json`` nor the ignore label are left out of every loss term and of the pseudo Dice.
    The data loader's workers count them exactly, and the log reports them case by case. On valid labels, value and
    gradient of the loss equal those of the stock loss.

    Attributes:
        on_invalid (str): ``'ignore'`` leaves invalid voxels out, ``'clip'`` clamps their labels into the classes,
            ``'raise'`` ends the training with ``LabelGuardError`` naming cases and values. The environment variable
            ``MMGUARD_ON_INVALID`` overrides it.
    """

    on_invalid = 'ignore'

    # nnU-Net's, declared for type checkers.
    label_manager: Any
    loss: Any
    output_folder: str
    local_rank: int
    current_epoch: int
    num_iterations_per_epoch: int
    plans_manager: Any
    _case_log: Optional[CaseLog] = None
    _iteration = 0

    # ---- what is guarded

    def initialize(self) -> None:
        self.on_invalid = _choose_on_invalid(self.on_invalid)
        super().initialize()  # type: ignore[misc]
        manager = self.label_manager
        declared = '' if manager.ignore_label is None else f', ignored {manager.ignore_label}'
        self._print_line(
            f'guard: valid labels {", ".join(map(str, list_valid_labels(manager)))}{declared}; treatment of '
            f'other labels: on_invalid={self.on_invalid!r}'
        )
        missing = find_labels_without_output(manager)
        if missing:
            self._print_line(
                f'guard: dataset.json declares {", ".join(map(str, missing))}, but the network has '
                f'{manager.num_segmentation_heads} outputs, for 0..{manager.num_segmentation_heads - 1}: voxels of '
                f'these labels are left out. Number the labels without gaps, in dataset.json and in the files'
            )

    def _build_loss(self) -> nn.Module:
        return self.guard_loss(super()._build_loss())  # type: ignore[misc]

    def guard_loss(self, loss: nn.Module) -> nn.Module:
        """Return a loss that leaves invalid voxels out; a trainer with its own loss overrides this method."""
        manager = self.label_manager
        return guard_loss(loss, ignore_label_of(manager), manager.ignore_label is not None, manager.has_regions)

    def get_training_transforms(self, *args: Any, **kwargs: Any) -> GuardedTransforms:
        return GuardedTransforms(super().get_training_transforms(*args, **kwargs), self._build_rule())  # type: ignore[misc]

    def get_validation_transforms(self, *args: Any, **kwargs: Any) -> GuardedTransforms:
        return GuardedTransforms(super().get_validation_transforms(*args, **kwargs), self._build_rule())  # type: ignore[misc]

    def _build_rule(self) -> LabelRule:
        # The trainer raises for 'raise', as it knows the case: a worker's exception would only reach its own log.
        return build_label_rule(self.label_manager, 'ignore' if self.on_invalid == 'raise' else self.on_invalid)

    # ---- the steps

    def train_step(self, batch: dict) -> dict:
        batch, tallies = self._split_batch(batch)
        outputs = super().train_step(batch)  # type: ignore[misc]
        # nnU-Net has already waited for the loss, so reading the counters does not wait.
        self._report('train', batch, tallies)
        return outputs

    def validation_step(self, batch: dict) -> dict:
        batch, tallies = self._split_batch(batch)
        # The pseudo Dice leaves out the ignore label, if there is one.
        with self._ignore_label_declared():
            outputs = super().validation_step(batch)  # type: ignore[misc]
        self._report('val', batch, tallies)
        return outputs

    @contextmanager
    def _ignore_label_declared(self) -> Iterator[None]:
        manager = self.label_manager
        self.label_manager = WithIgnoreLabel(manager, ignore_label_of(manager))
        try:
            yield
        finally:
            self.label_manager = manager

    # ---- what is reported

    def on_train_start(self) -> None:
        super().on_train_start()  # type: ignore[misc]
        if self.current_epoch == 0:  # otherwise an earlier training and its log continue
            self._get_case_log().rename_earlier()

    def on_train_epoch_start(self) -> None:
        super().on_train_epoch_start()  # type: ignore[misc]
        self._iteration = 0

    def on_validation_epoch_start(self) -> None:
        super().on_validation_epoch_start()  # type: ignore[misc]
        self._iteration = 0

    def on_epoch_end(self) -> None:
        self._get_case_log().end_epoch(self.current_epoch)
        super().on_epoch_end()  # type: ignore[misc]

    def on_train_end(self) -> None:
        super().on_train_end()  # type: ignore[misc]
        self._get_case_log().close()

    def _split_batch(self, batch: dict) -> Tuple[dict, Optional[List[Tally]]]:
        """Separate a batch from its tallies; raise on invalid labels if ``on_invalid='raise'``; reset loss counts."""
        batch, tallies = take_tallies(batch)
        if tallies is None and not self.label_manager.has_regions:
            batch, tallies = sanitize_batch(batch, self._build_rule())
        if self.on_invalid == 'raise' and any(tallies or ()):
            raise self._build_error([tally for tally in tallies or () if tally])
        for loss in self._find_counting_losses():
            loss.take_counts()
        return batch, tallies

    def _report(self, mode: str, batch: dict, tallies: Optional[List[Tally]]) -> None:
        self._iteration += 1
        stats = Stats()
        for tally in tallies or ():
            stats.add_image({'pixels': vars(tally)})
        stats.samples = len(batch['data'])
        stats.end_iteration()
        counts = self._read_loss_counts()
        if any(counts.values()):
            stats.add_losses(counts)
            _, found = sanitize_batch(batch, self._build_rule())
            stats.add_loss_samples(group_tallies(pixels=[tally for tally in found if tally]))
            if self.on_invalid == 'raise':
                raise self._build_error(stats.loss_samples['pixels'])
        step = self.current_epoch * self.num_iterations_per_epoch + self._iteration
        trained = step if mode == 'train' else (self.current_epoch + 1) * self.num_iterations_per_epoch
        place = {'iter': self._iteration, 'epoch': self.current_epoch, 'step': trained}
        self._get_case_log().see(mode, place, stats, [case for case in find_case_names(batch) if case is not None])

    def _find_counting_losses(self) -> List[GuardedLabelLoss]:
        parts = self.loss.modules() if isinstance(self.loss, nn.Module) else ()
        return [part for part in parts if isinstance(part, GuardedLabelLoss)]

    def _read_loss_counts(self) -> Dict[str, Tally]:
        """Return {class of the loss: tally} for the voxels that the losses, not the transforms, left out."""
        losses = [(type(loss).__name__, loss.take_counts()) for loss in self._find_counting_losses()]
        return {name: Tally(*counts.tolist()) for name, counts in losses if counts is not None}

    def _get_case_log(self) -> CaseLog:
        if self._case_log is None:
            self._case_log = CaseLog(
                self.output_folder,
                self.local_rank,
                dist.get_world_size() if dist.is_available() and dist.is_initialized() else 1,
                self._build_rule(),
                list_class_names(self.label_manager),
                self._print_line,
                os.path.join(os.environ.get('nnUNet_raw') or '$nnUNet_raw', self.plans_manager.dataset_name),  # noqa: SIM112
            )
        return self._case_log

    def _print_line(self, text: str) -> None:
        # nnU-Net lets the other ranks print, but not write into its log.
        rank = f' (rank {self.local_rank})' if self.local_rank else ''
        self.print_to_log_file(text.replace('guard:', f'guard{rank}:', 1))  # type: ignore[attr-defined]

    def _build_error(self, tallies: List[Tally]) -> LabelGuardError:
        found = '; '.join(f'{t.source}: {t.skipped:,} of {t.total:,}, {describe_values(t.values)}' for t in tallies)
        declared = self.label_manager.ignore_label
        return LabelGuardError(
            f'invalid labels in {quantity(len(tallies), "patch")} of this batch: {found}. Valid labels are '
            f'{", ".join(map(str, list_valid_labels(self.label_manager)))}'
            f'{"" if declared is None else f" and the ignore label {declared}"}. '
            'Correct the label files (or dataset.json) and preprocess again, or train on without these voxels with '
            f'{ON_INVALID}=ignore',
            tallies,
        )


def _choose_on_invalid(on_invalid: str) -> str:
    try:
        return check_on_invalid(os.environ.get(ON_INVALID, on_invalid))
    except ValueError as error:
        if ON_INVALID not in os.environ:
            raise
        raise ValueError(f'{ON_INVALID}={os.environ[ON_INVALID]}: {error}') from error


class nnUNetTrainerGuarded(GuardsLabels, nnUNetTrainer):
    """nnU-Net's default trainer, guarded: ``nnUNetv2_train DATASET CONFIGURATION FOLD -tr nnUNetTrainerGuarded``.

    Writes ``label_guard.jsonl`` and ``label_guard.json`` next to nnU-Net's own log, see :class:`GuardsLabels`.
    """
