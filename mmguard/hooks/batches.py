"""Samples of a batch: reports that travel with collated tensors, and the samples whose labels count."""

from __future__ import annotations

from functools import partial
from typing import Any, Callable, Iterator, List, Sequence

from mmengine.dataset import default_collate, pseudo_collate
from mmengine.structures import BaseDataElement, InstanceData

from mmguard.hooks.discovery import samples_of
from mmguard.labels.samples import source_of
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


def trained_samples(data_batch: Any) -> List[Any]:
    """Without those that have no labels by design: mmdet's semi-supervised detectors call them ``unsup_...``."""
    samples = data_batch.get('data_samples') if isinstance(data_batch, dict) else None
    if isinstance(samples, dict):
        samples = [part for name, part in samples.items() if not str(name).startswith('unsup')]
        return samples_of({'data_samples': samples})
    return samples_of(data_batch)


def evaluated_samples(data_batch: Any) -> List[Any]:
    """Each sample once: test-time augmentation makes several views of it, with the same labels.

    Several samples of one file (tiles of a large image) are several samples.
    """
    parts: Sequence[Any] = data_batch if isinstance(data_batch, (list, tuple)) else [data_batch]
    if isinstance(data_batch, dict) and 'data_samples' in data_batch:
        parts = [data_batch['data_samples']]
    found: List[Any] = []
    for part in parts:
        if isinstance(part, (list, tuple)) and part and all(isinstance(view, (list, tuple)) for view in part):
            for views in zip(*part):  # a list of all samples per view
                found += {source_of(sample): sample for sample in samples_of(list(views[::-1]))}.values()
        else:
            found += samples_of(part)
    return found
