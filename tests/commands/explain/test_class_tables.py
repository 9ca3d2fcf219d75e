"""Tables of classes as the metrics of the frameworks print them: classes without labels, and a single class."""

from __future__ import annotations

from pathlib import Path
from typing import Dict, List, Optional, Sequence, Tuple
from uuid import uuid4

import numpy as np
import pytest
from coco_cases import ann, coco, write
from explained_logs import explain_log

from mmguard.commands.explain.explanation import SUPPORTED, Explanation, explain_text
from mmguard.commands.explain.reader import Reader

pytest.importorskip('mmengine')

STEP = '2026/01/01 12:00:00 - mmengine - INFO - Iter(train) [{:6d}/100]  lr: 1e-2  loss: {}  decode.loss_ce: {}'
#: Version 0 writes commas, and the sum last.
OLD_STEP = '2021-01-01 12:00:00,000 - mmseg - INFO - Iter [{}/100]\tlr: 1e-2, decode.loss_ce: {}, decode.acc_seg: {}'


class Log:
    """Log file of mmengine, the current one."""

    def __init__(self, folder: Path) -> None:
        from mmengine.logging import MMLogger

        self.path = folder / 'run.log'
        self.logger = MMLogger.get_instance(f'mmguard{uuid4().hex}', log_file=str(self.path))

    def read(self) -> str:
        for one in self.logger.handlers:
            one.flush()
        return self.path.read_text()


@pytest.fixture
def log(tmp_path: Path) -> Log:
    return Log(tmp_path)


def evaluate_maps(log: Log, classes: Sequence[str], predicted: Sequence[int], labels: Sequence[int]) -> str:
    """Evaluate a label map as MMSegmentation does, and return the log."""
    torch = pytest.importorskip('torch')
    metrics = pytest.importorskip('mmseg.evaluation')
    metric = metrics.IoUMetric(iou_metrics=['mIoU'])
    metric.dataset_meta = dict(classes=tuple(classes))
    maps = {name: dict(data=torch.tensor([values])) for name, values in zip(KEYS, (predicted, labels))}
    metric.process({}, [maps])
    scores = metric.evaluate(1)
    log.logger.info('Iter(val) [1/1]    ' + '  '.join(f'{name}: {value:.4f}' for name, value in scores.items()))
    return log.read()


KEYS = ('pred_sem_seg', 'gt_sem_seg')
ZERO = ['0.0000  decode.acc_seg: 100.0000'] * 9
FALLING = [f'0.{9 - step}000  decode.acc_seg: 100.0000' for step in range(9)]


def steps(losses: List[str]) -> str:
    return ''.join(f'{STEP.format(10 * n, loss.split()[0], loss)}\n' for n, loss in enumerate(losses, 1))


@pytest.mark.parametrize(
    ('before', 'labels', 'said', 'key'),
    [
        (
            steps(ZERO),
            (0, 0, 0, 0),
            'Acc 100 = aAcc; the loss is 0 and acc_seg 100 in all of 9 lines',
            'softmax-of-one',
        ),
        (steps(FALLING), (0, 0, 0, 1), 'Acc 75 = aAcc, but the loss is not 0', 'one-name'),
    ],
)
def test_a_table_of_one_class_counts_every_pixel(
    before: str, labels: Tuple[int, ...], said: str, key: str, log: Log
) -> None:
    found = explain_log(before + evaluate_maps(log, ['road'], (0, 0, 0, 0), labels))
    assert get_code(found) == 'MG350'
    assert found.raised.text == f'One channel or class: the validation counts only road, with {said}'
    assert [(one.cause.key, one.standing) for one in found.causes] == [(key, SUPPORTED)]


def test_without_a_loss_the_config_decides(log: Log) -> None:
    found = explain_log(evaluate_maps(log, ['road'], (0, 0), (0, 1)))
    assert [one.cause.key for one in found.causes] == ['one-name', 'softmax-of-one']
    assert found.command == 'mmguard check CONFIG'


@pytest.mark.parametrize('step', [f'{STEP}  decode.acc_seg: {{}}\n', f'{OLD_STEP}, loss: 0.0\n'])
@pytest.mark.parametrize(
    ('loss', 'accuracy', 'code'), [('0.0000', '100.0000', 'MG350'), ('0.0001', '100.0', ''), ('0.0000', '0.0000', '')]
)
def test_a_loss_of_0_with_every_pixel_right_shows_one_channel(step: str, loss: str, accuracy: str, code: str) -> None:
    values = (loss, accuracy) if step.startswith('2021') else (loss, loss, accuracy)
    found = explain_text([step.format(n, *values) for n in range(10, 101, 10)])
    assert get_code(found) == code
    assert found is None or found.causes[0].cause.key == 'softmax-of-one'


@pytest.mark.parametrize(
    ('classes', 'labels'), [(('road', 'lane'), (0, 1, 1, 0)), (('road', 'lane', 'tree'), (0, 1, 2, 0))]
)
def test_more_classes_are_no_sign(classes: Tuple[str, ...], labels: Tuple[int, ...], log: Log) -> None:
    assert explain_text([evaluate_maps(log, classes, (0, 1, 0, 1), labels)]) is None


@pytest.mark.parametrize(
    ('old', 'new'), [('aAcc: 75.0', 'aAcc: 93.1'), ('| 75.0 |', '| 7.5.0 |'), ('aAcc: 75.0', 'aAcc: 0.9')]
)
def test_an_accuracy_of_some_pixels_is_no_sign(old: str, new: str, log: Log) -> None:
    text = evaluate_maps(log, ['road'], (0, 0, 0, 0), (0, 0, 0, 1))
    assert old in text
    assert explain_text([text.replace(old, new)]) is None


def test_a_second_run_with_more_classes_counts(tmp_path: Path) -> None:
    one, two = (tmp_path / name for name in 'ab')
    for folder in (one, two):
        folder.mkdir()
    first = evaluate_maps(Log(one), ['road'], (0, 0), (0, 0))
    assert explain_text([first, evaluate_maps(Log(two), ['other', 'road'], (0, 1), (0, 1))]) is None


def evaluate_voc(log: Log, found: Sequence[int]) -> str:
    """Evaluate boxes as VOCMetric does, of which the second class has none."""
    evaluation = pytest.importorskip('mmdet.evaluation')
    box = np.array([[5.0, 5.0, 30.0, 30.0]])
    none = np.zeros((0, 4))
    truth = dict(bboxes=np.concatenate([box, box + 40]), labels=np.array([0, 2]), bboxes_ignore=none)
    truth['labels_ignore'] = np.zeros(0, int)
    scored = np.concatenate([box, np.ones((1, 1))], axis=1)
    results = [[scored[:number] for number in found]] * 2
    evaluation.eval_map(results, [truth] * 2, dataset=['cat', 'red car', 'dog'], logger=log.logger)
    return log.read()


def evaluate_coco(log: Log, folder: Path, categories: Dict[int, str]) -> str:
    """Evaluate boxes as CocoMetric does, of which only the first class has any."""
    torch = pytest.importorskip('torch')
    evaluation = pytest.importorskip('mmdet.evaluation')
    path = write(folder, coco([ann(1, box=(5, 5, 20, 20))], 1, categories, size=(64, 64)))
    metric = evaluation.CocoMetric(ann_file=path, metric='bbox', classwise=True)
    metric.dataset_meta = dict(classes=tuple(categories.values()))
    found = dict(
        bboxes=torch.tensor([[5.0, 5, 25, 25]]), scores=torch.tensor([0.9]), labels=torch.zeros(1, dtype=torch.long)
    )
    metric.process({}, [dict(img_id=0, ori_shape=(64, 64), pred_instances=found)])
    metric.evaluate(1)
    return log.read()


@pytest.mark.parametrize('found', [(1, 0, 1), (1, 1, 1)])
def test_a_class_with_0_gts_has_no_object_in_the_validation(found: Tuple[int, ...], log: Log) -> None:
    explained = explain_log(evaluate_voc(log, found) + evaluate_voc(log, found))
    assert get_code(explained) == 'MG400'
    assert explained.raised.text == 'No label of a class: the gts of class red car is 0 in 3 of 3 tables'
    assert [(one.cause.key, one.standing) for one in explained.causes] == [('no-object', SUPPORTED)]


def test_a_class_with_an_ap_of_nan_has_no_object_in_the_validation(log: Log, tmp_path: Path) -> None:
    explained = explain_log(evaluate_coco(log, tmp_path, {1: 'cat', 2: 'red car'}))
    assert explained.raised.text == 'No label of a class: the AP of class red car is nan in 1 of 1 table'
    assert [one.cause.key for one in explained.causes] == ['no-object']


def test_a_size_without_objects_is_no_class_without(log: Log, tmp_path: Path) -> None:
    text = evaluate_coco(log, tmp_path, {1: 'cat'})
    assert '| nan ' in text
    assert Reader().read([text.encode()]).classes.summary == ''
    assert explain_text([text]) is None


def get_code(found: Optional[Explanation]) -> str:
    return found.signature.code if found is not None and found.signature is not None else ''
