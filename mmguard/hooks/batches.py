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
    """Wrap a loader's collate function, if it may drop the reports of the samples, so that the batch keeps them.

    mmyolo's ``yolov5_collate`` makes one tensor of all labels of a batch and drops file names and tallies.

    Args:
        loader (DataLoader): Not yet iterated.
    """
    collate = getattr(loader, 'collate_fn', None)
    stock = collate.func if isinstance(collate, partial) else collate
    if callable(collate) and stock not in _KEEP and not isinstance(collate, KeepsReports):
        loader.collate_fn = KeepsReports(collate)


class KeepsReports:
    """Collate function that adds the reports of the samples as ``data_samples['label_guard']``.

    Args:
        collate (callable): Makes the batch. A batch that holds samples, or whose ``data_samples`` is not a dict, is
            left as it is.
    """

    def __init__(self, collate: Callable[[Sequence[Any]], Any]) -> None:
        self.collate = collate

    def __call__(self, batch: Sequence[Any]) -> Any:
        reports = list(_reports(samples_of(list(batch))))  # first: collate may write to the samples
        collated = self.collate(batch)
        held = collated.get('data_samples') if isinstance(collated, dict) else None
        if isinstance(held, dict) and not samples_of(held):
            held[LABEL_GUARD] = reports
        return collated


def _reports(samples: List[BaseDataElement]) -> Iterator[BaseDataElement]:
    """Yield a report per sample: its file, the tallies, and empty instances if it has none to train on."""
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
    """Return the samples with labels: mmdet's semi-supervised detectors call those without ``unsup_...``."""
    samples = data_batch.get('data_samples') if isinstance(data_batch, dict) else None
    if isinstance(samples, dict):
        samples = [part for name, part in samples.items() if not str(name).startswith('unsup')]
        return samples_of({'data_samples': samples})
    return samples_of(data_batch)


def evaluated_samples(data_batch: Any) -> List[Any]:
    """Return each sample once: test-time augmentation makes several views of it, with the same labels.

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
