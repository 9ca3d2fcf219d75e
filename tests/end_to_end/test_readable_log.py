"""A log one can live with: few lines, curves that add up, train and val apart."""

from __future__ import annotations

import json
import os.path as osp
import re
from glob import glob
from typing import Dict, List, Tuple

import pytest
from mmengine.config import Config
from small_runs import GUARD, LOAD, PACK, Run, add_loop, by_epoch, tiny_config, train

from mmguard import read_log

pytestmark = pytest.mark.slow

Curve = List[Tuple[int, float]]


def camvid_config(root: str, work_dir: str, iters: int = 25) -> Config:
    """Training and validation on label maps of which each has void pixels of 11, which is num_classes."""
    guard = dict(GUARD, num_classes=11)
    config = tiny_config(root, work_dir, iters=iters, pipeline=[*LOAD, PACK, guard])
    add_loop(config, 'val', [*LOAD, PACK, guard])
    for split, loader in (('train', config.train_dataloader), ('val', config.val_dataloader)):
        loader.dataset.type = 'BaseSegDataset'
        loader.dataset.update(img_suffix='.png', seg_map_suffix='.png', data_root=root)
        loader.dataset.data_prefix = dict(img_path=split, seg_map_path=f'{split}annot')
        loader.dataset.metainfo = dict(classes=[str(number) for number in range(11)])
    config.model.decode_head.num_classes = 11
    config.train_cfg.val_interval = 10
    config.default_hooks.logger.interval = 10
    return config


def curves(run: Run) -> Dict[str, Curve]:
    """The guard's tags in the event file."""
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    events = EventAccumulator(osp.join(run.log_dir, 'vis_data'))
    events.Reload()
    tags = [tag for tag in events.Tags()['scalars'] if 'guard' in tag]
    return {tag: [(event.step, event.value) for event in events.Scalars(tag)] for tag in tags}


def skipped(run: Run, mode: str = 'train') -> Dict[int, int]:
    """Iteration (of a validation that of the training) -> skipped pixels, as the JSON lines say."""
    found: Dict[int, int] = {}
    for line in run.lines(mode):
        place = line.get('step', line['iter'])
        found[place] = found.get(place, 0) + line['skipped_pixels']
    return found


def shown(run: Run, tag: str = 'guard/skipped_pixels') -> Dict[int, int]:
    """Step -> value in scalars.json; what two loggers show at one step is one point."""
    return {line['step']: line[tag] for line in run.scalars if tag in line}


def between(counts: Dict[int, int], *ends: int) -> Dict[int, int]:
    return {end: sum(n for at, n in counts.items() if start < at <= end) for start, end in zip((0, *ends), ends)}


def test_25_iterations_of_camvid(camvid: str, work_dir: str) -> None:
    pytest.importorskip('tensorboard')
    config = camvid_config(camvid, work_dir)
    config.visualizer.vis_backends = [dict(type='LocalVisBackend'), dict(type='TensorboardVisBackend')]
    run = train(config)
    counts, validated = skipped(run), skipped(run, 'val')
    assert len(counts) == 25
    assert curves(run) == {
        'guard/skipped_pixels': list(
            between(counts, 2, 10, 20, 25).items()
        ),  # LoggerHook also shows the end of a round
        'guard/val/skipped_pixels': list(validated.items()),
    }
    assert list(validated) == [10, 20, 25]
    lines = [line for line in run.guard_lines if ' val ' not in line]
    places = [re.findall(r'\d+', line.split(':')[1]) for line in lines]
    assert places == [['1'], ['2'], ['3'], ['4', '10'], ['11', '20'], ['21', '25']]
    in_lines = [int(re.search(r': ([\d,]+) ', line)[1].replace(',', '')) for line in lines]
    assert in_lines == [*(counts[at] for at in (1, 2, 3)), *list(between(counts, 3, 10, 20, 25).values())[1:]]
    assert len(run.guard_lines) == len(lines) + 2  # one for each validation after the first, which has a table
    assert '0.0000' not in ''.join(re.findall(r'guard/.*', run.log))
    worst = re.search(r'worst: (.*)$', lines[-1])[1]
    assert osp.isfile(worst)
    assert not glob(osp.join(run.log_dir, 'vis_data', 'vis_image', '*'))
    frame = read_log(work_dir).to_frame() if pytest.importorskip('pandas') else None
    assert frame.groupby('mode')['skipped_pixels'].sum().to_dict() == {
        'train': sum(counts.values()),
        'val': sum(validated.values()),
    }
    assert frame['mode'].value_counts().to_dict() == {'train': 25, 'val': 12}


def test_by_epoch_what_an_epoch_leaves_over_is_shown_in_the_next(cityscapes: str, work_dir: str) -> None:
    config = tiny_config(cityscapes, work_dir)
    by_epoch(config, epochs=3)
    config.default_hooks.logger.interval = 3  # of 4 iterations
    run = train(config)
    counts = skipped(run)
    assert len(counts) == 12
    assert shown(run) == between(counts, 3, 7, 11, 12)
    places = [re.findall(r'\d+', line.split(':')[1]) for line in run.guard_lines[3:]]
    assert places == [['1', '4', '2', '3'], ['2', '4', '3', '3'], ['3', '4']]


@pytest.mark.parametrize('ignore_last', [True, False])
def test_an_epoch_shorter_than_the_interval_is_shown_at_its_end(
    ignore_last: bool, cityscapes: str, work_dir: str
) -> None:
    config = tiny_config(cityscapes, work_dir)
    by_epoch(config, epochs=2)
    config.default_hooks.logger.update(interval=50, ignore_last=ignore_last)
    run = train(config)
    assert shown(run) == between(skipped(run), 4, 8)


def test_two_loggers_of_different_intervals(cityscapes: str, work_dir: str) -> None:
    config = tiny_config(cityscapes, work_dir, iters=11)
    config.default_hooks.logger.interval = 2
    config.custom_hooks.append(dict(type='LoggerHook', interval=5))
    run = train(config)
    assert shown(run) == between(skipped(run), 2, 4, 5, 6, 8, 10, 11)


def test_a_training_that_stops_early_shows_the_rest(cityscapes: str, work_dir: str) -> None:
    config = tiny_config(cityscapes, work_dir, iters=9)
    config.default_hooks.logger.interval = 4
    config.custom_hooks.append(dict(type='StopAt', iteration=6, by='stop'))
    run = train(config)
    assert shown(run) == between(skipped(run), 4, 6)


def test_what_was_not_shown_yet_is_in_the_checkpoint(
    cityscapes: str, work_dir: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv('TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD', '1')
    config = tiny_config(cityscapes, work_dir, iters=8)
    config.default_hooks.logger.interval = 4
    config.default_hooks.checkpoint = dict(type='CheckpointHook', by_epoch=False, interval=3)
    stopped = config.copy()
    stopped.custom_hooks = [*config.custom_hooks, dict(type='StopAt', iteration=3)]
    first = Run(stopped)
    with pytest.raises(FloatingPointError):
        first.train()
    assert shown(first) == {}
    resumed = tiny_config(cityscapes, work_dir, iters=8)
    resumed.default_hooks.logger.interval = 4
    resumed.resume = True
    second = train(resumed)
    assert shown(second) == between({**skipped(first), **skipped(second)}, 4, 8)


def test_with_hierarchical_tags(cityscapes: str, work_dir: str) -> None:
    config = tiny_config(cityscapes, work_dir, iters=5)
    config.log_processor.log_with_hierarchy = True
    config.default_hooks.logger.interval = 4
    config.train_cfg.val_interval = 5
    add_loop(config, 'val')
    run = train(config)
    assert shown(run, 'train/guard/skipped_pixels') == between(skipped(run), 4, 5)
    assert shown(run, 'val/guard/val/skipped_pixels') == {5: 91}


def test_without_a_logger_the_message_hub_still_adds_up(cityscapes: str, work_dir: str) -> None:
    config = tiny_config(cityscapes, work_dir, iters=13)
    config.default_hooks.logger = None
    run = train(config)
    history = run.runner.message_hub.get_scalar('train/guard/skipped_pixels').data[0].tolist()
    assert history == list(between(skipped(run), 4, 10, 13).values())


def test_after_a_test_the_counts_are_in_its_json(cityscapes: str, work_dir: str) -> None:
    config = tiny_config(cityscapes, work_dir, iters=1)
    add_loop(config, 'test')
    run = train(config).test()
    with open(osp.join(run.log_dir, f'{run.runner.timestamp}.json'), encoding='utf-8') as file:
        assert json.load(file)['guard/test/skipped_pixels'] == 91
