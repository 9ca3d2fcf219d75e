"""The reports of samples of which a collate function makes tensors."""

from __future__ import annotations

from functools import partial
from typing import Any, Dict, List, Sequence

import pytest
import torch
from mmengine.dataset import default_collate, pseudo_collate
from mmengine.structures import BaseDataElement, InstanceData
from torch.utils.data import DataLoader

from mmguard.hooks.batches import KeepsReports, keep_reports, trained_samples
from mmguard.labels.tally import LABEL_GUARD, Tally
from mmguard.log.iteration_stats import IterationStats
from mmguard.transforms.record import leave_in_sample


def packed(number: int) -> Dict[str, Any]:
    """A sample with as many instances as its number, the last of which was skipped."""
    sample = BaseDataElement(metainfo=dict(img_path=f'{number}.jpg', img_shape=(8, 8)))
    sample.gt_instances = InstanceData(labels=torch.arange(number))
    leave_in_sample(sample, 'instances', Tally(number + 1, skipped=1, values={9: 1}, source=f'{number}.jpg'))
    return dict(inputs=torch.zeros(3, 8, 8), data_samples=sample)


def one_tensor(batch: Sequence[Dict[str, Any]], scale: int = 1) -> Dict[str, Any]:
    """As mmyolo's: the labels of the whole batch, with the number of their image."""
    labels = [one['data_samples'].gt_instances.labels * scale for one in batch]
    rows = [torch.stack((torch.full_like(found, at), found), dim=1) for at, found in enumerate(labels)]
    return dict(inputs=torch.stack([one['inputs'] for one in batch]), data_samples=dict(labels=torch.cat(rows)))


@pytest.mark.parametrize('workers', [0, 2])
def test_the_reports_travel_beside_the_tensors(workers: int) -> None:
    loader = DataLoader(
        [packed(n) for n in range(4)], batch_size=2, collate_fn=partial(one_tensor, scale=2), num_workers=workers
    )
    keep_reports(loader)
    keep_reports(loader)  # a second loop over the same loader
    first, second = loader
    assert first['data_samples']['labels'].tolist() == [[1, 0]]
    assert second['data_samples']['labels'].tolist() == [[0, 0], [0, 2], [1, 0], [1, 2], [1, 4]]
    span = IterationStats.of(trained_samples(first))
    assert [tally.source for tally in span.offending['instances']] == ['0.jpg', '1.jpg']
    assert (span.instances.skipped, span.instances.total, span.empty_images) == (2, 3, 1)
    span = IterationStats.of(trained_samples(second))
    assert [tally.source for tally in span.offending['instances']] == ['2.jpg', '3.jpg']
    assert span.empty_images == 0


@pytest.mark.parametrize('collate', [pseudo_collate, default_collate, partial(pseudo_collate)])
def test_what_keeps_the_samples_stays_as_it_is(collate: Any) -> None:
    loader = DataLoader([packed(1)], collate_fn=collate)
    keep_reports(loader)
    assert loader.collate_fn is collate


@pytest.mark.parametrize(
    'collate',
    [
        lambda batch: dict(data_samples=dict(sup=[one['data_samples'] for one in batch])),
        lambda batch: dict(data_samples=[one['data_samples'] for one in batch]),
        lambda batch: [one['inputs'] for one in batch],
    ],
)
def test_a_batch_that_holds_its_samples_or_nothing_of_them_is_as_the_function_made_it(collate: Any) -> None:
    batch: List[Dict[str, Any]] = [packed(1), packed(2)]
    made = KeepsReports(collate)(batch)
    assert LABEL_GUARD not in (made['data_samples'] if isinstance(made, dict) else made)
    assert str(made) == str(collate(batch))
