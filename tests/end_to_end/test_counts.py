"""The log of a real run against an independent count of the label files."""

from __future__ import annotations

import copy
import os.path as osp
import re
from pathlib import Path
from typing import Any, Dict, List

import pytest
from small_runs import (
    GUARD,
    LOAD,
    PACK,
    SIZE,
    TRAIN_IMAGES,
    add_loop,
    by_epoch,
    expected_samples,
    tiny_config,
    train,
)

pytestmark = pytest.mark.slow

PIXELS = SIZE * SIZE
LOSS = 'decode_head.loss_decode'


def numbers_in(line: str) -> List[str]:
    return re.findall(r'\d[\d,]*', line)


def expected_lines(root: str, iterations: int, batch_size: int = 2) -> List[Dict[str, Any]]:
    """What the log must say of a run over the training images in order, again and again."""
    images = expected_samples(root, 'gtFine/train')
    assert len(images) == TRAIN_IMAGES
    lines = []
    for number in range(iterations):
        batch = [images[i % TRAIN_IMAGES] for i in range(number * batch_size, (number + 1) * batch_size)]
        line = dict(
            mode='train',
            iter=number + 1,
            skipped_pixels=sum(image['skipped'] for image in batch),
            remapped_pixels=0,
            skipped_instances=0,
            remapped_instances=0,
            total=batch_size * PIXELS,
            samples=[image for image in batch if image['skipped']],
            losses={LOSS: dict(skipped=0, remapped=0)},
        )
        if line['samples']:
            lines.append(line)
    return lines


WORKERS = {
    'in the process': dict(num_workers=0),
    'two, forked': dict(num_workers=2),
    'two, kept': dict(num_workers=2, persistent_workers=True),
    'one, spawned': dict(num_workers=1, multiprocessing_context='spawn'),  # it imports everything anew
}


@pytest.mark.parametrize('loader', WORKERS.values(), ids=WORKERS.keys())
def test_log_equals_an_independent_count_file_by_file(loader: Dict[str, Any], cityscapes: str, work_dir: str) -> None:
    config = tiny_config(cityscapes, work_dir, iters=6)  # one and a half rounds
    config.train_dataloader.update(loader)
    lines = train(config).lines()
    assert lines == expected_lines(cityscapes, 6)
    assert sum(line['skipped_pixels'] for line in lines) > 0


@pytest.mark.parametrize('loader', [dict(num_workers=0), dict(num_workers=2, persistent_workers=True)])
def test_by_epoch_the_lines_carry_the_numbers_of_the_console(
    loader: Dict[str, Any], cityscapes: str, work_dir: str
) -> None:
    config = tiny_config(cityscapes, work_dir)
    by_epoch(config, epochs=2)
    config.train_dataloader.update(loader)
    run = train(config)
    steps = TRAIN_IMAGES // 2
    lines = run.lines()
    places = [(line.pop('epoch'), line.pop('iter'), line.pop('step')) for line in lines]
    assert places == [(step // steps + 1, step % steps + 1, step + 1) for step in range(2 * steps)]
    expected = expected_lines(cityscapes, 2 * steps)
    for line in expected:
        line.pop('iter')
    assert lines == expected
    assert f'Epoch(train) [2][3/{steps}]' in run.log
    assert numbers_in(run.guard_lines[steps + 2])[:5] == ['2', '3', '63', '8,192', '19']


def test_validation_and_test_loops_have_their_own_lines(cityscapes: str, work_dir: str) -> None:
    config = tiny_config(cityscapes, work_dir, iters=4)
    config.train_cfg.val_interval = 2
    add_loop(config, 'val')
    add_loop(config, 'test')
    run = train(config).test()
    (offender,) = [(i, s) for i, s in enumerate(expected_samples(cityscapes, 'gtFine/val'), 1) if s['skipped']]
    number, sample = offender
    counts = dict(
        skipped_pixels=sample['skipped'],
        remapped_pixels=0,
        skipped_instances=0,
        remapped_instances=0,
        total=PIXELS,
        samples=[sample],
        losses={},
    )
    assert run.lines('val') == [dict(mode='val', iter=number, step=step, **counts) for step in (2, 4)]
    assert run.lines('test') == [dict(mode='test', iter=number, **counts)]
    assert run.lines() == expected_lines(cityscapes, 4)  # undisturbed
    said = [numbers_in(line)[:3] for line in run.guard_lines if ' val ' in line]
    assert [str(number), str(sample['skipped']), f'{PIXELS:,}'] in said
    assert run.modes['test']['totals']['pixels']['skipped'] == sample['skipped']


def test_a_run_of_the_test_loop_alone_tells_the_likely_cause(cityscapes: str, work_dir: str) -> None:
    from small_runs import Run

    config = tiny_config(cityscapes, work_dir)
    for name in ('train_dataloader', 'train_cfg', 'optim_wrapper'):
        if name == 'train_dataloader':
            add_loop(config, 'test')
        config[name] = None
    run = Run(config).test()
    assert len(run.lines('test')) == 1
    assert any(re.search(r'\bMG1\d\d\b', text) for text in run.warnings)


# ---- where the guards stand


def test_a_guard_before_the_packing_without_meta_keys_is_reported_once(cityscapes: str, work_dir: str) -> None:
    config = tiny_config(cityscapes, work_dir, pipeline=[*LOAD, GUARD, PACK])
    config.train_cfg.val_interval = 2
    add_loop(config, 'val', [*LOAD, GUARD, PACK])
    run = train(config)
    assert run.lines() == []
    assert run.lines('val') == []
    (warning,) = [text for text in run.warnings if 'meta_keys' in text]
    assert all(name in warning for name in ('GuardSegLabels', 'PackSegInputs', "'label_guard'"))


def test_what_a_label_map_does_is_summed_and_is_no_offence(cityscapes: str, work_dir: str) -> None:
    label_map = dict.fromkeys((19, 24, 25, 26, 33, 200, 254), 255)
    config = tiny_config(cityscapes, work_dir, pipeline=[*LOAD, PACK, dict(GUARD, label_map=label_map)])
    config.custom_hooks[0].max_skipped_ratio = 0.0
    run = train(config)
    mapped = [line['skipped_pixels'] for line in expected_lines(cityscapes, 4)]
    history = run.runner.message_hub.get_scalar('train/guard/mapped_pixels').data[0]
    assert history.tolist() == mapped
    assert not osp.exists(osp.join(run.log_dir, 'label_guard.jsonl'))
    assert run.guard_lines == []
    assert run.warnings == []
    totals = run.modes['train']['totals']
    assert (totals['pixels']['total'], totals['pixels']['mapped'], totals['files']) == (32_768, sum(mapped), 8)


# ---- the losses alone


def loss_only_lines(root: str, iterations: int, losses: Dict[str, str]) -> List[Dict[str, Any]]:
    """``losses``: name -> ``'skipped'`` or ``'remapped'``."""
    lines = expected_lines(root, iterations)
    for line in lines:
        count = line['skipped_pixels']
        line['losses'] = {name: dict(dict(skipped=0, remapped=0), **{change: count}) for name, change in losses.items()}
        line['loss_samples'] = line.pop('samples')
        line.update(skipped_pixels=0, total=0, samples=[])
    return lines


def test_without_a_guard_in_the_pipeline_the_loss_counts_and_the_files_are_named(
    cityscapes: str, work_dir: str
) -> None:
    run = train(tiny_config(cityscapes, work_dir, pipeline=[*LOAD, PACK]))
    assert run.lines() == loss_only_lines(cityscapes, 4, {LOSS: 'skipped'})
    assert run.guard_lines[0].endswith(
        f'{cityscapes}/gtFine/train/aachen/aachen_000000_000019_gtFine_labelTrainIds.png'
    )
    assert LOSS in run.guard_lines[0]
    assert any('MG101' in text for text in run.warnings)
    assert [line['guard/loss_skipped'] for line in run.scalars] == [77.0, 252.0, 63.0, 161.0]


def test_several_losses_each_count_what_they_saw(cityscapes: str, work_dir: str) -> None:
    config = tiny_config(cityscapes, work_dir, pipeline=[*LOAD, PACK])
    config.model.decode_head.loss_decode = [
        dict(type='GuardedCrossEntropyLoss', loss_name='loss_a'),
        dict(type='GuardedLoss', loss=dict(type='TverskyLoss', loss_name='loss_b'), on_invalid='clip'),
    ]
    run = train(config)
    assert run.lines() == loss_only_lines(cityscapes, 4, {f'{LOSS}.0': 'skipped', f'{LOSS}.1': 'remapped'})


def test_a_pipeline_that_guards_some_of_its_data_sets_leaves_the_rest_to_the_loss(
    cityscapes: str, work_dir: str
) -> None:
    config = tiny_config(cityscapes, work_dir)
    guarded, bare = config.train_dataloader.dataset, copy.deepcopy(config.train_dataloader.dataset)
    bare.pipeline = [*LOAD, PACK]
    guarded.indices, bare.indices = [0, 1], [2, 3]
    config.train_dataloader.dataset = dict(type='ConcatDataset', datasets=[guarded, bare])
    config.train_dataloader.batch_size = 4
    config.train_cfg.max_iters = 1
    (line,) = train(config).lines()
    images = expected_samples(cityscapes, 'gtFine/train')
    assert line['samples'] == [images[0]]
    assert line['loss_samples'] == [images[2], images[3]]
    assert line['skipped_pixels'] == images[0]['skipped']
    assert line['losses'][LOSS]['skipped'] == images[2]['skipped'] + images[3]['skipped']


# ---- clean runs


def test_a_clean_run_writes_no_line_and_trains_as_without_a_guard(clean_cityscapes: str, tmp_path: Path) -> None:
    run = train(tiny_config(clean_cityscapes, str(tmp_path / 'guarded')))
    assert not list(Path(run.log_dir).glob('label_guard*.jsonl'))
    assert run.guard_lines == []
    totals = run.modes['train']['totals']
    assert (totals['pixels']['total'], totals['files']) == (TRAIN_IMAGES * PIXELS, TRAIN_IMAGES)
    stock = tiny_config(clean_cityscapes, str(tmp_path / 'stock'), pipeline=[*LOAD, PACK])
    stock.model.decode_head.loss_decode = dict(type='CrossEntropyLoss')
    stock.custom_hooks = []
    theirs = [line['loss'] for line in train(stock).scalars]
    assert [line['loss'] for line in run.scalars] == pytest.approx(theirs, rel=1e-5)
    assert len(set(theirs)) == 4
