"""Guards in the validation pipeline: the same metrics on clean labels; on invalid ones, no invented false positives."""

from __future__ import annotations

import os
import os.path as osp
import pickle
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, Dict, List, Tuple

import numpy as np
import pytest
import torch
from mmengine.config import Config
from mmengine.dataset import pseudo_collate
from mmengine.runner import Runner
from PIL import Image
from small_det_data import MAKERS, SIZE, expected_samples, faults_in_voc
from small_det_runs import faults_in, small_config
from small_runs import GUARD, LOAD, PACK, Run, add_loop, label_map, make_cityscapes, tiny_config, write_pair


class Validation(Run):
    """One validation of a model with the random weights of seed 0."""

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        self.runner.model.init_weights()
        self.metrics: Dict[str, Any] = self.runner.val()


def config_of(family: str, root: str, work_dir: Path, stock: bool, val_size: int = SIZE) -> Config:
    """With metrics that random boxes reach, too: where all are 0, nothing is compared."""
    config = small_config(family, root, str(work_dir), stock=stock, validate=True, val_size=val_size)
    if family == 'faster_rcnn' and osp.exists(osp.join(root, 'mine')):
        config.val_dataloader.dataset.update(
            ann_file='mine/ImageSets/Main/test.txt', data_prefix=dict(sub_data_root='mine/')
        )
    elif family == 'faster_rcnn':
        del config.val_dataloader.dataset['metainfo']  # VOC's own 20 classes
    if family == 'faster_rcnn':
        config.val_evaluator.update(iou_thrs=[0.1, 0.3])
    else:
        config.val_evaluator.update(metric=['bbox', 'segm', 'proposal'], classwise=True)
    return config


def validate(family: str, root: str, work_dir: Path, val_size: int = SIZE) -> Tuple[Validation, Validation]:
    """Without guards, and with them."""
    stock = Validation(config_of(family, root, work_dir, stock=True, val_size=val_size))
    guarded = Validation(config_of(family, root, work_dir, stock=False, val_size=val_size))
    theirs, ours = stock.runner.model.state_dict(), guarded.runner.model.state_dict()
    assert theirs.keys() == ours.keys()
    assert all((theirs[name] == ours[name]).all() for name in theirs)
    return stock, guarded


@pytest.mark.slow
@pytest.mark.parametrize(
    ('family', 'val_size'),
    [
        ('faster_rcnn', SIZE),
        ('mask_rcnn', SIZE),
        # As in every real test pipeline, and so small that valid boxes stand right of the resized image.
        ('faster_rcnn', SIZE // 2),
        ('mask_rcnn', SIZE // 2),
    ],
)
def test_on_clean_labels_every_metric_is_the_same_bit_for_bit(family: str, val_size: int, tmp_path: Path) -> None:
    root = MAKERS[family](str(tmp_path / 'data'), faults=())
    stock, guarded = validate(family, root, tmp_path, val_size)
    values = {name: value for name, value in stock.metrics.items() if not np.isnan(value)}
    # They measured something.
    assert sum(0 < value < 1 for value in values.values()) >= 3, stock.metrics
    assert guarded.metrics.keys() == stock.metrics.keys()
    assert {name: value for name, value in guarded.metrics.items() if not np.isnan(value)} == values
    assert guarded.lines('val') == []


@pytest.mark.slow
def test_coco_metric_reads_the_file_so_the_guard_only_reports(tmp_path: Path) -> None:
    root = MAKERS['mask_rcnn'](str(tmp_path / 'data'))
    stock, guarded = validate('mask_rcnn', root, tmp_path)
    assert repr(guarded.metrics) == repr(stock.metrics)  # NaN is NaN
    samples = [sample for line in guarded.lines('val') for sample in line['samples']]
    assert samples == expected_samples(faults_in('mask_rcnn', root, 'val')) != []


@pytest.mark.slow
def test_voc_metric_reads_what_the_guard_leaves(tmp_path: Path) -> None:
    """A class that the head cannot find has AP 0 in the stock mean; guarded, it is not in the mean."""
    root = MAKERS['faster_rcnn'](str(tmp_path / 'data'))
    # The metric cannot print more than 20 classes of a data set whose folder says VOC.
    shutil.copytree(osp.join(root, 'VOC2007'), osp.join(root, 'mine'))
    stock, guarded = validate('faster_rcnn', root, tmp_path)
    faults = faults_in_voc(root, 'test', 20, ['mine'])
    samples = [sample for line in guarded.lines('val') for sample in line['samples']]
    assert samples == expected_samples(faults) != []
    # Classes 20 and 22 of the 20-class head, beside the valid ones of these four images.
    unknown, known = {fault.label for fault in faults}, {0, 1, 3, 5, 19, 4, 7}
    assert unknown == {20, 22}
    # eval_map gives the mean over the classes with ground truth, so the two differ by just those two classes.
    share = len(known) / (len(known) + len(unknown))
    assert stock.metrics['pascal_voc/mAP'] == pytest.approx(guarded.metrics['pascal_voc/mAP'] * share, rel=1e-5)
    assert stock.metrics['pascal_voc/mAP'] > 0


@pytest.mark.slow
def test_a_validation_of_its_own_reads_no_training_data(tmp_path: Path) -> None:
    """Annotations of a large data set take minutes, and where only the validation set is at hand there are none."""
    root = MAKERS['mask_rcnn'](str(tmp_path / 'data'))
    os.remove(osp.join(root, 'annotations', 'instances_train2017.json'))
    assert Validation(config_of('mask_rcnn', root, tmp_path, stock=True)).metrics  # mmengine reads none
    assert Validation(config_of('mask_rcnn', root, tmp_path, stock=False)).lines('val')


# ---- F10: mmseg's IoUMetric

#: The lower half of these validation images is invalid.
HALF_INVALID = {1: 200, 2: 19}


@pytest.fixture
def half_invalid(tmp_path: Path) -> str:
    root = make_cityscapes(str(tmp_path / 'data'), planted={})
    for number in range(3):
        label = label_map(number, ())
        label[32:] = HALF_INVALID.get(number, label[32:])
        image, path = (f'{root}/{name}' for name in val_files(number))
        write_pair(image, path, label, seed=number)
    return root


def val_files(number: int) -> Tuple[str, str]:
    stem = f'val/munster/munster_{number:06d}_000019'
    return f'leftImg8bit/{stem}_leftImg8bit.png', f'gtFine/{stem}_gtFine_labelTrainIds.png'


def mean_iou_by_hand(root: str, runner: Runner, counted: str) -> float:
    """From the PNG files and the model's predictions, in per cent; ``counted``: which pixels take part.

    Args:
        root (str): The data set.
        runner (Runner): After its validation.
        counted (str): ``'valid'``: labels below 19. ``'not_ignored'``: all but 255.
    """
    predictions: List[np.ndarray] = []
    for batch in runner.val_dataloader:
        predictions += [sample.pred_sem_seg.data[0].numpy() for sample in runner.model.val_step(batch)]
    shared, either = np.zeros(19), np.zeros(19)
    for number, predicted in enumerate(predictions):
        with Image.open(f'{root}/{val_files(number)[1]}') as image:
            label = np.array(image)
        takes_part = label < 19 if counted == 'valid' else label != 255
        for k in range(19):
            mine, theirs = (predicted == k) & takes_part, (label == k) & takes_part
            shared[k] += (mine & theirs).sum()
            either[k] += (mine | theirs).sum()
    return 100 * float(np.mean(shared[either > 0] / either[either > 0]))


@pytest.mark.slow
def test_iou_metric_no_longer_counts_invalid_pixels_as_false_positives(half_invalid: str, tmp_path: Path) -> None:
    found = {}
    for name, pipeline in (('stock', [*LOAD, PACK]), ('guarded', [*LOAD, PACK, GUARD])):
        config = tiny_config(half_invalid, str(tmp_path))
        add_loop(config, 'val', pipeline)
        run = Validation(config)
        hands = {counted: mean_iou_by_hand(half_invalid, run.runner, counted) for counted in ('valid', 'not_ignored')}
        found[name] = (run.metrics['mIoU'], hands)
        values = [sample['values'] for line in run.lines('val') for sample in line['samples']]
        assert values == ([] if name == 'stock' else [{'200': 32 * 64}, {'19': 32 * 64}])
    (stock, by_hand), (guarded, same_by_hand) = found['stock'], found['guarded']
    assert by_hand == same_by_hand  # the same weights
    assert guarded == pytest.approx(by_hand['valid'], abs=0.006)  # IoUMetric rounds to two digits
    assert stock == pytest.approx(by_hand['not_ignored'], abs=0.006)
    assert guarded > stock + 0.05 > 0.05


#: Unpickles a file where mmguard does not exist, and says what its samples carry.
READ = """
import pickle, sys
class Without:
    def find_spec(self, name, *_):
        if name.split('.')[0] == 'mmguard':
            raise ModuleNotFoundError(name)
sys.meta_path.insert(0, Without())
with open(sys.argv[1], 'rb') as file:
    print([sample.get('label_guard') for sample in pickle.load(file)])
"""


def read_without_mmguard(path: Path) -> List[Any]:
    ended = subprocess.run([sys.executable, '-c', READ, str(path)], capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr[-2000:]
    return list(eval(ended.stdout.splitlines()[-1]))


@pytest.mark.slow
def test_a_checkpoint_holds_plain_data(cityscapes: str, work_dir: str, tmp_path: Path) -> None:
    config = tiny_config(cityscapes, work_dir)
    config.default_hooks.checkpoint = dict(type='CheckpointHook', by_epoch=False, interval=4)
    Run(config).train()
    state = torch.load(osp.join(work_dir, 'iter_4.pth'), weights_only=False)
    dump = tmp_path / 'checkpoint.pkl'
    dump.write_bytes(pickle.dumps([{'label_guard': state['message_hub']['runtime_info']['label_guard'], **state}]))
    assert len(read_without_mmguard(dump)[0]) == 11


@pytest.mark.slow
def test_samples_of_a_guard_with_a_label_map(cityscapes: str, work_dir: str, tmp_path: Path) -> None:
    config = tiny_config(cityscapes, work_dir, pipeline=[*LOAD, PACK, {**GUARD, 'label_map': {24: 13, '*': 255}}])
    dataset = Run(config).runner.build_dataloader(config.train_dataloader).dataset
    dump = tmp_path / 'batch.pkl'
    dump.write_bytes(pickle.dumps(pseudo_collate([dataset[0], dataset[2]])['data_samples']))
    assert [record['pixels']['mapped'] > 0 for record in read_without_mmguard(dump)] == [True, True]
