"""A log one can live with: few lines, curves that add up, train and val apart, pictures only where asked for."""

from __future__ import annotations

import json
import os.path as osp
import re
import shutil
from glob import glob
from typing import Any, Dict, List, Tuple

import numpy as np
import pytest
from mmengine.config import Config
from mmengine.hooks import Hook
from mmengine.registry import HOOKS
from PIL import Image
from small_det_data import MAKERS
from small_det_runs import small_config
from small_runs import GUARD, LOAD, PACK, Run, add_loop, by_epoch, expected_samples, make_camvid, tiny_config, train

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


def with_tensorboard(config: Config) -> Config:
    pytest.importorskip('tensorboard')
    config.visualizer.vis_backends = [dict(type='LocalVisBackend'), dict(type='TensorboardVisBackend')]
    return config


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
    run = train(with_tensorboard(camvid_config(camvid, work_dir)))
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


@pytest.mark.parametrize('interval', [2, 3, 4])
def test_reports_that_end_between_two_lines(interval: int, cityscapes: str, work_dir: str) -> None:
    config = tiny_config(cityscapes, work_dir, iters=12)
    config.custom_hooks[0].interval = interval
    config.default_hooks.logger.interval = 5
    run = train(config)
    assert sum(shown(run).values()) == sum(skipped(run).values()) > 0
    in_lines = [re.search(r'iters (\d+)-(\d+)', line).groups() for line in run.guard_lines]
    assert [int(begin) for begin, _ in in_lines] == [1, *(int(end) + 1 for _, end in in_lines[:-1])]
    assert in_lines[-1][1] == '12'


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


# ---- pictures


def pictures(run: Run) -> Dict[str, np.ndarray]:
    paths = glob(osp.join(run.log_dir, 'vis_data', 'vis_image', 'guard_*'))
    return {osp.basename(path): np.asarray(Image.open(path)) for path in sorted(paths)}


def test_pictures_of_the_worst_label_maps(cityscapes: str, work_dir: str) -> None:
    config = tiny_config(cityscapes, work_dir, iters=4)
    config.custom_hooks[0].show_worst = 2
    config.train_cfg.val_interval = 2
    add_loop(config, 'val')
    run = train(with_tensorboard(config))
    found = pictures(run)
    # The worst of the first two iterations, of all four, and once the only file of the validation.
    assert sorted(found) == [
        *('guard_train_worst_1_2.png', 'guard_train_worst_1_4.png'),
        *('guard_train_worst_2_2.png', 'guard_train_worst_2_4.png'),
        'guard_val_worst_1_2.png',
    ]
    ranked = sorted(expected_samples(cityscapes, 'gtFine/train'), key=lambda sample: -sample['skipped'])
    for place, sample in enumerate(ranked[:2], 1):
        label = np.asarray(Image.open(osp.join(cityscapes, sample['source'])))
        painted = (found[f'guard_train_worst_{place}_4.png'] == (255, 0, 170)).all(axis=2)
        assert (painted == ((label >= 19) & (label != 255))).all()
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    events = EventAccumulator(osp.join(run.log_dir, 'vis_data'))
    events.Reload()
    assert 'guard_train_worst_1' in events.Tags()['images']


def test_a_file_that_is_gone_has_no_picture_and_training_ends_well(work_dir: str) -> None:
    root = make_camvid(osp.join(work_dir, 'data'))
    config = camvid_config(root, work_dir, iters=1)
    config.custom_hooks[0].show_worst = 1
    config.train_cfg.val_interval = 100
    config.val_dataloader = config.val_cfg = config.val_evaluator = None
    config.custom_hooks.append(dict(type='_Removes', folder=osp.join(root, 'trainannot')))
    run = train(config)
    assert pictures(run) == {}
    assert sum('trainannot/' in text and 'MG' not in text for text in run.warnings) == 1


@HOOKS.register_module(force=True)
class _Removes(Hook):
    def __init__(self, folder: str) -> None:
        self.folder = folder

    def after_train_iter(self, runner: Any, batch_idx: int, data_batch: Any = None, outputs: Any = None) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)


def test_pictures_outline_invalid_boxes(tmp_path: Any) -> None:
    root = MAKERS['mask_rcnn'](str(tmp_path / 'data'))
    config = small_config('mask_rcnn', root, str(tmp_path), epochs=1)
    (hook,) = (hook for hook in config.custom_hooks if hook['type'] == 'LabelGuardHook')
    hook['show_worst'] = 1
    run = train(config)
    worst = next(one['source'] for one in read_log(run.log_dir).files() if one['mode'] == 'train')
    with open(osp.join(root, 'annotations', 'instances_train2017.json'), encoding='utf-8') as file:
        record = json.load(file)
    label_of = {category['id']: label for label, category in enumerate(record['categories'])}
    (number,) = (image['id'] for image in record['images'] if worst.endswith(image['file_name']))
    boxes = [(label_of[one['category_id']], one['bbox']) for one in record['annotations'] if one['image_id'] == number]
    (image,) = (image for name, image in pictures(run).items() if name.startswith('guard_train'))
    loud = (image == (255, 0, 170)).all(axis=2)
    expected = np.zeros_like(loud)
    for label, (x, y, width, height) in boxes:
        if label >= 80 or width <= 0 or height <= 0:
            right, bottom = min(x + width, loud.shape[1] - 1), min(y + height, loud.shape[0] - 1)
            expected[y : bottom + 1, [x, right]] = expected[[y, bottom], x : right + 1] = True
    assert expected.any()
    assert not expected.all()
    assert (loud == expected).all()


def test_a_class_with_the_number_of_an_invalid_instance_is_not_painted(tmp_path: Any) -> None:
    """A panoptic data set has label maps and boxes: each picture shows what its own kind counted."""
    root = MAKERS['panoptic_fpn'](str(tmp_path / 'data'))
    config = small_config('panoptic_fpn', root, str(tmp_path), epochs=1)
    (hook,) = (hook for hook in config.custom_hooks if hook['type'] == 'LabelGuardHook')
    hook['show_worst'] = 50
    run = train(config)
    found = [one for one in read_log(run.log_dir).files() if one['mode'] == 'train']
    assert {one['kind'] for one in found} == {'pixels', 'instances'}
    ranked = sorted(found, key=lambda one: -one['skipped'])
    step = max(int(re.search(r'_(\d+)\.png', name)[1]) for name in pictures(run))
    for place, one in enumerate(ranked, 1):
        loud = (pictures(run)[f'guard_train_worst_{place}_{step}.png'] == (255, 0, 170)).all(axis=2).sum()
        if one['kind'] == 'pixels':
            assert loud * len(run.lines()) >= one['skipped']
        else:
            assert 0 < loud < 4 * 64 * one['skipped']
