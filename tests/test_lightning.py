"""The callback in real trainings of Lightning: exact counts, and no invalid label reaches a step."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any, Dict, List, Optional, Tuple

import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from mmguard import LabelGuardError, read_log

pytest.importorskip('lightning')

import lightning.pytorch as pl

from mmguard.lightning import LabelGuard

CLASSES, VOID, STEPS = 5, 255, 20
#: Number of a training image -> invalid values and how many pixels have them.
PLANTED: Dict[int, Dict[int, int]] = {0: {5: 7}, 3: {200: 11, 9: 2}, 21: {254: 1}, 39: {5: 30}}
PLANTED_VAL = {1: {77: 4}}


class Maps(torch.utils.data.Dataset):
    """Images of 16 x 16 pixels with a row of void, and planted values in the last rows."""

    def __init__(self, length: int, planted: Dict[int, Dict[int, int]], as_dict: bool = False) -> None:
        self.length, self.planted, self.as_dict = length, planted, as_dict

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, number: int) -> Any:
        label = torch.arange(256).view(16, 16) % CLASSES
        label[0] = VOID
        place = 256
        for value, count in self.planted.get(number, {}).items():
            label.view(-1)[place - count : place] = value
            place -= count
        image = torch.randn(3, 16, 16, generator=torch.Generator().manual_seed(number))
        return {'image': image, 'mask': label, 'name': f'{number}.png'} if self.as_dict else (image, label)


class SmallUNet(pl.LightningModule):
    """Two levels with a skip connection; its loss fails at an invalid label."""

    def __init__(self) -> None:
        super().__init__()
        self.down, self.inner = nn.Conv2d(3, 8, 3, padding=1), nn.Conv2d(8, 8, 3, stride=2, padding=1)
        self.up, self.head = nn.ConvTranspose2d(8, 8, 2, stride=2), nn.Conv2d(16, CLASSES, 1)
        self.trained: List[Tensor] = []

    def forward(self, image: Tensor) -> Tensor:
        skip = self.down(image).relu()
        return self.head(torch.cat([skip, self.up(self.inner(skip).relu())], 1))

    def step(self, batch: Any) -> Tensor:
        image, label = (batch['image'], batch['mask']) if isinstance(batch, dict) else batch
        self.trained.append(label.clone())
        return cross_entropy(self(image), label, ignore_index=VOID)

    def training_step(self, batch: Any, batch_idx: int) -> Tensor:
        return self.step(batch)

    def validation_step(self, batch: Any, batch_idx: int) -> None:
        self.step(batch)

    def configure_optimizers(self) -> Any:
        return torch.optim.SGD(self.parameters(), 0.01)


def loader(planted: Dict[int, Dict[int, int]], length: int = 2 * STEPS, as_dict: bool = False) -> Any:
    return torch.utils.data.DataLoader(Maps(length, planted, as_dict), batch_size=2)


QUIET: Dict[str, Any] = dict(
    accelerator='cpu', max_epochs=1, logger=False, enable_progress_bar=False, enable_model_summary=False
)


def fit(
    folder: Path, guard: Any, as_dict: bool = False, checkpoint: Optional[str] = None, **options: Any
) -> Tuple[SmallUNet, Any]:
    model = SmallUNet()
    trainer = pl.Trainer(callbacks=[guard], default_root_dir=str(folder), **{**QUIET, **options})
    trainer.fit(model, loader(PLANTED, as_dict=as_dict), loader(PLANTED_VAL, 4, as_dict), ckpt_path=checkpoint)
    return model, trainer


def lines_of(folder: Path) -> List[Dict[str, Any]]:
    return [json.loads(line) for line in (folder / 'label_guard.jsonl').read_text().splitlines()]


def planted_pixels(planted: Dict[int, Dict[int, int]]) -> int:
    return sum(sum(values.values()) for values in planted.values())


@pytest.mark.parametrize('as_dict', [False, True], ids=['tuples', 'dicts'])
def test_counts_are_exact(as_dict: bool, tmp_path: Path) -> None:
    guard = LabelGuard(CLASSES, sources=(lambda batch: batch['name']) if as_dict else None)
    model, trainer = fit(tmp_path, guard, as_dict)
    assert len(model.trained) == STEPS + 2 + 2  # with the sanity check
    assert all(bool(((label < CLASSES) | (label == VOID)).all()) for label in model.trained)

    (run,) = json.loads((tmp_path / 'label_guard.json').read_text())['runs']
    for mode, planted, images in (('train', PLANTED, 2 * STEPS), ('val', PLANTED_VAL, 4)):
        totals = run['modes'][mode]['totals']
        assert (totals['pixels']['skipped'], totals['pixels']['total']) == (planted_pixels(planted), images * 256)
        assert totals['iterations'] == images // 2
        scalar = 'guard/skipped_pixels' if mode == 'train' else 'guard/val/skipped_pixels'
        assert trainer.callback_metrics[scalar] == planted_pixels(planted)
    assert [(line['iter'], line['skipped_pixels']) for line in lines_of(tmp_path) if line['mode'] == 'train'] == [
        (number // 2 + 1, sum(values.values())) for number, values in PLANTED.items()
    ]
    if as_dict:
        assert {file['source']: file['skipped'] for file in read_log(tmp_path).files() if file['mode'] == 'train'} == {
            f'{number}.png': sum(values.values()) for number, values in PLANTED.items()
        }


def test_clean_training_is_that_without_the_callback(tmp_path: Path) -> None:
    """Bit for bit, and the batches are those of the loader."""
    weights = []
    for number, callbacks in enumerate(([LabelGuard(CLASSES)], [])):
        pl.seed_everything(0)
        model = SmallUNet()
        trainer = pl.Trainer(callbacks=callbacks, default_root_dir=str(tmp_path / str(number)), **QUIET)
        trainer.fit(model, loader({}))
        weights.append(torch.cat([weight.detach().view(-1) for weight in model.parameters()]))
    assert torch.equal(*weights)
    assert not (tmp_path / '0' / 'label_guard.jsonl').exists()


def test_training_stops_at_the_ratio_and_keeps_its_log(tmp_path: Path) -> None:
    with pytest.raises(LabelGuardError, match='max_skipped_ratio'):
        fit(tmp_path, LabelGuard(CLASSES, max_skipped_ratio=0.015))
    (run,) = json.loads((tmp_path / 'label_guard.json').read_text())['runs']
    assert run['modes']['train']['totals']['pixels']['skipped'] == 7 + 13  # 20 of the first 1,024
    assert run['modes']['train']['ended']


def test_resumed_training_continues_the_numbers(tmp_path: Path) -> None:
    _, trainer = fit(tmp_path / 'a', LabelGuard(CLASSES))
    trainer.save_checkpoint(tmp_path / 'last.ckpt')
    guard = LabelGuard(CLASSES)
    _, resumed = fit(tmp_path / 'b', guard, checkpoint=str(tmp_path / 'last.ckpt'), max_epochs=2)
    assert guard.totals['train'].iterations == 2 * STEPS
    assert guard.totals['train'].kinds['pixels'].skipped == 2 * planted_pixels(PLANTED)
    train = [line['iter'] for line in lines_of(tmp_path / 'b') if line['mode'] == 'train']
    assert train == [STEPS + number // 2 + 1 for number in PLANTED]
    assert resumed.callback_metrics['guard/skipped_pixels'] == planted_pixels(PLANTED)  # of the second epoch


def test_validation_and_test_by_themselves(tmp_path: Path) -> None:
    guard = LabelGuard(CLASSES, str(tmp_path / 'mine'))
    trainer = pl.Trainer(callbacks=[guard], default_root_dir=str(tmp_path), **QUIET)
    model = SmallUNet()
    trainer.validate(model, loader(PLANTED_VAL, 4))
    trainer.validate(model, loader(PLANTED_VAL, 4))
    assert guard.totals['val'].kinds['pixels'].skipped == 2 * planted_pixels(PLANTED_VAL)
    assert trainer.callback_metrics['guard/val/skipped_pixels'] == planted_pixels(PLANTED_VAL)
    assert [line['iter'] for line in lines_of(tmp_path / 'mine')] == [1, 3]


def test_trainer_is_left_as_it_was(tmp_path: Path) -> None:
    _, trainer = fit(tmp_path, LabelGuard(CLASSES))
    assert 'batch_to_device' not in vars(trainer.strategy)


def test_without_lightning_the_error_says_what_to_install() -> None:
    code = (
        'import sys\n'
        "sys.modules['lightning'] = sys.modules['pytorch_lightning'] = None\n"
        'from mmguard.loops import LabelGuard\n'
        'try:\n    import mmguard.lightning\n'
        'except ImportError as error:\n    print(error)\n'
    )
    shown = subprocess.run([sys.executable, '-c', code], capture_output=True, text=True, check=True).stdout
    assert 'pip install lightning' in shown


@pytest.mark.slow
def test_scalars_are_sums_over_ranks_and_each_rank_has_its_log(tmp_path: Path) -> None:
    guard = LabelGuard(CLASSES, str(tmp_path))
    _, trainer = fit(tmp_path, guard, devices=2, strategy='ddp_spawn', num_sanity_val_steps=0)
    assert trainer.callback_metrics['guard/skipped_pixels'] == planted_pixels(PLANTED)
    skipped: Dict[str, List[int]] = {'train': [], 'val': []}
    for name in ('label_guard.json', 'label_guard.rank1.json'):
        (run,) = json.loads((tmp_path / name).read_text())['runs']
        for mode, found in skipped.items():
            found.append(run['modes'][mode]['totals']['pixels']['skipped'])
    assert sum(skipped['train']) == planted_pixels(PLANTED)  # Lightning shuffles the images among the ranks
    assert skipped['val'] == [0, planted_pixels(PLANTED_VAL)]
