"""The samples of a batch whose labels count, each once."""

from __future__ import annotations

from typing import Any, Dict, List

from mmguard.hooks.discovery import samples_of
from mmguard.log.source import UNKNOWN, source_of


def trained_samples(data_batch: Any) -> List[Any]:
    """Without those that have no labels by design: mmdet's semi-supervised detectors call them ``unsup_...``."""
    samples = data_batch.get('data_samples') if isinstance(data_batch, dict) else None
    if isinstance(samples, dict):
        samples = [part for name, part in samples.items() if not str(name).startswith('unsup')]
        return samples_of({'data_samples': samples})
    return samples_of(data_batch)


def evaluated_samples(data_batch: Any) -> List[Any]:
    """Each image once: test-time augmentation makes several views of it, with the same labels."""
    first: Dict[Any, Any] = {}
    for sample in samples_of(data_batch):
        source = source_of(sample)
        first.setdefault(id(sample) if source == UNKNOWN else source, sample)
    return list(first.values())
