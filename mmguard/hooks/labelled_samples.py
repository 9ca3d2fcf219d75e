"""The samples of a batch whose labels count, each once."""

from __future__ import annotations

from typing import Any, List, Sequence

from mmguard.hooks.discovery import samples_of
from mmguard.log.source import source_of


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
