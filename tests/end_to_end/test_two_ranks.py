"""Two processes under DistributedDataParallel, gloo."""

from __future__ import annotations

import json
import os.path as osp
from glob import glob

import numpy as np
import pytest
from PIL import Image
from ranks import run_ranks, run_well
from small_det_data import MAKERS
from small_det_data import expected_samples as expected_instances
from small_det_runs import LAYOUTS, faults_in
from small_runs import make_cityscapes, read_lines

from mmguard.cli import main

pytestmark = pytest.mark.slow


SHOWN = """
from small_runs import tiny_config, add_loop, Run
config = distributed(tiny_config(sys.argv[1], sys.argv[2], iters=7))
config.default_hooks.logger.interval = 3
config.train_cfg.val_interval = 7
add_loop(config, 'val')
run = Run(config).train()
hub = run.runner.message_hub
for tag in ('train/guard/skipped_pixels', 'val/guard/val/skipped_pixels'):
    print('SUMS', hub.get_scalar(tag).data[0].tolist(), flush=True)
print('NAMES', sorted(name for name in hub.log_scalars if 'guard' in name), flush=True)
leave()
"""


def test_what_is_shown_adds_up_to_the_lines_of_all_ranks(cityscapes: str, work_dir: str) -> None:
    ranks = run_well(SHOWN, cityscapes, work_dir)
    lines = [line for path in glob(osp.join(work_dir, '*', 'label_guard*.jsonl')) for line in read_lines(path)]
    train, val = (
        {line.get('step', line['iter']): 0 for line in lines if line['mode'] == mode} for mode in ('train', 'val')
    )
    for line in lines:
        (train if line['mode'] == 'train' else val)[line.get('step', line['iter'])] += line['skipped_pixels']
    ends = (3, 6, 7)
    shown = [sum(n for at, n in train.items() if start < at <= end) for start, end in zip((0, *ends), ends)]
    assert sum(shown) == sum(train.values()) > 0
    for rank in ranks:
        assert rank.said('SUMS') == [str(shown), str(list(val.values()))]
        assert rank.said('NAMES') == ["['train/guard/skipped_pixels', 'val/guard/val/skipped_pixels']"]
    written = read_lines(glob(osp.join(work_dir, '*', 'vis_data', 'scalars.json'))[0])
    assert [line['guard/skipped_pixels'] for line in written if 'guard/skipped_pixels' in line] == shown


RESUMED = """
from small_runs import tiny_config, add_loop, Run
config = distributed(tiny_config(sys.argv[1], sys.argv[2], iters=8))
config.default_hooks.logger.interval = 3
config.default_hooks.checkpoint = dict(type='CheckpointHook', by_epoch=False, interval=100)
if sys.argv[3] == 'best':
    add_loop(config, 'val')
    config.train_cfg.val_interval = 5
    config.default_hooks.checkpoint.update(save_best='mIoU', save_last=False)
else:
    config.default_hooks.checkpoint.interval = 5
if sys.argv[4]:
    config.update(load_from=sys.argv[4], resume=True)
else:
    config.custom_hooks.append(dict(type='StopAt', iteration=5, by='stop'))
run = Run(config).train()
print('SKIPPED', run.runner.message_hub.get_info('label_guard')[0], flush=True)
leave()
"""


@pytest.mark.parametrize('saved', ['interval', 'best'])
def test_a_checkpoint_between_two_logged_lines_holds_the_sums(
    saved: str, cityscapes: str, work_dir: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv('TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD', '1')
    # A folder for each run: two of one second would share a time stamp, by which mmengine names the folder of a log.
    begun, resumed = (osp.join(work_dir, name) for name in ('begun', 'resumed'))
    run_ranks(RESUMED, cityscapes, begun, saved, '')
    (checkpoint,) = glob(osp.join(begun, '*iter_5.pth'))
    ranks = run_well(RESUMED, cityscapes, resumed, saved, checkpoint)
    first, second = (
        [line for path in glob(osp.join(folder, '*', 'label_guard*.jsonl')) for line in read_lines(path)]
        for folder in (begun, resumed)
    )
    trained = [line for line in first if line['mode'] == 'train' and line['iter'] <= 5]
    trained += [line for line in second if line['mode'] == 'train']
    assert {line['iter'] for line in trained} == {*range(1, 9)}
    for rank in ranks:
        assert rank.said('SKIPPED') == [str(sum(line['skipped_pixels'] for line in trained))]


CONFIG = osp.join(osp.dirname(__file__), '..', '..', 'configs', 'pidnet', 'pidnet-s_cityscapes_guarded.py')
OHEM_CHILD = """
from mmengine.config import Config
from small_runs import Run, shrink
config = distributed(shrink(Config.fromfile(sys.argv[3]), sys.argv[1], sys.argv[2], iters=4))
config.update(val_dataloader=None, val_cfg=None, val_evaluator=None)
config.custom_hooks = [dict(type='LabelGuardHook')]
run = Run(config).train()
say_parameters(run.runner.model)
leave()
"""


@pytest.fixture(scope='module')
def half_ignored(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Images are dealt out in turns: every one of rank 1 is ignored throughout."""
    root = make_cityscapes(str(tmp_path_factory.mktemp('half_ignored')), planted={})
    for path in sorted(glob(osp.join(root, 'gtFine', 'train', '*', '*.png')))[1::2]:
        with Image.open(path) as image:
            label = np.array(image)
        Image.fromarray(np.full_like(label, 255)).save(path)
    return root


def test_guarded_trains_on_and_the_ranks_stay_equal(half_ignored: str, work_dir: str) -> None:
    ranks = run_well(OHEM_CHILD, half_ignored, work_dir, CONFIG)
    assert ranks[0].said('PARAMETERS') == ranks[1].said('PARAMETERS') != []


NAMES = ('skipped_instances', 'remapped_instances', 'empty_images', 'loss_skipped')
DET_CHILD = """
from small_runs import Run
from small_det_runs import small_config
family, root, work_dir, indices = sys.argv[1:5]
config = distributed(small_config(family, root, work_dir))
config.train_cfg = dict(type='IterBasedTrainLoop', max_iters=3, val_interval=100)
config.train_dataloader.update(batch_size=2, sampler=dict(type='InfiniteSampler', shuffle=False), batch_sampler=None)
config.log_processor = dict(by_epoch=False)
config.default_hooks.logger.log_metric_by_epoch = False
config.param_scheduler = []
config.train_dataloader.dataset.indices = eval(indices)
run = Run(config).train()
say_parameters(run.runner.model)
for name in sys.argv[5].split(','):
    history = run.runner.message_hub.log_scalars.get(f'train/guard/{name}')
    print(name, None if history is None else history.data[0].tolist(), flush=True)
leave()
"""


@pytest.mark.parametrize('family', ['retinanet', 'mask_rcnn', 'dino'])
def test_a_rank_without_an_instance_holds_up_nobody(
    family: str, work_dir: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    layout = LAYOUTS[family]
    root = MAKERS[family](str(tmp_path_factory.mktemp(family)), layout.num_classes, layout.data_classes)
    # Images are dealt out in turns, two per rank and iteration. Rank 1 has the one whose every label is invalid, and
    # only once, in the end, another: one label of it is invalid.
    indices = [0, 4, 5, 4, 0, 4, 5, 4, 0, 4, 5, 1]
    ranks = run_well(DET_CHILD, family, root, work_dir, str(indices), ','.join(NAMES))
    assert ranks[0].said('PARAMETERS') == ranks[1].said('PARAMETERS') != []

    invalid = {sample['source']: sample for sample in expected_instances(faults_in(family, root))}
    sources = sorted(invalid)
    (hopeless,) = [source for source in sources if '4.' in osp.basename(source)]
    (spoilt,) = [source for source in sources if '1.' in osp.basename(source)]
    every, some = invalid[hopeless]['skipped'], invalid[spoilt]['skipped']
    assert (every, some) == (2, 1)
    expected = {
        'skipped_instances': [2 * every, 2 * every, every + some],
        'remapped_instances': None,  # 0 all along
        'empty_images': [2, 2, 1],
        'loss_skipped': None,
    }
    for rank in ranks:
        assert {name: rank.said(name) for name in NAMES} == {name: [str(counts)] for name, counts in expected.items()}
    # Each rank logs its own files: the clean one nothing.
    assert not any(glob(osp.join(work_dir, '*', 'label_guard.jsonl')))
    (path,) = glob(osp.join(work_dir, '*', 'label_guard.rank1.jsonl'))
    lines = read_lines(path)
    assert [line['empty_images'] for line in lines] == expected['empty_images']
    assert [line['samples'] for line in lines] == [
        [invalid[hopeless]] * 2,
        [invalid[hopeless]] * 2,
        [invalid[hopeless], invalid[spoilt]],
    ]


HOOK_ALONE = '''
from mmcv.transforms import BaseTransform
from mmdet.registry import TRANSFORMS
from small_runs import Run
from small_det_runs import leaf_datasets, small_config
family, root, work_dir = sys.argv[1:4]

@TRANSFORMS.register_module()
class NoTargets(BaseTransform):
    """From the image of this number on."""
    def __init__(self, first):
        self.left = first
    def transform(self, results):
        self.left -= 1
        if self.left >= 0:
            return results
        results['instances'] = []
        print('EMPTIED', results['img_path'])
        return results

config = distributed(small_config(family, root, work_dir, stock=True))
config.custom_hooks = [dict(type='RankGuardHook')]
config.train_cfg = dict(type='IterBasedTrainLoop', max_iters=4, val_interval=100)
config.train_dataloader.update(batch_size=2, sampler=dict(type='InfiniteSampler', shuffle=False), batch_sampler=None)
config.log_processor = dict(by_epoch=False)
config.default_hooks.logger.log_metric_by_epoch = False
config.param_scheduler = []
first = eval(sys.argv[4])[rank]
for dataset in leaf_datasets(config.train_dataloader.dataset):
    dataset.pipeline.insert(0, dict(type='NoTargets', first=first))
model = Run(config).train().runner.model
say_parameters(model)
print('GUARDED', [name for name, module in model.named_modules() if type(module).__module__.startswith('mmguard')])
leave()
'''


@pytest.mark.parametrize('family', ['faster_rcnn', 'mask_rcnn', 'dino'])
def test_the_rank_hook_alone_does_not_hold_them_up_either(
    family: str, work_dir: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Stock losses, clean labels; rank 1 has no target in four iterations in a row."""
    root = MAKERS[family](str(tmp_path_factory.mktemp(family)), faults=())
    ranks = run_well(HOOK_ALONE, family, root, work_dir, '[99, 0]')
    for rank in ranks:
        assert rank.said('GUARDED') == ['[]']
    assert [len(rank.said('EMPTIED')) >= 8 for rank in ranks] == [False, True]
    assert ranks[0].said('PARAMETERS') == ranks[1].said('PARAMETERS') != []


def test_what_a_rank_lacked_is_on_the_console_in_the_lines_and_in_the_report(
    work_dir: str, tmp_path_factory: pytest.TempPathFactory, capsys: pytest.CaptureFixture
) -> None:
    """Rank 1 has no target from the first iteration on, rank 0 none from the third on."""
    root = MAKERS['dino'](str(tmp_path_factory.mktemp('dino')), faults=())
    ranks = run_well(HOOK_ALONE, 'dino', root, work_dir, '[4, 0]')
    assert ranks[0].said('PARAMETERS') == ranks[1].said('PARAMETERS') != []
    emptied = [{path.split('/')[-1] for path in rank.said('EMPTIED')} for rank in ranks]
    (path,) = glob(osp.join(work_dir, '*', 'label_guard.jsonl'))
    with open(path, encoding='utf-8') as file:
        lines = [json.loads(line) for line in file]
    assert [(line['iter'], [one['rank'] for one in line['filled']]) for line in lines] == [
        (1, [1]),
        (2, [1]),
        (3, [0, 1]),
        (4, [0, 1]),
    ]
    for line in lines:
        for one in line['filled']:
            assert 'dn_loss_cls' in one['losses']
            assert {osp.basename(sample) for sample in one['samples']} <= emptied[one['rank']]
    sample = lines[0]['filled'][0]['samples'][0]
    assert sample in ranks[0].output
    capsys.readouterr()
    main(['report', osp.dirname(path), '--json', '-'])
    train = json.loads(capsys.readouterr().out)['modes']['train']
    assert train['filled']['dn_loss_cls'] == {'1': 4, '0': 2}
