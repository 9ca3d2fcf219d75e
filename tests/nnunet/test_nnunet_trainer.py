"""nnU-Net really trains on invalid labels: the stock trainer dies, the guarded one goes on and tells."""

from __future__ import annotations

import json
import math
import random
import re
from collections import Counter
from pathlib import Path
from typing import Any, Dict, List

import numpy as np
import pytest
import torch
from nnunetv2.training.nnUNetTrainer.nnUNetTrainer import nnUNetTrainer
from nnunetv2.training.nnUNetTrainer.variants.loss.nnUNetTrainerCELoss import nnUNetTrainerCELoss
from nnunetv2.training.nnUNetTrainer.variants.loss.nnUNetTrainerDiceLoss import (
    nnUNetTrainerDiceCELoss_noSmooth,
    nnUNetTrainerDiceLoss,
)
from nnunetv2.training.nnUNetTrainer.variants.loss.nnUNetTrainerTopkLoss import nnUNetTrainerDiceTopK10Loss
from nnunetv2.training.nnUNetTrainer.variants.network_architecture.nnUNetTrainerNoDeepSupervision import (
    nnUNetTrainerNoDeepSupervision,
)
from nnunetv2.utilities.label_handling.label_handling import LabelManager
from small_nnunet import PLANTED, lines_of, trainer

from mmguard.cli import main
from mmguard.labels.tally import LabelGuardError
from mmguard.nnunet.trainer import GuardsLabels, nnUNetTrainerGuarded

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures('no_results')]

ITERATIONS = 4
CONFIGURATIONS = ('2d', '3d_fullres')
#: Whose labels are invalid where: where 3 is declared as ignored, 7 is left.
INVALID = {'plain': {3, 7}, 'regions': {3, 7}, 'ignoring': {7}, 'ignoring_regions': {7}}


def seed() -> None:
    random.seed(0)
    np.random.seed(0)
    torch.manual_seed(0)


class WithoutRegions(nnUNetTrainer):
    """The stock trainer, with labels in place of the regions made of them."""

    @staticmethod
    def get_training_transforms(*args: Any, **kwargs: Any) -> Any:
        return nnUNetTrainer.get_training_transforms(*args, **{**kwargs, 'regions': None})

    @staticmethod
    def get_validation_transforms(*args: Any, **kwargs: Any) -> Any:
        return nnUNetTrainer.get_validation_transforms(*args, **{**kwargs, 'regions': None})


def raw_batches(folder: Path, configuration: str) -> Dict[str, List[dict]]:
    """The labels that the stock trainer's own loaders bring with this seed: in order, training first."""
    seed()
    stock = trainer(WithoutRegions, folder, configuration, ITERATIONS)
    stock.initialize()
    train, val = stock.get_dataloaders()
    return {mode: [next(loader) for _ in range(ITERATIONS)] for mode, loader in (('train', train), ('val', val))}


def invalid_voxels(batch: dict, invalid: set) -> Counter:
    """(case, value) -> voxels, of raw labels."""
    target = batch['target'][0] if isinstance(batch['target'], list) else batch['target']
    found: Counter = Counter()
    for labels, case in zip(target.numpy(), batch['keys']):
        for value, count in zip(*np.unique(labels, return_counts=True)):
            if int(value) in invalid:
                found[str(case), int(value)] += int(count)
    return found


def reported_voxels(line: dict) -> Counter:
    found: Counter = Counter()
    for sample in line['samples']:
        for value, count in sample['values'].items():
            found[sample['source'], int(value)] += count
    return found


def run(base: Any, folder: Path, configuration: str, **attributes: Any) -> Any:
    seed()
    made = trainer(base, folder, configuration, ITERATIONS, **attributes)
    made.run_training()
    return made


def losses_of(made: Any) -> List[float]:
    return [float(made.logger.get_value(name, step=-1)) for name in ('train_losses', 'val_losses')]


@pytest.mark.parametrize('configuration', CONFIGURATIONS)
@pytest.mark.parametrize('name', list(INVALID))
def test_the_guarded_trainer_finishes_and_tells_every_voxel(
    preprocessed: Dict[str, Path], name: str, configuration: str
) -> None:
    raw = raw_batches(preprocessed[name], configuration)
    expected = {
        (mode, number): found
        for mode, batches in raw.items()
        for number, batch in enumerate(batches, start=1)
        for found in [invalid_voxels(batch, INVALID[name])]
        if found
    }
    assert {case for found in expected.values() for case, _ in found} <= set(PLANTED)
    assert expected, 'the patches of this seed hold nothing invalid: choose another'
    guarded = run(nnUNetTrainerGuarded, preprocessed[name], configuration)
    assert all(map(math.isfinite, losses_of(guarded)))
    lines = lines_of(guarded.output_folder)
    assert {(line['mode'], line['iter']): reported_voxels(line) for line in lines} == expected
    for line in lines:
        assert line['skipped_pixels'] == sum(expected[line['mode'], line['iter']].values())
        assert line['total'] == sum(math.prod(part.shape[1:]) for part in raw['train'][0]['target'][0])
    log = Path(guarded.log_file).read_text()
    first = lines[0]
    where = 'epoch' if first['mode'] == 'train' else 'val epoch'
    assert f'guard: {where} 0 iter {first["iter"]}: {first["skipped_pixels"]:,} of' in log
    assert first['samples'][0]['source'] in log
    assert f'mmguard scan {Path(preprocessed[name]).parents[1] / "raw" / preprocessed[name].name}' in log


@pytest.mark.parametrize('configuration', CONFIGURATIONS)
def test_on_valid_labels_a_training_is_the_stock_one(preprocessed: Dict[str, Path], configuration: str) -> None:
    stock = run(nnUNetTrainer, preprocessed['clean'], configuration)
    guarded = run(nnUNetTrainerGuarded, preprocessed['clean'], configuration)
    for (name, ours), theirs in zip(guarded.network.state_dict().items(), stock.network.state_dict().values()):
        torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-6, msg=name)
    np.testing.assert_allclose(losses_of(guarded), losses_of(stock), rtol=1e-6)
    dice = [made.logger.get_value('dice_per_class_or_region', step=-1) for made in (guarded, stock)]
    np.testing.assert_array_equal(*dice)
    assert lines_of(guarded.output_folder) == []


@pytest.mark.parametrize('name', ['plain', 'ignoring', 'regions', 'ignoring_regions'])
def test_the_pseudo_dice_counts_valid_voxels_alone(preprocessed: Dict[str, Path], name: str) -> None:
    raw = raw_batches(preprocessed[name], '2d')
    seed()
    guarded = trainer(nnUNetTrainerGuarded, preprocessed[name], '2d', ITERATIONS)
    guarded.initialize()
    guarded.set_deep_supervision_enabled(True)
    train, val = guarded.get_dataloaders()
    for _ in range(ITERATIONS):
        next(train)
    batches = [next(val) for _ in range(ITERATIONS)]
    guarded.network.eval()
    regions = [(1, 2), (2,)] if 'regions' in name else [(1,), (2,)]
    seen_invalid = 0
    for batch, unguarded in zip(batches, raw['val']):
        with torch.no_grad():
            output = guarded.network(batch['data'])[0].numpy()
            outputs = guarded.validation_step(batch)
        labels = unguarded['target'][0].numpy()[:, 0]
        valid = labels <= 2
        seen_invalid += int((~valid).sum())
        for channel, region in enumerate(regions):
            predicted = output[:, channel] > 0 if 'regions' in name else output.argmax(1) == region[0]
            there = np.isin(labels, region)
            counts = [(predicted & there & valid), (predicted & ~there & valid), (~predicted & there & valid)]
            for key, count in zip(('tp_hard', 'fp_hard', 'fn_hard'), counts):
                assert outputs[key][channel] == count.sum(), key
    assert seen_invalid


@pytest.mark.parametrize(
    ('base', 'name'),
    [
        (nnUNetTrainerCELoss, 'plain'),
        (nnUNetTrainerDiceLoss, 'ignoring_regions'),  # the stock one does not train with an ignore label at all
        (nnUNetTrainerDiceCELoss_noSmooth, 'regions'),
        (nnUNetTrainerDiceTopK10Loss, 'ignoring'),
        (nnUNetTrainerNoDeepSupervision, 'plain'),
        (nnUNetTrainerNoDeepSupervision, 'regions'),
    ],
)
def test_any_trainer_of_nnunet_can_be_guarded(preprocessed: Dict[str, Path], base: Any, name: str) -> None:
    guarded = type(f'{base.__name__}Guarded', (GuardsLabels, base), {})
    made = run(guarded, preprocessed[name], '3d_fullres')
    assert all(map(math.isfinite, losses_of(made)))
    assert lines_of(made.output_folder)


def test_declared_labels_that_the_network_cannot_learn_are_reported(preprocessed: Dict[str, Path]) -> None:
    made = trainer(nnUNetTrainerGuarded, preprocessed['plain'], '2d')
    made.label_manager = LabelManager({'background': 0, 'organ': 1, 'tumour': 5}, None)
    made.initialize()
    log = Path(made.log_file).read_text()
    assert re.search(r'guard: .*\b0, 1\b', log)
    assert re.search(r'guard: dataset\.json .*\b5\b.*\b3\b.*0\.\.2', log)


def test_raise_names_case_and_values(preprocessed: Dict[str, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv('MMGUARD_ON_INVALID', 'raise')
    with pytest.raises(LabelGuardError, match=r'case_00[13]: \d+ of 4,096\b.*\b[37]\b.*\b0, 1, 2\b') as raised:
        run(nnUNetTrainerGuarded, preprocessed['plain'], '3d_fullres')
    assert {tally.source for tally in raised.value.tallies} <= set(PLANTED)


def test_clip_trains_on_the_nearest_class(preprocessed: Dict[str, Path]) -> None:
    made = run(nnUNetTrainerGuarded, preprocessed['plain'], '3d_fullres', on_invalid='clip')
    lines = lines_of(made.output_folder)
    assert lines
    assert all(line['remapped_pixels'] > 0 and line['skipped_pixels'] == 0 for line in lines)


def test_an_unknown_choice_is_refused_before_anything_is_done(
    preprocessed: Dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv('MMGUARD_ON_INVALID', 'drop')
    with pytest.raises(ValueError, match='MMGUARD_ON_INVALID=drop'):
        run(nnUNetTrainerGuarded, preprocessed['plain'], '2d')


def test_workers_bring_the_counts(preprocessed: Dict[str, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    made = trainer(nnUNetTrainerGuarded, preprocessed['plain'], '3d_fullres', 8)
    monkeypatch.setenv('nnUNet_n_proc_DA', '2')
    made.run_training()
    lines = lines_of(made.output_folder)
    assert {sample['source'] for line in lines for sample in line['samples']} == set(PLANTED)
    for line in lines:
        assert all(PLANTED[case][0] == value for case, value in reported_voxels(line))


class Mislabels:
    """A step of somebody's own, behind nnU-Net's transforms, that spoils labels."""

    def train_step(self, batch: dict) -> dict:
        batch['target'][0][1, 0, 0, 0, :5] = 9
        return super().train_step(batch)  # type: ignore[misc]


def test_labels_spoilt_behind_the_transforms_are_left_out_by_the_loss(preprocessed: Dict[str, Path]) -> None:
    class Spoilt(Mislabels, nnUNetTrainerGuarded):
        pass

    made = run(Spoilt, preprocessed['clean'], '3d_fullres')
    assert all(map(math.isfinite, losses_of(made)))
    lines = lines_of(made.output_folder)
    assert [line['losses'] for line in lines] == [{'GuardedLabelLoss': {'skipped': 5, 'remapped': 0}}] * ITERATIONS
    assert [line['skipped_pixels'] for line in lines] == [0] * ITERATIONS
    assert all(line['loss_samples'][0]['values'] == {'9': 5} for line in lines)
    assert re.search(r'5 of 8,192 .*\b9\b', Path(made.log_file).read_text())


def test_batches_of_another_loader_are_guarded_too(preprocessed: Dict[str, Path]) -> None:
    made = trainer(nnUNetTrainerGuarded, preprocessed['plain'], '3d_fullres')
    made.initialize()
    made.set_deep_supervision_enabled(True)
    batch = raw_batches(preprocessed['plain'], '3d_fullres')['train'][0]
    batch['target'][0][0, 0, 0, 0, :5] = 9
    assert np.isfinite(made.train_step(batch)['loss'])
    with torch.no_grad():
        assert np.isfinite(made.validation_step(batch)['loss'])
    spoilt, case = Counter(), str(batch['keys'][0])
    for line in lines_of(made.output_folder):
        spoilt.update(reported_voxels(line))
    assert spoilt[case, 9] == 10
    assert spoilt == invalid_voxels(batch, {3, 7, 9}) + invalid_voxels(batch, {3, 7, 9})


def test_a_training_from_the_beginning_has_a_log_of_its_own(preprocessed: Dict[str, Path]) -> None:
    first = lines_of(run(nnUNetTrainerGuarded, preprocessed['plain'], '3d_fullres').output_folder)
    again = trainer(nnUNetTrainerGuarded, preprocessed['plain'], '3d_fullres', ITERATIONS)
    seed()
    again.run_training()
    assert len(lines_of(again.output_folder)) < 2 * len(first)
    for name in ('label_guard.jsonl', 'label_guard.json'):
        assert (Path(again.output_folder) / f'{name}.old').is_file()
    continued = trainer(nnUNetTrainerGuarded, preprocessed['plain'], '3d_fullres', ITERATIONS)
    continued.current_epoch, continued.num_epochs = 1, 2
    for name, values in continued.logger.local_logger.my_fantastic_logging.items():
        values.extend(again.logger.get_value(name, step=None))
    before = lines_of(again.output_folder)
    continued.run_training()
    lines = lines_of(again.output_folder)
    assert lines[: len(before)] == before
    assert {line['epoch'] for line in lines[len(before) :]} == {1}
    assert {line['step'] for line in lines[len(before) :] if line['mode'] == 'val'} == {2 * ITERATIONS}


def test_the_record_says_what_was_valid_and_counts_clean_iterations(preprocessed: Dict[str, Path]) -> None:
    made = run(nnUNetTrainerGuarded, preprocessed['clean'], '3d_fullres')
    (record,) = json.loads((Path(made.output_folder) / 'label_guard.json').read_text())['runs']
    train = record['modes']['train']
    assert train['ended']
    assert train['classes'] == list(made.dataset_json['labels'])
    assert train['guards'][0]['num_classes'] == len(train['classes'])
    assert train['guards'][0]['ignore_index'] is None
    totals = train['totals']
    assert (totals['iterations'], totals['offending_iterations']) == (ITERATIONS, 0)
    assert totals['files'] <= len(made.get_dataloaders()[0].data_loader.indices)
    assert totals['files'] >= 1
    assert not lines_of(made.output_folder)
    assert main(['report', str(made.output_folder)]) == 0
