"""``mmguard replay`` of segmentation trainings that really died."""

from __future__ import annotations

import os.path as osp
from pathlib import Path
from typing import Any, Dict, List, Tuple

import numpy as np
import pytest
from crashes import crash, replayed
from mmengine.config import Config
from mmengine.hooks import Hook
from mmengine.registry import HOOKS
from PIL import Image
from small_runs import LOAD, PACK, make_cityscapes, shrink, tiny_config

from mmguard.cli import main
from mmguard.compat.stack import find_config_file
from mmguard.text import REPORT_ADVICE

pytestmark = pytest.mark.slow


@HOOKS.register_module()
class UnpluggedHook(Hook):
    """Training ends for a reason that lies in no sample."""

    def before_train_iter(self, runner: Any, batch_idx: int, data_batch: Any = None) -> None:
        if runner.iter == 2:
            raise RuntimeError('GPU fell off the bus')


def label_file(number: int) -> str:
    return f'aachen_{number:06d}_000019_gtFine_labelTrainIds.png'


def stock(root: str, work_dir: str, iters: int = 4, pipeline: Any = None) -> Config:
    """A stock FCN: no guard anywhere."""
    config = tiny_config(root, work_dir, iters=iters, pipeline=pipeline or [*LOAD, PACK])
    config.model.decode_head.loss_decode = dict(type='CrossEntropyLoss')
    return config


@pytest.fixture(scope='module')
def fcn(tmp_path_factory: pytest.TempPathFactory) -> Tuple[str, str, str]:
    """Root, config and record of a stock FCN that died on label 24 of image 5, in the third batch."""
    root = make_cityscapes(str(tmp_path_factory.mktemp('data')), planted={5: (24, 33)})
    work_dir = str(tmp_path_factory.mktemp('work'))
    return (root, *crash(stock(root, work_dir), work_dir, match='out of bounds'))


@pytest.fixture(scope='module')
def unplugged(tmp_path_factory: pytest.TempPathFactory) -> Tuple[str, str, str]:
    """The same of a run on valid labels that ended by something else."""
    root = make_cityscapes(str(tmp_path_factory.mktemp('data')), planted={})
    work_dir = str(tmp_path_factory.mktemp('work'))
    return (root, *crash(stock(root, work_dir), work_dir, dict(type='UnpluggedHook'), match='fell off'))


def test_the_planted_file_its_value_and_the_cause_are_named(fcn: Tuple[str, str, str], capsys: Any) -> None:
    root, config, record = fcn
    code, report, shown = replayed(capsys, config, record)
    assert code == 1
    assert [osp.basename(sample['path']) for sample in report['samples']] == [label_file(4), label_file(5)]
    failing = failing_in(report)
    assert failing['path'] == osp.join(root, 'gtFine/train/aachen', label_file(5))
    assert (failing['status'], failing['iter']) == ('raises', 3)
    assert failing['error'].startswith('IndexError: Target ')
    assert 'mmseg/models/losses/cross_entropy_loss.py:' in failing['place']
    label = np.asarray(Image.open(failing['path']))
    (cause,) = report['causes']
    assert cause['code'] == 'MG101'  # raw Cityscapes ids
    assert cause['values'] == {str(value): int((label == value).sum()) for value in (24, 33)}
    assert report['older_batches'] == 2
    assert all(part in shown for part in (label_file(5), 'MG101', '33 ('))


def test_data_that_has_moved_is_found_by_the_end_of_its_path(
    fcn: Tuple[str, str, str], tmp_path: Path, capsys: Any
) -> None:
    root, config, record = fcn
    text = Path(record).read_text().replace(root, 'D:/elsewhere/cityscapes')
    assert text.count('elsewhere') >= 6
    (tmp_path / 'moved.json').write_text(text + '{"iter": -1, "samples": []}\n')
    code, report, shown = replayed(capsys, config, str(tmp_path / 'moved.json'))
    assert code == 1
    assert f'moved.json:{text.count(chr(10)) + 1}' in shown
    assert report['failing'] == [osp.join(root, 'gtFine/train/aachen', label_file(5))]


def test_wrapped_data_sets_and_random_crops(tmp_path: Path, capsys: Any) -> None:
    root = make_cityscapes(str(tmp_path / 'data'), planted={1: (24,)})
    # The value stands at the upper left alone: most small crops miss it.
    crop = [*LOAD, dict(type='RandomCrop', crop_size=(16, 16)), PACK]
    config = stock(root, str(tmp_path / 'work'), iters=40, pipeline=crop)
    inner = config.train_dataloader.dataset
    config.train_dataloader.dataset = dict(
        type='RepeatDataset', times=3, dataset=dict(type='ConcatDataset', datasets=[inner])
    )
    config_file, record = crash(config, str(tmp_path / 'work'), match='out of bounds')
    code, report, _ = replayed(capsys, config_file, record, '--seeds', '40')
    failing = failing_in(report)
    assert (code, osp.basename(failing['path'])) == (1, label_file(1))
    assert {sample['seed'] for sample in report['samples'] if sample['status'] == 'passes'} == {39}


def failing_in(report: Dict[str, Any]) -> Dict[str, Any]:
    """Return the only sample that fails."""
    (failing,) = [sample for sample in report['samples'] if sample['status'] == 'raises']
    assert report['failing'] == [failing['path']]
    return failing


def test_stock_pidnet(tmp_path: Path, capsys: Any) -> None:
    """The config is as users have it: SyncBN, weights from the web."""
    root, work_dir = make_cityscapes(str(tmp_path / 'data'), planted={1: (19,)}), str(tmp_path / 'work')
    for path in Path(root, 'gtFine').rglob('*.png'):  # it does not survive an ignored pixel
        label = np.asarray(Image.open(path))
        Image.fromarray(np.where(label == 255, 0, label).astype(np.uint8)).save(path)
    config = Config.fromfile(find_config_file('mmseg::pidnet/pidnet-s_2xb6-120k_1024x1024-cityscapes.py'))
    file, record = crash(shrink(config, root, work_dir), work_dir, match='out of bounds')
    user = Config.fromfile(file)
    user.model.backbone.init_cfg = dict(type='Pretrained', checkpoint='https://download.example.org/none.pth')
    user.model.backbone.norm_cfg = dict(type='SyncBN', requires_grad=True)
    user.dump(file)
    code, report, shown = replayed(capsys, file, record)
    assert code == 1
    failing = failing_in(report)
    assert osp.basename(failing['path']) == label_file(1)
    assert 'mmseg/models/' in failing['place']
    assert report['causes'][0]['values'].keys() == {'19'}
    assert report['causes'][0]['code'] in shown


def test_what_lies_in_no_sample_is_said_plainly(unplugged: Tuple[str, str, str], capsys: Any) -> None:
    _, config, record = unplugged
    code, report, shown = replayed(capsys, config, record)
    assert code == 0
    assert [sample['status'] for sample in report['samples']] == ['passes'] * len(report['samples'])
    assert len(report['samples']) >= 4
    assert 'GPU fell off the bus' in shown  # the exception


def test_what_fails_in_mmguard_itself_is_not_blamed_on_the_config(
    unplugged: Tuple[str, str, str], capsys: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, config, record = unplugged
    guarded = Config.fromfile(config)
    guarded.model.decode_head.loss_decode = dict(type='GuardedCrossEntropyLoss')
    path = osp.join(osp.dirname(config), 'guarded.py')
    guarded.dump(path)
    assert replayed(capsys, path, record)[0] == 0
    # A name that this environment does not have, as torch.compiler.is_compiling in torch 2.1.
    monkeypatch.delattr('mmguard.losses.cross_entropy.softmax_cross_entropy_and_valid')
    assert main(['replay', path, record]) == 2
    shown = capsys.readouterr().err
    assert all(part in shown for part in ('NameError', 'softmax_cross_entropy', REPORT_ADVICE))


def what_cannot_run(record: str, config: str, tmp_path: Path) -> Dict[str, Tuple[List[str], str]]:
    (tmp_path / 'no_record.json').write_text('{"images": []}')
    text = Path(record).read_text()
    (tmp_path / 'unknown.json').write_text(text.replace('aachen_', 'bochum_'))
    (tmp_path / 'empty.json').write_text(text.splitlines()[0])
    elsewhere = Config.fromfile(config)
    elsewhere.train_dataloader.dataset.data_root = str(tmp_path / 'nowhere')
    elsewhere.dump(str(tmp_path / 'elsewhere.py'))
    return {
        'no config': ([str(tmp_path / 'none.py'), record], 'none.py'),
        'no record': ([config, str(tmp_path / 'none.json')], 'none.json'),
        'another file': ([config, str(tmp_path / 'no_record.json')], 'no_record.json'),
        'an empty record': ([config, str(tmp_path / 'empty.json')], 'empty.json'),
        'other data': ([config, str(tmp_path / 'unknown.json')], '8 '),
        'moved data': ([str(tmp_path / 'elsewhere.py'), record], 'data_root'),
    }


def test_what_cannot_run_exits_with_2_and_says_why(fcn: Tuple[str, str, str], tmp_path: Path, capsys: Any) -> None:
    _, config, record = fcn
    for args, why in what_cannot_run(record, config, tmp_path).values():
        assert main(['replay', *args]) == 2, args
        assert why in capsys.readouterr().err, args


@pytest.mark.parametrize('by_hook', [False, True])
def test_a_guard_is_not_blamed_for_what_it_takes_out(
    by_hook: bool, cityscapes: str, work_dir: str, capsys: Any
) -> None:
    config = stock(cityscapes, work_dir) if by_hook else tiny_config(cityscapes, work_dir)
    hooks = [dict(type='LabelGuardHook', guard=True)] * by_hook
    config_file, record = crash(config, work_dir, *hooks, dict(type='UnpluggedHook'), match='fell off')
    code, report, _ = replayed(capsys, config_file, record, '--last', '9')
    assert (code, report['failing']) == (0, [])
    assert label_file(0) in [osp.basename(sample['path']) for sample in report['samples']]
