"""Set-ups around LabelGuardHook: several hooks, priorities, own collate functions, second label maps, failing runs."""

from __future__ import annotations

from typing import Any, Dict, List

import pytest

pytest.importorskip('mmseg')

import torch
from mmengine.config import Config
from mmengine.model import BaseModel
from mmengine.registry import FUNCTIONS, MODELS, TRANSFORMS
from mmengine.structures import PixelData
from mmseg.models.segmentors import EncoderDecoder
from mmseg.registry import MODELS as SEG_MODELS
from small_runs import GUARD, LOAD, PACK, Run, add_loop, by_epoch, expected_samples, tiny_config, train

import mmguard


def planted(root: str, split: str = 'train') -> int:
    """The invalid pixels in the files of a split; a run of ``tiny_config`` sees each file once."""
    return sum(sample['skipped'] for sample in expected_samples(root, f'gtFine/{split}'))


def skipped(run: Run) -> List[int]:
    """Return the skipped pixels of a training by its lines, its record and its scalars."""
    lines = sum(line['skipped_pixels'] for line in run.lines())
    scalars = sum(line.get('guard/skipped_pixels', 0) for line in run.scalars)
    return [lines, run.modes['train']['totals']['pixels']['skipped'], int(scalars)]


# ---- the hook among the hooks of a run


def listed(root: str, work_dir: str, how: str) -> Config:
    config = tiny_config(root, work_dir)
    if how == 'apply':
        config.custom_hooks = []
        config = mmguard.guard_config(config)
    if how == 'default_hooks':
        config.default_hooks['guard'] = dict(type='LabelGuardHook')
    options = dict(label_map={33: 255}) if how == 'options' else {}
    config.custom_hooks = [*config.custom_hooks, dict(type='LabelGuardHook', guard=True, **options)]
    return config


@pytest.mark.parametrize('how', ['twice', 'apply', 'default_hooks', 'options'])
def test_of_several_hooks_the_first_counts_and_the_others_are_named(cityscapes: str, work_dir: str, how: str) -> None:
    run = train(listed(cityscapes, work_dir, how))
    assert skipped(run) == [planted(cityscapes)] * 3
    named = [text for text in run.warnings if 'LabelGuardHook' in text]
    assert len(named) == (2 if how == 'default_hooks' else 1)
    assert 'LabelGuardHook(guard=True' in named[-1]
    assert ('label_map={33: 255}' in named[-1]) is (how == 'options')
    assert sum(isinstance(hook, mmguard.LabelGuardHook) for hook in run.runner.hooks) == 1


@pytest.mark.parametrize('priority', ['LOWEST', 'VERY_LOW', 'HIGHEST'])
def test_a_hook_of_any_priority_counts_before_the_loggers(cityscapes: str, work_dir: str, priority: str) -> None:
    config = tiny_config(cityscapes, work_dir)
    config.custom_hooks = [dict(type='LabelGuardHook', priority=priority)]
    run = train(config)
    assert skipped(run) == [planted(cityscapes)] * 3
    assert [line['guard/skipped_pixels'] for line in run.scalars] == [line['skipped_pixels'] for line in run.lines()]


# ---- what an exception leaves


@TRANSFORMS.register_module()
class FailAt:
    """Transform that fails at a file."""

    def __init__(self, file: str) -> None:
        self.file = file

    def __call__(self, results: Dict[str, Any]) -> Dict[str, Any]:
        if results['data_samples'].seg_map_path.endswith(self.file):
            raise FloatingPointError('planted')
        return results


@pytest.mark.parametrize('mode', ['train', 'val', 'test'])
def test_the_sums_survive_an_exception(cityscapes: str, work_dir: str, mode: str) -> None:
    config = tiny_config(cityscapes, work_dir)
    *_, last = expected_samples(cityscapes, 'gtFine/train' if mode == 'train' else 'gtFine/val')
    pipeline = [*LOAD, PACK, GUARD, dict(type='FailAt', file=last['source'])]
    if mode == 'train':
        config.train_dataloader.dataset.pipeline = pipeline
    else:
        add_loop(config, mode, pipeline)
    run = Run(config)
    with pytest.raises(FloatingPointError):
        getattr(run.runner, mode)()
    lines = run.lines(mode)
    assert run.modes[mode]['totals']['pixels']['skipped'] == sum(line['skipped_pixels'] for line in lines) > 0
    assert run.modes[mode]['ended'] is False


# ---- labels that only the loss meets, on a map of their own


@SEG_MODELS.register_module()
class TwoMaps(EncoderDecoder):
    """Segmentor with a second head on a second label map."""

    def __init__(self, part_head: Dict[str, Any], **arguments: Any) -> None:
        super().__init__(**arguments)
        self.part_head = SEG_MODELS.build(part_head)

    def loss(self, inputs: torch.Tensor, data_samples: List[Any]) -> Dict[str, torch.Tensor]:
        losses: Dict[str, torch.Tensor] = super().loss(inputs, data_samples)
        scores = self.part_head(self.extract_feat(inputs))
        parts = torch.stack([sample.gt_part_seg.data[0] for sample in data_samples])
        scores = torch.nn.functional.interpolate(scores, size=parts.shape[1:])
        losses['part.loss_part'] = self.part_head.loss_decode(scores, parts, ignore_index=255)
        return losses


@TRANSFORMS.register_module()
class AddParts:
    """Transform that adds a map of three parts, with a line of 9 in one file."""

    def __call__(self, results: Dict[str, Any]) -> Dict[str, Any]:
        sample = results['data_samples']
        parts = torch.arange(sample.gt_sem_seg.data.numel()).view_as(sample.gt_sem_seg.data) % 3
        if '000005' in sample.seg_map_path:
            parts[0, 0] = 9
        sample.gt_part_seg = PixelData(data=parts)
        return results


def test_no_file_is_named_where_the_loss_saw_other_labels(clean_cityscapes: str, work_dir: str) -> None:
    config = tiny_config(clean_cityscapes, work_dir, pipeline=[*LOAD, PACK, dict(type='AddParts')])
    config.model.update(type='TwoMaps', part_head=dict(config.model.decode_head, num_classes=3))
    run = train(config)
    (line,) = run.lines()
    assert (line['iter'], line['losses']['part_head.loss_decode']['skipped']) == (3, 64)
    assert (line['samples'], line.get('loss_samples', [])) == ([], [])
    assert not any('MG1' in text for text in run.warnings)


# ---- collate functions that drop the samples


@MODELS.register_module()
class PlainModel(BaseModel):
    """Model that takes tensors."""

    def __init__(self, data_preprocessor: Any = None) -> None:
        super().__init__(data_preprocessor)
        self.conv = torch.nn.Conv2d(3, 19, 1)

    def forward(self, inputs: torch.Tensor, data_samples: Any = None, labels: Any = None, mode: str = '') -> Any:
        labels = data_samples['labels'] if isinstance(data_samples, dict) else labels
        scores = self.conv(inputs.float() / 255)
        return dict(loss=torch.nn.functional.cross_entropy(scores, labels.squeeze(1).long(), ignore_index=255))


def stack(batch: List[Dict[str, Any]]) -> List[torch.Tensor]:
    return [
        torch.stack([one['inputs'] for one in batch]),
        torch.stack([one['data_samples'].gt_sem_seg.data for one in batch]),
    ]


@FUNCTIONS.register_module()
def collate_samples(batch: List[Dict[str, Any]]) -> Dict[str, Any]:
    """Like ``yolov5_collate``: one tensor of all labels."""
    inputs, labels = stack(batch)
    return dict(inputs=inputs, data_samples=dict(labels=labels))


@FUNCTIONS.register_module()
def collate_tensors(batch: List[Dict[str, Any]]) -> Dict[str, Any]:
    inputs, labels = stack(batch)
    return dict(inputs=inputs, labels=labels)


@FUNCTIONS.register_module()
def collate_tuple(batch: List[Dict[str, Any]]) -> Any:
    inputs, labels = stack(batch)
    return inputs, None, labels


def plain_config(root: str, work_dir: str, collate: str, **loader: Any) -> Config:
    config = tiny_config(root, work_dir)
    config.model = dict(type='PlainModel')
    config.train_dataloader.update(collate_fn=dict(type=collate), **loader)
    return config


@pytest.mark.parametrize('workers', [0, pytest.param(2, marks=pytest.mark.slow)])
@pytest.mark.parametrize('is_by_epoch', [False, True])
def test_reports_reach_the_hook_next_to_tensors(
    cityscapes: str, work_dir: str, is_by_epoch: bool, workers: int
) -> None:
    config = plain_config(cityscapes, work_dir, 'collate_samples', num_workers=workers)
    if is_by_epoch:
        by_epoch(config, epochs=1)
    run = train(config)
    assert skipped(run) == [planted(cityscapes)] * 3
    assert [line['iter'] for line in run.lines()] == [1, 2, 3, 4]
    assert not any('collate' in text for text in run.warnings)


@pytest.mark.parametrize('collate', ['collate_tensors', 'collate_tuple'])
def test_reports_that_never_arrive_are_named_once(cityscapes: str, work_dir: str, collate: str) -> None:
    run = train(plain_config(cityscapes, work_dir, collate))
    assert sum(collate in text for text in run.warnings) == 1
