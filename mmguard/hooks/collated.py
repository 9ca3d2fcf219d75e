"""Batches that hold no samples: what the guards left in them travels beside the tensors that were made of them."""

from __future__ import annotations

from functools import partial
from typing import Any, Callable, Iterator, List, Sequence

from mmengine.dataset import default_collate, pseudo_collate
from mmengine.structures import BaseDataElement, InstanceData

from mmguard.hooks.discovery import samples_of
from mmguard.labels.tally import LABEL_GUARD

#: They keep the samples.
_KEEP = (default_collate, pseudo_collate)


def keep_reports(loader: Any) -> None:
    """Has the batches of a loader hold the reports of their samples, where its collate function may leave them behind.

    mmyolo's ``yolov5_collate`` makes one tensor of all labels of a batch; file names and tallies end there.

    Args:
        loader (DataLoader): No iteration of it has begun.
    """
    collate = getattr(loader, 'collate_fn', None)
    stock = collate.func if isinstance(collate, partial) else collate
    if callable(collate) and stock not in _KEEP and not isinstance(collate, KeepsReports):
        loader.collate_fn = KeepsReports(collate)


class KeepsReports:
    """A collate function that adds the reports of the samples under ``data_samples['label_guard']``.

    Args:
        collate (callable): What makes the batch. One that holds samples, or whose ``data_samples`` is no dict, stays
            as it is.
    """

    def __init__(self, collate: Callable[[Sequence[Any]], Any]) -> None:
        self.collate = collate

    def __call__(self, batch: Sequence[Any]) -> Any:
        reports = list(_reports(samples_of(list(batch))))  # before it: it may write to the samples
        collated = self.collate(batch)
        held = collated.get('data_samples') if isinstance(collated, dict) else None
        if isinstance(held, dict) and not samples_of(held):
            held[LABEL_GUARD] = reports
        return collated


def _reports(samples: List[BaseDataElement]) -> Iterator[BaseDataElement]:
    """Of each sample its file, what the guards left, and whether it has nothing to train on."""
    for sample in samples:
        report = BaseDataElement()
        for key in ('img_path', 'seg_map_path', LABEL_GUARD):
            if sample.get(key) is not None:
                report.set_field(sample.get(key), key, field_type='metainfo')
        instances = sample.get('gt_instances')
        if instances is not None and instances.keys() and not len(instances):
            report.gt_instances = InstanceData(labels=[])
        yield report
