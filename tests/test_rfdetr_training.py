"""The callback in a real training of RF-DETR, made small: its data module packs the targets of a batch."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Dict, List

import numpy as np
import pytest
import torch

pytest.importorskip('rfdetr')
pytest.importorskip('PIL.Image')

import pytorch_lightning as pl
from label_files import write
from put_file import put
from rfdetr.config import RFDETRNanoConfig, TrainConfig
from rfdetr.training import RFDETRDataModule, RFDETRModelModule

from mmguard.lightning import LabelGuard

CLASSES, STEPS = 3, 20
#: Number of a training image -> category ids of its annotations that are not classes.
PLANTED: Dict[int, List[int]] = {1: [3], 6: [90, 7], 7: [7], 30: [12]}


def write_coco(folder: Path, split: str, length: int, planted: Dict[int, List[int]]) -> None:
    """Images with one annotation of each class, and the planted ones."""
    images, annotations = [], []
    for number in range(length):
        pixels = np.random.default_rng(number).integers(0, 256, (64, 64, 3), dtype=np.uint8)
        write(folder / f'{split}2017' / f'{number}.jpg', pixels)
        images.append(dict(id=number, file_name=f'{number}.jpg', width=64, height=64))
        for place, label in enumerate([*range(CLASSES), *planted.get(number, [])]):
            box = dict(bbox=[4 + 8 * place, 8, 20, 30], area=600, iscrowd=0)
            annotations.append(dict(id=len(annotations), image_id=number, category_id=label, **box))
    ids = sorted({annotation['category_id'] for annotation in annotations})
    categories = [dict(id=label, name=f'class {label}', supercategory='things') for label in ids]
    content = dict(images=images, annotations=annotations, categories=categories)
    put(folder / 'annotations' / f'instances_{split}2017.json', json.dumps(content))


@pytest.fixture
def configs(tmp_path: Path) -> Any:
    data = tmp_path / 'data'
    write_coco(data, 'train', 2 * STEPS, PLANTED)
    write_coco(data, 'val', 4, {2: [55]})
    model = RFDETRNanoConfig(
        num_classes=CLASSES, pretrain_weights=None, resolution=64, positional_encoding_size=4, num_queries=20,
        num_select=20, group_detr=1, device='cpu',
    )  # fmt: skip
    train = TrainConfig(
        dataset_file='coco', dataset_dir=str(data), output_dir=str(tmp_path / 'out'), batch_size=2, num_workers=0,
        multi_scale=False, expanded_scales=False, tensorboard=False, use_ema=False,
        aug_config={}, accelerator='cpu', compute_val_loss=True,
    )  # fmt: skip
    return model, train


@pytest.mark.slow
def test_counts_of_a_training_are_exact(configs: Any, tmp_path: Path) -> None:
    module, data = RFDETRModelModule(*configs), RFDETRDataModule(*configs)
    trained: List[Any] = []
    module.criterion.register_forward_pre_hook(lambda _, inputs: trained.append(inputs[1]))
    guard = LabelGuard(CLASSES, box_format='cxcywh')
    trainer = pl.Trainer(
        callbacks=[guard], max_epochs=1, accelerator='cpu', default_root_dir=str(tmp_path / 'out'), logger=False,
        enable_progress_bar=False, enable_checkpointing=False, num_sanity_val_steps=0,
    )  # fmt: skip
    trainer.fit(module, data)
    assert len(trained) == STEPS + 2
    labels = torch.cat([target['labels'] for targets in trained for target in targets])
    assert sorted(labels.unique().tolist()) == list(range(CLASSES))
    assert len(labels) == CLASSES * (2 * STEPS + 4), 'every valid label is trained'

    planted = sum(map(len, PLANTED.values()))
    (run,) = json.loads((tmp_path / 'out' / 'label_guard.json').read_text())['runs']
    for mode, skipped, images in (('train', planted, 2 * STEPS), ('val', 1, 4)):
        instances = run['modes'][mode]['totals']['instances']
        assert (instances['skipped'], instances['total']) == (skipped, CLASSES * images + skipped)
    lines = [json.loads(line) for line in (tmp_path / 'out' / 'label_guard.jsonl').read_text().splitlines()]
    found = {
        sample['source']: sample['skipped'] for line in lines if line['mode'] == 'train' for sample in line['samples']
    }
    assert found == {f'image_id {number}': len(ids) for number, ids in PLANTED.items()}
    assert trainer.callback_metrics['guard/skipped_instances'] == planted


@pytest.mark.slow
def test_stock_training_ends_at_the_first_invalid_label(configs: Any) -> None:
    module, data = RFDETRModelModule(*configs), RFDETRDataModule(*configs)
    trainer = pl.Trainer(
        max_epochs=1, accelerator='cpu', logger=False, enable_progress_bar=False, enable_checkpointing=False,
        num_sanity_val_steps=0,
    )  # fmt: skip
    with pytest.raises((IndexError, RuntimeError)):
        trainer.fit(module, data)
