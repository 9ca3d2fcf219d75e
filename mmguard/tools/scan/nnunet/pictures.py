"""Slices on the page: of the worst files the slice that holds most of what is wrong."""

from __future__ import annotations

import os
import shutil
import tempfile
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, Dict, Optional, Tuple

import numpy as np

from mmguard.findings.views import listing
from mmguard.tools.report.page import Section, WorstFile
from mmguard.tools.scan.nnunet.readers.choose import open_volume
from mmguard.tools.scan.nnunet.readers.volume import CannotRead
from mmguard.tools.scan.nnunet.record import is_whole

if TYPE_CHECKING:
    from mmguard.tools.scan.run import SetResult

#: Files that are drawn: as many as the page shows.
_DRAWN = 12
#: Damaged files, and pillow that is not installed: the file is named without a picture.
_CANNOT_DRAW = (CannotRead, OSError, ValueError, ImportError)
#: Pictures hold 16 bits: what is no integer from 0 to 65,534 is drawn as this.
_OTHER = 0xFFFF


def section_of_cases(result: SetResult, stack: ExitStack) -> Section:
    """The part of the page on one data set: findings, slices of the worst files, and every other fault in words.

    Args:
        result (SetResult): What was found.
        stack (ExitStack): Removes the pictures of slices when the page has been written.
    """
    volumes = result.facts.volumes
    assert volumes is not None
    folder = tempfile.mkdtemp(prefix='mmguard-slices-')
    stack.callback(shutil.rmtree, folder, ignore_errors=True)
    worst = [_drawn(file, volumes.reader, os.path.join(folder, str(n))) for n, file in enumerate(result.worst[:_DRAWN])]
    worst += [WorstFile(_named(file), values=_values(file), skipped=file['invalid']) for file in result.worst[_DRAWN:]]
    shown = {(file['kind'], file['file']) for file in result.worst}
    for kind, faults in volumes.faults.items():
        rest = [fault for fault in faults if (kind, fault.file) not in shown]
        worst += [WorstFile(f'{fault.file}: {fault.detail}', skipped=fault.voxels) for fault in rest]
    return Section(result.name, result.facts, result.findings, worst, result.notes)


def _named(file: Dict[str, Any]) -> str:
    name = f'{file["file"]}, slice {file["slice"]}' if len(file['slices']) else file['file']
    others = [value for value in file['values'] if not _is_drawn_as_is(value)]
    return f'{name}: {listing(others, 4)} (drawn as {_OTHER})' if others else name


def _is_drawn_as_is(value: str) -> bool:
    return is_whole(value) and 0 <= int(value) < _OTHER


def _values(file: Dict[str, Any]) -> Dict[int, int]:
    drawn = {int(value): count for value, count in file['values'].items() if _is_drawn_as_is(value)}
    others = file['invalid'] - sum(drawn.values())
    return {**drawn, **({_OTHER: others} if others > 0 else {})}


def _drawn(file: Dict[str, Any], reader: str, stem: str) -> WorstFile:
    """A slice with what is wrong marked: of a label file, and over its image; of an image, where it is not finite."""
    place, values = file['slice'], _values(file)
    try:
        label = slice_of(file['path'], reader, place, as_label=True)
        if not file['is_label']:
            label = np.where(label == _OTHER, _OTHER, 0)
        label_path = _save(label.astype(np.uint16), f'{stem}-label.png')
    except _CANNOT_DRAW:
        return WorstFile(_named(file), values=values, skipped=file['invalid'])
    image: Optional[str] = None
    behind = file['image'] if file['is_label'] else file['path']
    if behind is not None:
        try:
            image = _save(_gray(slice_of(behind, reader, place)), f'{stem}-image.png')
        except _CANNOT_DRAW:
            pass  # reported as a finding
    return WorstFile(_named(file), image_path=image, label_path=label_path, values=values, skipped=file['invalid'])


def slice_of(path: str, reader: str, place: int, as_label: bool = False) -> np.ndarray:
    """Reads one slice.

    Args:
        path (str): The file.
        reader (str): nnU-Net's class that would read it.
        place (int): Which slice, from 0 along z.
        as_label (bool): Whole numbers; what is none becomes 65,535.

    Returns:
        np.ndarray: (y, x).

    Raises:
        CannotRead: The file is damaged.
        ValueError: There is no such slice.
    """
    with ExitStack() as stack:
        volume = open_volume(path, reader, stack)
        first, last = place * volume.lines, (place + 1) * volume.lines
        begin, wanted = 0, []
        for block in volume.blocks():
            wanted.append(block[max(0, first - begin) : max(0, last - begin)])
            begin += len(block)
            if begin >= last:
                flat = np.concatenate(wanted).ravel() * volume.slope + volume.inter
                rows = _rows(volume.shape, flat.size)
                return np.asarray(_as_label(flat).reshape(rows) if as_label else flat.reshape(rows))
    raise ValueError(f'{path} has no slice {place}')


def _rows(shape: Tuple[int, ...], size: int) -> Tuple[int, int]:
    width = shape[-1] if shape and size % shape[-1] == 0 else size
    return size // width, width


def _as_label(values: np.ndarray) -> np.ndarray:
    values = np.asarray(values, np.float32)
    whole = np.isfinite(values) & (np.rint(values) == values) & (values >= 0) & (values < _OTHER)
    return np.where(whole, values, _OTHER).astype(np.int32)


def _gray(values: np.ndarray) -> np.ndarray:
    """An image as it is looked at: the middle 98 % of its values over black to white."""
    values = np.asarray(values, np.float64)
    finite = values[np.isfinite(values)]
    low, high = np.percentile(finite, (1, 99)) if finite.size else (0.0, 1.0)
    scaled = (np.nan_to_num(values, nan=low, posinf=high, neginf=low) - low) / max(high - low, 1e-9)
    return np.asarray((scaled.clip(0, 1) * 255).astype(np.uint8))


def _save(pixels: np.ndarray, path: str) -> str:
    from PIL import Image

    Image.fromarray(pixels).save(path)
    return path
