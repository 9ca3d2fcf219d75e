"""A retrieval of mmpretrain: trained on classes, tested on positions in its gallery, which are none."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any, Dict

import pytest
from mmengine.config import Config
from small_cls import cls_config, make_images, name_of
from small_runs import train

from mmguard import guard_config
from mmguard.cli import main

#: Status -> the items of its images, in their order. The head knows two items of three.
ITEMS = {'train': (0, 1, 2, 0), 'query': (0, 1, 2, 3), 'gallery': (0, 1, 2, 3)}
HEAD_CLASSES = 2


def retrieval_config(root: Path, work_dir: Path, head_classes: int = HEAD_CLASSES) -> Config:
    """``image item status`` per line, below two lines of a head, as InShop reads it."""
    make_images(root)
    lines = [f'{item} {status}' for status, items in ITEMS.items() for item in items]
    text = ''.join(f'{name_of(number)} id_{line}\n' for number, line in enumerate(lines))
    (root / 'list.txt').write_text(f'{len(lines)}\nimage_name item_id evaluation_status\n{text}', encoding='utf-8')
    config = cls_config(root, work_dir, validate=True)
    config.train_dataloader.dataset = shop(config.train_dataloader.dataset, 'train')
    config.val_dataloader.dataset = shop(config.val_dataloader.dataset, 'query')
    gallery = {**config.val_dataloader, 'dataset': shop(config.val_dataloader.dataset, 'gallery')}
    config.model = dict(
        type='ImageToImageRetriever',
        image_encoder=[dict(type='LeNet5'), dict(type='GlobalAveragePooling')],
        head=dict(type='ArcFaceClsHead', num_classes=head_classes, in_channels=120, loss=dict(type='CrossEntropyLoss')),
        prototype=gallery,
    )
    config.val_evaluator = dict(type='RetrievalRecall', topk=1)
    config.custom_hooks = [dict(type='PrepareProtoBeforeValLoopHook')]
    return config


def shop(dataset: Any, split: str) -> Dict[str, Any]:
    files = dict(data_root=str(dataset.data_root), data_prefix='images', ann_file='list.txt')
    return dict(type='InShop', split=split, pipeline=dataset.pipeline, **files)


def test_training_is_guarded_and_the_test_as_it_is(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match='Class Index must be less than number of classes'):
        train(retrieval_config(tmp_path / 'data', tmp_path / 'stock'))
    run = train(guard_config(retrieval_config(tmp_path / 'data', tmp_path / 'guarded')))
    assert [sample['source'] for line in run.lines() for sample in line['samples']] == [f'images/{name_of(2)}']
    assert all(math.isfinite(scalars['loss']) for scalars in run.scalars if 'loss' in scalars)
    (recall,) = [scalars['retrieval/Recall@1'] for scalars in run.scalars if 'retrieval/Recall@1' in scalars]
    assert 0 <= recall <= 100


def test_valid_labels_train_and_are_found_as_without_guards(tmp_path: Path) -> None:
    found = []
    for guarded in (False, True):
        config = retrieval_config(tmp_path / 'data', tmp_path / f'guarded{guarded}', 3)
        run = train(guard_config(config) if guarded else config)
        found.append([scalars.get('loss', scalars.get('retrieval/Recall@1')) for scalars in run.scalars])
    assert found[1] == pytest.approx(found[0], rel=1e-5)


def test_a_scan_takes_no_position_for_a_label(tmp_path: Path, capsys: Any) -> None:
    config = retrieval_config(tmp_path / 'data', tmp_path, 3)
    file = tmp_path / 'config.py'
    file.write_text('\n'.join(f'{key} = {value!r}' for key, value in config.to_dict().items()), encoding='utf-8')
    assert main(['scan', str(file)]) == 0
    assert '4 files; 4 instances, 0 of them invalid' in capsys.readouterr().out
