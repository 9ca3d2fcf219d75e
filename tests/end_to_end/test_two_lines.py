"""``LabelGuardHook(guard=True)`` guards a run as ``mmguard apply`` guards its config."""

from __future__ import annotations

import copy
import glob
import json
import os
import os.path as osp
import re
import uuid
from pathlib import Path
from typing import Any, Dict

import numpy as np
import pytest
from architectures import Architecture, count_instances
from architectures import small_config as small_architecture
from guarded_twice import both_trained, counts_of, losses_of, named_apart
from mmengine.config import Config
from PIL import Image
from small_det_data import MAKERS
from small_det_runs import small_config
from small_runs import (
    LOAD,
    PACK,
    Run,
    add_loop,
    by_epoch,
    expected_samples,
    make_cityscapes,
    shrink,
    tiny_config,
    train,
)

import mmguard
from mmguard.compat.stack import find_config_file
from mmguard.losses.mmseg import GuardedCrossEntropyLoss

FOLDER = 'gtFine/train'


@pytest.fixture(scope='module')
def root(tmp_path_factory: pytest.TempPathFactory) -> str:
    return make_cityscapes(str(tmp_path_factory.mktemp('cityscapes')))


def stock_config(root: str, work_dir: Path, **loader: Any) -> Config:
    """No guard anywhere."""
    config = tiny_config(root, str(work_dir), pipeline=[*LOAD, PACK])
    config.custom_hooks = []
    config.model.decode_head.loss_decode = dict(type='CrossEntropyLoss', class_weight=[1.0] * 18 + [0.5])
    config.train_dataloader.update(loader)
    return config


WORKERS = {
    'none': {},
    'two': dict(num_workers=2),
    'two, persistent': dict(num_workers=2, persistent_workers=True),
    'two, spawned': dict(num_workers=2, persistent_workers=True, multiprocessing_context='spawn'),
    'two, shuffled': dict(num_workers=2, sampler=dict(type='InfiniteSampler', shuffle=True)),
    'two, fetched one by one': dict(num_workers=2, sampler=dict(type='DefaultSampler', shuffle=True)),
}


@pytest.mark.slow
@pytest.mark.parametrize('name', WORKERS)
def test_the_workers_see_the_guards(root: str, tmp_path: Path, name: str) -> None:
    two, written = both_trained(stock_config(root, tmp_path, **WORKERS[name]), tmp_path)
    assert counts_of(two) == counts_of(written)
    assert losses_of(two) == losses_of(written)
    seen = {sample['source']: sample for line in two.lines() for sample in line['samples']}
    expected = {sample['source']: sample for sample in expected_samples(root, FOLDER) if sample['skipped']}
    assert seen == expected


@pytest.mark.slow
def test_what_is_guarded_is_named_once_and_stays(root: str, tmp_path: Path) -> None:
    config = stock_config(root, tmp_path)
    add_loop(config, 'val', pipeline=[*LOAD, PACK])
    config.custom_hooks = [dict(type='LabelGuardHook', guard=True)]
    run = Run(config).train()
    loss = run.runner.model.decode_head.loss_decode
    assert type(loss) is GuardedCrossEntropyLoss
    run.runner.val()
    assert run.runner.model.decode_head.loss_decode is loss
    transforms = run.runner.train_dataloader.dataset.pipeline.transforms
    assert [type(one).__name__ for one in transforms].count('GuardSegLabels') == 1
    named = [line[line.index('guard: guarded') :] for line in run.log.splitlines() if 'guard: guarded' in line]
    assert sorted(named) == sorted(set(named))
    assert {line.split()[2].rstrip(':') for line in named} == {
        'decode_head.loss_decode',
        'train_dataloader.dataset.pipeline',
        'val_dataloader.dataset.pipeline',
    }


@pytest.mark.slow
def test_a_test_loop_is_guarded_once_it_is_there(root: str, tmp_path: Path) -> None:
    config = stock_config(root, tmp_path)
    add_loop(config, 'test', pipeline=[*LOAD, PACK])
    config.custom_hooks = [dict(type='LabelGuardHook', guard=True)]
    run = Run(config).test()
    assert sum(line['skipped_pixels'] for line in run.lines('test')) == sum(
        sample['skipped'] for sample in expected_samples(root, 'gtFine/val')
    )


@pytest.mark.slow
@pytest.mark.parametrize('is_written', [False, True])
def test_views_of_test_time_augmentation_are_guarded_and_counted_once(
    root: str, tmp_path: Path, is_written: bool
) -> None:
    flips = [dict(type='RandomFlip', prob=float(prob)) for prob in (0, 1)]
    augmented = dict(type='TestTimeAug', transforms=[flips, [LOAD[1]], [PACK]])
    config = stock_config(root, tmp_path)
    add_loop(config, 'test', pipeline=[LOAD[0], augmented])
    config.model = dict(type='SegTTAModel', module=config.model)
    config.custom_hooks = [] if is_written else [dict(type='LabelGuardHook', guard=True)]
    run = Run(mmguard.guard_config(config) if is_written else config).test()
    expected = {one['source']: one['skipped'] for one in expected_samples(root, 'gtFine/val') if one['skipped']}
    assert {one['source']: one['skipped'] for line in run.lines('test') for one in line['samples']} == expected != {}


@pytest.mark.slow
def test_the_guards_take_the_options_of_the_hook(root: str, tmp_path: Path) -> None:
    config = stock_config(root, tmp_path)
    config.custom_hooks = [dict(type='LabelGuardHook', guard=True, label_map={44: 255}, on_invalid='clip')]
    run = Run(config).train()
    (guard,) = [one for one in run.runner.train_dataloader.dataset.pipeline.transforms if hasattr(one, 'rule')]
    assert (guard.rule.label_map, guard.rule.on_invalid) == ({44: 255}, 'clip')
    assert run.runner.model.decode_head.loss_decode.on_invalid == 'clip'
    with pytest.raises(ValueError, match='guard=True'):
        mmguard.LabelGuardHook(label_map={44: 255})


#: Stock configs of mmseg, by the name of a test.
SEGMENTATION = {
    'fcn': 'mmseg::fcn/fcn_r50-d8_4xb2-40k_cityscapes-512x1024.py',
    'pidnet': 'mmseg::pidnet/pidnet-s_2xb6-120k_1024x1024-cityscapes.py',
    'mask2former': 'mmseg::mask2former/mask2former_r50_8xb2-90k_cityscapes-512x1024.py',
}


@pytest.mark.slow
@pytest.mark.parametrize('name', SEGMENTATION)
def test_a_stock_config_of_mmseg(root: str, tmp_path: Path, name: str) -> None:
    stock = shrink(Config.fromfile(find_config_file(SEGMENTATION[name])), root, str(tmp_path))
    two, written = both_trained(stock, tmp_path)
    assert counts_of(two) == counts_of(written) != []
    assert two.lines('val') == written.lines('val') != []
    assert losses_of(two) == losses_of(written)
    states = [list(run.runner.model.state_dict()) for run in (two, written)]
    assert states[0] == states[1]


@pytest.mark.slow
@pytest.mark.parametrize('family', ['retinanet', 'faster_rcnn', 'mask_rcnn', 'dino', 'mask2former', 'panoptic_fpn'])
def test_a_stock_config_of_mmdet(tmp_path: Path, family: str) -> None:
    data = MAKERS[family](str(tmp_path / 'data'))
    stock = small_config(family, data, str(tmp_path), stock=True)
    two, written = both_trained(stock, tmp_path)
    assert counts_of(two) == counts_of(written) != []
    assert losses_of(two) == losses_of(written)


@pytest.mark.slow
def test_rtmdet_with_its_hooks(tmp_path: Path) -> None:
    """EMAHook averages the model, and PipelineSwitchHook replaces the pipeline for the last epoch."""
    stock = Architecture('mmdet', 'rtmdet/rtmdet_l_8xb32-300e_coco')
    config, _ = small_architecture(stock, str(tmp_path / 'data'), str(tmp_path))
    by_epoch(config)
    config.train_dataloader.sampler.type = 'DefaultSampler'
    average, switch = stock.load().custom_hooks
    switch.update(switch_epoch=1, switch_pipeline=config.train_dataloader.dataset.pipeline)
    config.custom_hooks = [average, switch]
    two, written = both_trained(config, tmp_path)
    assert counts_of(two) == counts_of(written)
    assert losses_of(two) == losses_of(written)
    for run in (two, written):
        skipped = dict.fromkeys((1, 2), 0)
        for line in run.lines():
            skipped[line['epoch']] += line['skipped_instances']
        assert skipped == {1: count_instances(), 2: count_instances()}


@pytest.mark.slow
@pytest.mark.parametrize('is_first', [True, False])
def test_averaged_models_work_before_and_after_the_guard(root: str, tmp_path: Path, is_first: bool) -> None:
    """EMAHook copies the model when the run begins, and pairs parameters and buffers by name."""
    config = stock_config(root, tmp_path)
    add_loop(config, 'val', pipeline=[*LOAD, PACK])
    config.train_cfg.val_interval = 2
    hooks = [dict(type='EMAHook', update_buffers=True), dict(type='LabelGuardHook', guard=True)]
    config.custom_hooks = hooks if is_first else hooks[::-1]
    run = Run(config).train()
    stock = Run(named_apart(stock_config(root, tmp_path / 'stock'), tmp_path / 'stock')).runner.model
    assert list(run.runner.model.state_dict()) == list(stock.state_dict())
    assert counts_of(run, 'val') != []


INVALID = 44


@pytest.fixture
def half_invalid(tmp_path: Path) -> Dict[str, str]:
    """The same data set twice: the lower half of its label maps is invalid, or is 255 by hand."""
    roots = {}
    for name, value in (('invalid', INVALID), ('by_hand', 255)):
        roots[name] = make_cityscapes(str(tmp_path / name), planted={})
        for path in glob.glob(f'{roots[name]}/gtFine/train/*/*.png'):
            with Image.open(path) as image:
                label = np.array(image)
            label[label.shape[0] // 2 :] = value
            Image.fromarray(label).save(path)
    return roots


def first_loss(config: Config) -> float:
    return float(train(config).scalars[0]['loss'])


@pytest.mark.slow
@pytest.mark.filterwarnings('ignore:Default ``avg_non_ignore``')
@pytest.mark.parametrize('avg_non_ignore', [False, True])
def test_invalid_pixels_average_as_ignored_ones(
    avg_non_ignore: bool, half_invalid: Dict[str, str], tmp_path: Path
) -> None:
    def config(root: str, loss: str = 'CrossEntropyLoss') -> Config:
        made = tiny_config(half_invalid[root], str(tmp_path / uuid.uuid4().hex), iters=1, pipeline=[*LOAD, PACK])
        made.model.decode_head.loss_decode = dict(type=loss, avg_non_ignore=avg_non_ignore)
        return made

    by_hand = first_loss(config('by_hand'))
    written = mmguard.guard_config(config('invalid'))
    assert [step['type'] for step in written.train_dataloader.dataset.pipeline][-1] == 'GuardSegLabels'
    assert first_loss(written) == pytest.approx(by_hand, rel=1e-6)
    # What reaches the loss as invalid is deleted: neither sum nor denominator know it.
    deleted = first_loss(config('invalid', 'GuardedCrossEntropyLoss'))
    all_average: Any = copy.deepcopy(config('by_hand'))
    all_average.model.decode_head.loss_decode.avg_non_ignore = True
    share = 0.5 if not avg_non_ignore else 1.0
    assert by_hand == pytest.approx(share * first_loss(all_average), rel=0.05)
    assert deleted > by_hand * (1.9 if not avg_non_ignore else 0.99)


#: Skipped pixels of the first four batches of two.
SKIPPED = [77, 252, 63, 161]


@pytest.mark.slow
def test_scalars_reach_console_and_scalars_json(cityscapes: str, work_dir: str) -> None:
    """As integers, and only those that were ever more than 0."""
    run = train(tiny_config(cityscapes, work_dir))
    shown = [{name: value for name, value in line.items() if name.startswith('guard/')} for line in run.scalars]
    assert shown == [{'guard/skipped_pixels': skipped} for skipped in SKIPPED]
    assert [line['step'] for line in run.scalars] == [1, 2, 3, 4]
    printed = [re.findall(r'(guard/\S+): (\S+)', line) for line in run.log.splitlines() if 'Iter(train)' in line]
    assert printed == [[('guard/skipped_pixels', str(skipped))] for skipped in SKIPPED]
    history, _ = run.runner.message_hub.get_scalar('train/guard/skipped_pixels').data
    assert history.tolist() == SKIPPED


@pytest.mark.slow
def test_human_line_hint_and_table(cityscapes: str, work_dir: str, snapshot: Any) -> None:
    config = tiny_config(cityscapes, work_dir)
    run = train(config)
    assert len(run.guard_lines) == 4
    (warning,) = run.warnings
    assert 'MG101' in warning
    table = run.log[run.log.index('guard: summary') :]
    assert osp.join(run.log_dir, 'label_guard.jsonl') in table
    shown = '\n'.join([run.guard_lines[0], warning, table])
    snapshot('log', 'training', shown.replace(run.log_dir, 'LOG').replace(cityscapes, 'DATA'))


@pytest.mark.slow
def test_a_run_without_any_guard_is_reported_so(clean_cityscapes: str, work_dir: str, snapshot: Any) -> None:
    config = tiny_config(clean_cityscapes, work_dir, pipeline=[*LOAD, PACK], iters=1)
    config.model.decode_head.loss_decode = dict(type='CrossEntropyLoss')
    (warning,) = train(config).warnings
    snapshot('log', 'training without a guard', warning)


@pytest.mark.slow
def test_a_resumed_run_appends(cityscapes: str, work_dir: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # mmengine 0.10.7 saves more than weights and loads with torch's default, which refuses that since 2.6.
    monkeypatch.setenv('TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD', '1')
    config = tiny_config(cityscapes, work_dir, iters=4)
    config.default_hooks.checkpoint = dict(type='CheckpointHook', by_epoch=False, interval=2)
    stopped = config.copy()
    stopped.custom_hooks = [*config.custom_hooks, dict(type='StopAt', iteration=3)]
    first = Run(stopped)
    with pytest.raises(FloatingPointError):
        first.train()
    assert [line['iter'] for line in first.lines()] == [1, 2, 3]

    resumed = tiny_config(cityscapes, work_dir, iters=4)
    resumed.resume = True
    # The same folder, as with a fixed timestamp: what was logged must stay, half a last line included.
    run = Run(resumed)
    run.runner._log_dir = first.log_dir
    path = osp.join(first.log_dir, 'label_guard.jsonl')
    before = Path(path).read_text()
    with open(path, 'a') as file:
        file.write('{"mode": "train", "it')
    run.train()
    text = Path(path).read_text()
    assert text.startswith(before + '{"mode": "train", "it\n')
    lines = [json.loads(line) for line in text[len(before) :].splitlines()[1:]]
    assert [(line['iter'], line['skipped_pixels']) for line in lines] == [(3, 63), (4, 161)]
    history = run.runner.message_hub.get_scalar('train/guard/skipped_pixels').data[0]
    assert history.tolist() == SKIPPED


@pytest.mark.slow
@pytest.mark.skipif(not osp.exists('/dev/full'), reason='needs /dev/full')
def test_a_full_disk_is_reported_once_and_training_goes_on(cityscapes: str, work_dir: str) -> None:
    run = Run(tiny_config(cityscapes, work_dir))
    os.symlink('/dev/full', osp.join(run.log_dir, 'label_guard.jsonl'))
    run.train()
    assert sum('label_guard.jsonl' in text for text in run.warnings) == 1
    assert len(run.scalars) == 4
    assert len(run.guard_lines) == 4
