"""Re-identification of mmdet through its Runner, with people whom the head does not know: stock beside guarded."""

from __future__ import annotations

import copy
import json
import math
from collections import Counter
from pathlib import Path
from typing import Any, Dict, List

import numpy as np
import pytest
import torch
from mmdet.datasets.transforms import PackReIDInputs
from mmdet.models.reid import LinearReIDHead
from mmengine.config import Config
from mmengine.runner import Runner
from small_reid import DRAWN, HEAD_CLASSES, ITERATIONS, PEOPLE, DrawnFiles, identities, make_people, reid_config

from mmguard import GuardClsLabels, LabelGuardError, guard_config
from mmguard.cli import main
from mmguard.labels.tally import tallies_of

IN_A_SAMPLE = DRAWN[0] * DRAWN[1]


def train(config: Config) -> Runner:
    DrawnFiles.drawn = []
    runner = Runner.from_cfg(config)
    runner.train()
    return runner


def lines(work_dir: Path) -> List[Dict[str, Any]]:
    (file,) = work_dir.rglob('label_guard.jsonl')
    return [json.loads(line) for line in file.read_text(encoding='utf-8').splitlines()]


def totals(work_dir: Path) -> Dict[str, Any]:
    (file,) = work_dir.rglob('label_guard.json')
    return json.loads(file.read_text(encoding='utf-8'))['runs'][-1]['modes']['train']['totals']


def logged(runner: Runner, name: str) -> List[float]:
    return [float(value) for value in runner.message_hub.get_scalar(f'train/{name}').data[0]]


def packed(labels: List[int], pack: bool = True) -> Dict[str, Any]:
    """What a triplet sampler hands on: of everything a list."""
    names = [f'{number}.jpg' for number in range(len(labels))]
    lists = dict(img=[np.zeros((4, 2, 3), np.uint8) for _ in labels], img_path=names)
    lists['gt_label'] = [np.array(label, np.int64) for label in labels]
    for key in ('ori_shape', 'img_shape', 'scale', 'scale_factor'):
        lists[key] = [(4, 2) for _ in labels]
    return PackReIDInputs()(lists) if pack else lists


def test_stock_dies_and_guarded_counts_the_images_that_were_drawn(tmp_path: Path) -> None:
    root = make_people(tmp_path / 'data')
    with pytest.raises(IndexError, match='out of bounds'):
        train(reid_config(root, tmp_path / 'stock'))
    runner = train(guard_config(reid_config(root, tmp_path / 'guarded')))
    known = identities(root)
    drawn = [str(Path(path).relative_to(root)) for path in DrawnFiles.drawn]
    assert len(drawn) == ITERATIONS * IN_A_SAMPLE
    wanted = Counter((name, str(known[name])) for name in drawn if known[name] >= HEAD_CLASSES)
    assert {value for _, value in wanted} == {'4', '5'}
    found: Counter = Counter()
    for line in lines(tmp_path / 'guarded'):
        for sample in line['samples']:
            found.update({sample['source']: sample['skipped']})
    assert found == Counter(name for name in drawn if known[name] >= HEAD_CLASSES)
    sums = totals(tmp_path / 'guarded')
    assert (sums['instances']['total'], sums['instances']['skipped']) == (len(drawn), sum(wanted.values()))
    assert all(count['skipped'] == 0 for count in sums['losses'].values()), 'nothing is counted twice'
    assert set(sums['losses']) == {'head.loss_cls', 'head.loss_triplet'}
    for name in ('triplet_loss', 'ce_loss'):
        assert len(logged(runner, name)) == ITERATIONS
        assert all(map(math.isfinite, logged(runner, name)))


def test_valid_identities_train_as_without_guards(tmp_path: Path) -> None:
    root = make_people(tmp_path / 'data')
    stock = train(reid_config(root, tmp_path / 'stock', PEOPLE))
    guarded = train(guard_config(reid_config(root, tmp_path / 'guarded', PEOPLE)))
    assert logged(guarded, 'loss') == pytest.approx(logged(stock, 'loss'), rel=1e-6)
    for name, weight in stock.model.state_dict().items():
        torch.testing.assert_close(guarded.model.state_dict()[name], weight)


def test_guarded_losses_alone_name_the_files(tmp_path: Path) -> None:
    root = make_people(tmp_path / 'data')
    config = guard_config(reid_config(root, tmp_path / 'run'))
    config.train_dataloader.dataset.pipeline.pop()
    train(config)
    known = identities(root)
    (log,) = (tmp_path / 'run').rglob('*.log')
    assert "dict(type='GuardClsLabels', num_classes=4)" in log.read_text(encoding='utf-8'), 'what to write'
    samples = [sample for line in lines(tmp_path / 'run') for sample in line['loss_samples']]
    named = [sample for sample in samples if 'values' in sample]  # one that offends as before has counts alone
    assert named
    assert all(set(sample['values']) == {str(known[sample['source']])} for sample in named)
    assert all(known[sample['source']] >= HEAD_CLASSES for sample in samples)


def head_of(config: Config) -> LinearReIDHead:
    arguments = {key: value for key, value in config.model.head.items() if key != 'type'}
    torch.manual_seed(0)
    return LinearReIDHead(**copy.deepcopy(arguments))


def test_the_losses_of_a_sample_are_those_without_its_invalid_images(tmp_path: Path) -> None:
    """Stock makes one person of all who have no identity; the features are those of all, whatever their labels."""
    config = guard_config(reid_config(tmp_path, tmp_path))
    head = head_of(config)
    head.bn.eval()
    labels = [0, 0, 1, 1, 4, 4, 5, -1]
    features = torch.randn(len(labels), 8, requires_grad=True)
    sample = GuardClsLabels(HEAD_CLASSES)(packed(labels))['data_samples']
    assert sample.gt_label.label.tolist() == [0, 0, 1, 1, -100, -100, -100, -100]
    without = packed(labels[:4])['data_samples']
    losses, wanted = head.loss_by_feat(features, [sample]), head.loss_by_feat(features[:4], [without])
    for name in ('triplet_loss', 'ce_loss'):
        torch.testing.assert_close(losses[name], wanted[name])
    (gradient,) = torch.autograd.grad(losses['triplet_loss'] + losses['ce_loss'], features)
    assert gradient[:4].any()
    assert not gradient[4:].any()


def test_each_image_of_a_sample_has_a_report_and_lists_are_refused() -> None:
    from mmguard.hooks.discovery import samples_of

    twice = GuardClsLabels(3)(GuardClsLabels(3)(packed([2, 7, -1])))
    images = samples_of([twice['data_samples']])
    assert [(image.img_path, tallies_of(image)['instances'].values) for image in images] == [
        ('0.jpg', {}),
        ('1.jpg', {7: 1}),
        ('2.jpg', {-1: 1}),
    ]
    assert [tallies_of(image)['instances'].total for image in images] == [1, 1, 1]
    with pytest.raises(LabelGuardError, match=r'1\.jpg: 1 of 1 labels are invalid: value 7'):
        GuardClsLabels(3, on_invalid='raise')(packed([2, 7]))
    with pytest.raises(ValueError, match=r'0\.jpg: .*Put GuardClsLabels behind PackReIDInputs'):
        GuardClsLabels(3)(packed([2, 7], pack=False))


def test_a_single_image_has_one_report() -> None:
    single = {key: value[0] for key, value in packed([9], pack=False).items()}
    sample = GuardClsLabels(3)(PackReIDInputs()(single))['data_samples']
    assert sample.gt_label.label.tolist() == [-100]
    assert (tallies_of(sample)['instances'].source, tallies_of(sample)['instances'].skipped) == ('0.jpg', 1)


def test_people_of_a_validation_want_no_guard(tmp_path: Path) -> None:
    """They are others than those of the training, and are compared with each other: -100 would be one person."""
    config = reid_config(tmp_path, tmp_path)
    config.val_dataloader = copy.deepcopy(config.train_dataloader)
    config.val_evaluator = dict(type='ReIDMetrics', metric=['mAP', 'CMC'])
    guarded = guard_config(config)
    assert [step.type for step in guarded.train_dataloader.dataset.pipeline][-1] == 'GuardClsLabels'
    assert [step.type for step in guarded.val_dataloader.dataset.pipeline][-1] == 'PackReIDInputs'


def test_trace_follows_a_person(tmp_path: Path, capsys: Any) -> None:
    root = make_people(tmp_path / 'data')
    config = reid_config(root, tmp_path).to_dict()
    config['custom_hooks'] = []
    file = tmp_path / 'config.py'
    file.write_text('\n'.join(f'{key} = {value!r}' for key, value in config.items()), encoding='utf-8')
    assert main(['trace', str(file), '--sample', '20']) == 1
    out = ' '.join(capsys.readouterr().out.split())
    assert 'invalid, at one step or another: 5' in out
    assert 'vanishes' not in out
