"""Errors by their words: data alone, grouped by where they arise.

Imports what findings may; no rules.
"""

from __future__ import annotations

from typing import Tuple

from mmguard.findings.signatures import (
    checkpoints,
    datasets,
    device,
    environment,
    memory,
    numbers,
    ranks,
    shapes,
    targets,
)
from mmguard.findings.signatures.signature import Cause, Signature

__all__ = ['GROUPS', 'SIGNATURES', 'Cause', 'Signature']

#: Where errors arise -> their signatures. The first that fits an error is taken: particular ones stand in front.
GROUPS = {
    'On the CUDA device': device.SIGNATURES,
    'Targets and indices': targets.SIGNATURES,
    'Shapes and types': shapes.SIGNATURES,
    'NaN and infinity': numbers.SIGNATURES,
    'Several processes': ranks.SIGNATURES,
    'Workers and crashes': memory.SIGNATURES,
    'Checkpoints and configs': checkpoints.SIGNATURES,
    'Packages': environment.SIGNATURES,
    'Reading data': datasets.SIGNATURES,
}

SIGNATURES: Tuple[Signature, ...] = tuple(signature for group in GROUPS.values() for signature in group)
