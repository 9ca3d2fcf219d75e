"""Triton kernel that sanitizes and counts class labels, in two kernel launches instead of about twenty.

Imported by ``mmguard.functional`` if the environment variable ``MMGUARD_TRITON`` is 1. It has run only in Triton's
interpreter, not yet on a GPU.
"""

from __future__ import annotations

import logging

import torch
import triton
import triton.language as tl
from torch import Tensor
from torch.library import custom_op

from mmguard.functional import format
from mmguard.functional.update import HIGHEST, LOWEST, TABLE_FROM

#: Oldest supported version of triton: earlier interpreters return garbage with numpy 2.
OLDEST = (3, 2)
WIDTH = HIGHEST - LOWEST + 1
HEADER = TABLE_FROM + WIDTH
BLOCK = 1024
#: Number of distinct invalid values that a block counts with one addition each; others are counted label by label.
ROUNDS = 3

_failed = False


@triton.jit(do_not_specialize=['n', 'classes', 'ignored'])
def _labels_kernel(  # type: ignore[no-untyped-def]
    given, target, counts, n, classes, ignored,
    CLIP: tl.constexpr, LOW: tl.constexpr, SLOTS: tl.constexpr, TABLE: tl.constexpr, AGAIN: tl.constexpr,
    SIZE: tl.constexpr,
):  # fmt: skip
    # counts: kept, valid, seen, skipped, remapped, then the numbers of the invalid values
    at = tl.program_id(0).to(tl.int64) * SIZE + tl.arange(0, SIZE)
    there = at < n
    label = tl.load(given + at, mask=there, other=0).to(tl.int64)
    outside = (label < 0) | (label >= classes)
    invalid = there & outside & (label != ignored)
    if CLIP:
        clean = tl.where(label < 0, 0, tl.where(label >= classes, classes - 1, label))
        drop = (clean == ignored) | (label == ignored)
    else:
        clean = label
        drop = outside | (label == ignored)
    tl.store(target + at, tl.where(drop, classes, clean), mask=there)
    tl.atomic_add(counts, tl.sum((there & (drop == 0)).to(tl.int64), 0))
    tl.atomic_add(counts + 1, tl.sum((there & (invalid == 0)).to(tl.int64), 0))
    if tl.program_id(0) == 0:
        tl.store(counts + 2, n.to(tl.int64))
    wrong = tl.sum(invalid.to(tl.int64), 0)
    if wrong > 0:  # rare, so valid batches skip this
        tl.atomic_add(counts + (4 if CLIP else 3), wrong)
        slot = label - LOW
        rest = invalid & (slot >= 0) & (slot < SLOTS)
        for _ in range(AGAIN):
            value = tl.max(tl.where(rest, slot, -1), 0)
            same = rest & (slot == value)
            tl.atomic_add(counts + TABLE + value, tl.sum(same.to(tl.int64), 0), mask=value >= 0)
            rest = rest & (slot != value)
        tl.atomic_add(counts + TABLE + slot, tl.full([SIZE], 1, tl.int64), mask=rest)


def launch(given: Tensor, num_classes: int, ignore_index: int, clips: bool) -> Tensor:
    """Run the kernel, and return the buffer of :func:`sanitize_labels`."""
    given = given.contiguous()
    given = given.view(torch.uint8) if given.dtype == torch.bool else given
    buffer = torch.empty(HEADER + given.numel(), dtype=torch.int64, device=given.device)
    counts, target = buffer[:HEADER].zero_(), buffer[HEADER:]
    grid = (max(1, -(-given.numel() // BLOCK)),)
    with torch.cuda.device_of(given):  # does nothing on other devices
        _labels_kernel[grid](
            given, target, counts, given.numel(), num_classes, ignore_index,
            clips, LOWEST, WIDTH, TABLE_FROM, ROUNDS, BLOCK,
        )  # fmt: skip
    return buffer


def compute(given: Tensor, num_classes: int, ignore_index: int, clips: bool) -> Tensor:
    """Compute the buffer of :func:`sanitize_labels` with PyTorch's operations."""
    found = format.sanitize_by_operations(given, num_classes, ignore_index, 'clip' if clips else 'ignore')
    kept, counts = found.count_by_value()
    return torch.cat((torch.stack((kept, found.count_valid())), counts, found.target.flatten()))


@custom_op('mmguard::sanitize_labels', mutates_args=())
def sanitize_labels(given: Tensor, num_classes: int, ignore_index: int, clips: bool) -> Tensor:
    """Return an int64 buffer: kept, valid, seen, skipped, remapped; then a count per invalid value; then the labels."""
    global _failed
    if not _failed:
        try:
            return launch(given, num_classes, ignore_index, clips)
        except Exception as error:  # a compiler, a driver and a device may fail in any way
            _failed = True
            logging.getLogger('mmguard').warning(
                'mmguard: the Triton kernel for labels does not run here (%s: %s); PyTorch sanitizes labels instead',
                type(error).__name__, (str(error).splitlines() or [''])[-1],
            )  # fmt: skip
    return compute(given, num_classes, ignore_index, clips)


@sanitize_labels.register_fake
def _(given: Tensor, num_classes: int, ignore_index: int, clips: bool) -> Tensor:
    return given.new_empty(HEADER + given.numel(), dtype=torch.int64)


def enable() -> None:
    """Use the kernel from now on: for labels on a GPU, or in Triton's interpreter on any device."""
    if tuple(int(part) for part in triton.__version__.split('.')[:2]) < OLDEST:
        raise ImportError(f'triton {triton.__version__} is too old: the kernel for labels needs 3.2')
    format.kernel = sanitize_labels
