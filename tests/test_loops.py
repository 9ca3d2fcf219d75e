"""The guard of a plain loop: the forms of a batch, exact counts, its log, and what it refuses."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import namedtuple
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Dict, List

import pytest
import torch
from torch import Tensor

from mmguard import LabelGuard, LabelGuardError
from mmguard.loops import INTERVAL

Batch = namedtuple('Batch', 'image label')
IMAGES = torch.zeros(2, 3, 2, 2)


def maps() -> Tensor:
    return torch.tensor([[[0, 1], [9, 255]], [[2, 2], [-1, 9]]])


def boxes() -> List[Dict[str, Any]]:
    return [
        {'labels': torch.tensor([0, 9, 2]), 'boxes': torch.rand(3, 4), 'image_id': torch.tensor([7])},
        {'labels': torch.tensor([1]), 'boxes': torch.rand(1, 4), 'image_id': torch.tensor([8])},
    ]


def sums(folder: Path, mode: str = 'train') -> Dict[str, Any]:
    totals: Dict[str, Any] = json.loads((folder / 'label_guard.json').read_text())['runs'][-1]['modes'][mode]['totals']
    return totals


FORMS = {
    'targets': lambda target: target,
    'tuple': lambda target: (IMAGES, target),
    'list with paths': lambda target: [['a.png', 'b.png'], IMAGES, target],
    'named tuple': lambda target: Batch(IMAGES, target),
    'dict': lambda target: {'image': IMAGES, 'mask': target, 'name': ['a', 'b']},
}


@pytest.mark.parametrize('kind', ['pixels', 'instances'])
@pytest.mark.parametrize('form', list(FORMS))
def test_every_form_keeps_its_type_and_the_batch_is_not_modified(form: str, kind: str, tmp_path: Path) -> None:
    target: Any = maps() if kind == 'pixels' else boxes()
    batch = FORMS[form](target)
    with LabelGuard(3, str(tmp_path)) as guard:
        guarded = guard(batch)
        valid = guard(guarded)
    assert valid is guarded
    assert type(guarded) is type(batch)
    found = guarded if form == 'targets' else guarded['mask'] if form == 'dict' else guarded[-1]
    if kind == 'pixels':
        assert found.tolist() == [[[0, 1], [255, 255]], [[2, 2], [255, 255]]]
        assert torch.equal(target, maps())
    else:
        assert [one['labels'].tolist() for one in found] == [[0, 2], [1]]
        assert [len(one['boxes']) for one in target] == [3, 1]
    tally = sums(tmp_path)[kind]
    assert (tally['skipped'], tally['total']) == ((3, 16) if kind == 'pixels' else (1, 7))


def test_function_picks_targets_of_an_object(tmp_path: Path) -> None:
    batch = SimpleNamespace(inputs=IMAGES, gt=SimpleNamespace(seg=maps()))
    guarded = LabelGuard(3, str(tmp_path), targets=lambda batch: batch.gt.seg)(batch)
    assert guarded.inputs is IMAGES
    assert (int(guarded.gt.seg.max()), int(batch.gt.seg[0, 1, 0])) == (255, 9)


def test_one_channel_narrow_dtype_and_label_map(tmp_path: Path) -> None:
    label = torch.tensor([[[[7, 8, 100]]]], dtype=torch.int8)
    guarded = LabelGuard(3, str(tmp_path), label_map={7: 0, 8: 255})(label)
    assert guarded.tolist() == [[[[0, 255, 255]]]]  # 255 does not fit into int8
    assert LabelGuard(3, str(tmp_path), on_invalid='clip')(label).tolist() == [[[[2, 2, 2]]]]


def test_log_of_training_and_validation(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level('INFO', 'mmguard'), LabelGuard(
        3, str(tmp_path), sources=lambda batch: ['a.png', 'b.png']
    ) as guard:
        for _ in range(INTERVAL):
            guard((IMAGES, maps()))
        guard((IMAGES, maps() * 0), 'val')
    assert sums(tmp_path)['pixels']['values'] == {'-1': INTERVAL, '9': 2 * INTERVAL}
    assert (sums(tmp_path)['files'], sums(tmp_path, 'val')['pixels']['skipped']) == (2, 0)
    assert [record.getMessage().partition(':')[2].split()[:2] for record in caplog.records[:4]] == [
        ['iter', '1:'], ['iter', '2:'], ['iter', '3:'], ['iters', f'4-{INTERVAL}:'],
    ]  # fmt: skip
    assert 'summary' in caplog.records[4].getMessage()


def test_ratio_of_all_batches_stops_the_training(tmp_path: Path) -> None:
    with LabelGuard(3, str(tmp_path), max_skipped_ratio=0.2) as guard:
        guard((IMAGES, maps()), 'val')  # counts for the training only
        guard((IMAGES, maps() * 0))
        guard((IMAGES, maps()))  # 3 of 16
        with pytest.raises(LabelGuardError, match='max_skipped_ratio'):
            guard((IMAGES, maps()))  # 6 of 24
    assert sums(tmp_path)['iterations'] == 3


@pytest.mark.parametrize(
    'batch',
    [
        (IMAGES, maps().float()),
        (IMAGES, torch.tensor([1, 2])),
        {'image': IMAGES, 'annotation': maps()},
        IMAGES,
        None,
        (IMAGES, [maps()[0], maps()[1]]),
    ],
)
def test_unknown_form_is_refused(batch: Any, tmp_path: Path) -> None:
    with pytest.raises(TypeError, match='targets='):
        LabelGuard(3, str(tmp_path))(batch)
    assert not list(tmp_path.iterdir())


def test_function_has_to_return_a_part_of_the_batch(tmp_path: Path) -> None:
    guard = LabelGuard(3, str(tmp_path), targets=lambda batch: batch[1].clone())
    with pytest.raises(ValueError, match='contains'):
        guard((IMAGES, maps()))


@pytest.mark.parametrize(
    ('options', 'error'),
    [(dict(num_classes=0), ValueError), (dict(max_skipped_ratio=2), ValueError), (dict(ignore_index='255'), TypeError)],
)
def test_wrong_arguments(options: Dict[str, Any], error: type, tmp_path: Path) -> None:
    with pytest.raises(error, match=next(iter(options))):
        LabelGuard(**{'num_classes': 3, 'folder': str(tmp_path), **options})


def test_options_of_instances(tmp_path: Path) -> None:
    targets = [{'class_labels': torch.tensor([0, 1])}]
    guarded = LabelGuard(3, str(tmp_path), label_key='class_labels', min_label=1)({'labels': targets})
    assert guarded['labels'][0]['class_labels'].tolist() == [1]


def test_imports_no_framework() -> None:
    code = (
        'import sys, mmguard.loops; '
        "print([name for name in ('lightning', 'pytorch_lightning', 'mmengine') if name in sys.modules])"
    )
    shown = subprocess.run([sys.executable, '-c', code], capture_output=True, text=True, check=True).stdout
    assert shown.split() == ['[]']
