"""Checks of the files of a case: nnU-Net's integrity check, and further checks.

Source: ``check_cases`` and ``verify_labels`` in nnunetv2/experiment_planning/verify_dataset_integrity.py.
"""

from __future__ import annotations

import os
import re
from typing import Any, Dict, Iterator, List, Mapping, Sequence, Tuple

import numpy as np

from mmguard.facts import volumes as kinds
from mmguard.facts.volumes import CaseFault
from mmguard.formats.faults import make_printable
from mmguard.formats.volumes.record import FRACTIONS, INF, NAN, CaseRecord, FileRecord, is_integer
from mmguard.nnunet.format.spec import MSD, DatasetSpec
from mmguard.text import quantity

_MOST_RANGES = 6
Fault = Tuple[str, CaseFault]
_NAMED_VALUES = 6
_EXAMPLES = 4
_FIRST_CHANNEL = re.compile(r'_0000(?=\.[^/\\]*$)')


def describe_slices(counts: Mapping[int, int]) -> str:
    """Describe the slices that contain a value, and name the slice with the most voxels of it if the counts differ.

    Args:
        counts (Mapping[int, int]): Index of a slice, counted from 0 -> number of voxels of the value in this slice.

    Example:
        >>> describe_slices({3: 1, 4: 9, 5: 2, 9: 1})
        'slices 3-5, 9 (most in slice 4: 9)'
        >>> describe_slices({7: 12}), describe_slices({7: 1, 8: 1})
        ('slice 7', 'slices 7-8')
    """
    if not counts:
        return ''
    ranges = _find_ranges(sorted(counts))
    texts = [f'{first}-{last}' if last > first else str(first) for first, last in ranges[:_MOST_RANGES]]
    rest = f' and {quantity(len(ranges) - _MOST_RANGES, "more range")}' if len(ranges) > _MOST_RANGES else ''
    if len(counts) == 1:
        return f'slice {texts[0]}'
    fullest = min(counts, key=lambda place: (-counts[place], place))
    if counts[fullest] == min(counts.values()):
        return f'slices {", ".join(texts)}{rest}'
    return f'slices {", ".join(texts)}{rest} (most in slice {fullest}: {counts[fullest]:,})'


def _find_ranges(places: List[int]) -> List[Tuple[int, int]]:
    found: List[Tuple[int, int]] = []
    for place in places:
        if found and place == found[-1][1] + 1:
            found[-1] = (found[-1][0], place)
        else:
            found.append((place, place))
    return found


class CaseChecker:
    """Checker of nnU-Net cases that yields the faults of their files; file names are relative to ``root``."""

    def __init__(self, spec: DatasetSpec, root: str) -> None:
        self.spec = spec
        self.root = root
        self.expected = frozenset(spec.expected)
        self.case = ''  #: Name of the case that is checked.

    def find_faults(self, record: CaseRecord) -> Iterator[Fault]:
        """Yield (kind, fault) for each fault of a case."""
        self.case = make_printable(record.case)
        files = ([record.label] if record.label else []) + record.images
        for file in files:
            if file.fault:
                said = f'{file.fault}: {file.detail}' if file.detail else file.fault
                yield kinds.UNREADABLE, self._build_fault(file, said, file.missing)
            elif file.form:
                yield kinds.FORM, self._build_fault(file, file.form, file.voxels)
        images = [image for image in record.images if image.is_read]
        yield from self._judge_channels(record, images)
        for image in images:
            yield from self._judge_not_finite(image)
        for other in images[1:]:
            yield from self._compare(other, images[0], 'first channel')
        label = record.label
        if label is not None and label.is_read:
            yield from self._judge_not_finite(label)
            if not label.form:
                yield from self._judge_form(label)
            if images and max(images[0].dimension, label.dimension) <= 3:  # more dimensions are reported as a form
                yield from self._compare(label, images[0], 'image')
            yield from self._judge_values(label)

    # ---- one file

    def _judge_form(self, label: FileRecord) -> Iterator[Fault]:
        if label.dimension > 3:
            said = f'the label is {label.dimension}-D, {_join(label.shape)}: nnU-Net takes 3-D files only'
        elif label.shape[0] > 1:
            said = f'the label has {label.shape[0]} channels (colors): a label file holds one value per pixel'
        else:
            return
        yield kinds.FORM, self._build_fault(label, said, label.voxels)

    def _judge_channels(self, record: CaseRecord, images: Sequence[FileRecord]) -> Iterator[Fault]:
        for image in images:
            if image.dimension > 3 and not image.form and self.spec.layout != MSD:
                said = f'the image is {image.dimension}-D, {_join(image.shape)}: nnU-Net takes one 3-D file per channel'
                yield kinds.FORM, self._build_fault(image, said, image.voxels)
        if self.spec.channels is None or not images or len(images) < len(record.images):
            return
        found = sum(image.shape[0] for image in images)
        first = images[0]
        if len(images) < self.spec.channels and len(images) > 1:
            return  # the missing channels were reported when the files were listed
        if found == 1 < self.spec.channels and _FIRST_CHANNEL.search(first.path):
            for number in range(1, self.spec.channels):
                place = _FIRST_CHANNEL.sub(f'_{number:04d}', self.shorten_path(first.path))
                yield kinds.CHANNELS, CaseFault(self.case, place, 'this channel is missing')
        elif found != self.spec.channels:
            where = f'{quantity(found, "channel")} in {quantity(len(images), "file")}'
            said = f'{where}, but dataset.json declares {self.spec.channels}'
            yield kinds.CHANNELS, self._build_fault(first, said, sum(image.voxels for image in images))

    def _judge_not_finite(self, file: FileRecord) -> Iterator[Fault]:
        values = {name: count for name, count in ((NAN, file.nan), (INF, file.inf)) if count}
        if values:
            slices = self._describe_slices_of(file, list(values))
            said = _describe_values(values, slices)
            yield kinds.NOT_FINITE, self._build_fault(file, said, sum(values.values()), values, slices)

    def _judge_values(self, label: FileRecord) -> Iterator[Fault]:
        if not self.expected:
            return
        whole = {value: count for value, count in label.values.items() if is_integer(value)}
        wrong = {value: count for value, count in whole.items() if int(value) not in self.expected}
        if label.holds_intensities and (wrong or label.fractions):
            yield kinds.INTENSITIES, self._find_intensities(label)
            return
        if wrong:
            slices = self._describe_slices_of(label, list(wrong))
            said = _describe_values(wrong, slices)
            if label.left_out:
                said += f'; {label.left_out:,} voxels of further values'
            voxels = sum(wrong.values()) + label.left_out
            yield kinds.UNEXPECTED, self._build_fault(label, said, voxels, wrong, slices)
        if label.fractions:
            yield kinds.FRACTIONS, self._find_fractions(label)
        held = {int(value) for value in whole}
        if held and not label.fractions and not label.nan and not label.inf:
            if held == {self.spec.ignore}:
                said = f'every voxel is {self.spec.ignore}, the ignored value'
                yield kinds.IGNORED_ONLY, self._build_fault(label, said, label.voxels)
            elif held <= {0, self.spec.ignore}:
                said = 'every voxel is background' + (' or ignored' if len(held) > 1 else '')
                yield kinds.BACKGROUND_ONLY, self._build_fault(label, said, label.voxels)

    def _find_intensities(self, label: FileRecord) -> CaseFault:
        frequent = sorted(label.values, key=lambda value: -label.values[value])[:_EXAMPLES]
        said = (
            f'{"more than " if label.left_out else ""}{quantity(len(label.values), "value")}, most often '
            f'{", ".join(frequent)}; {label.unlike / label.pairs:.0%} of neighboring voxels differ'
        )
        ends = sorted(label.values, key=float)
        values = {value: label.values[value] for value in (ends[0], ends[-1])}
        return self._build_fault(label, said, label.voxels, values)

    def _find_fractions(self, label: FileRecord) -> CaseFault:
        broken = {value: count for value, count in label.values.items() if not is_integer(value)}
        shown = sorted(broken, key=lambda value: (-broken[value], value))[:_NAMED_VALUES]
        named = ', '.join(f'{value} ({broken[value]:,})' for value in shown)
        more = f' and {quantity(len(broken) - len(shown), "more value")}' if len(broken) > len(shown) else ''
        where = self._describe_slices_of(label, [FRACTIONS])
        counted = quantity(label.fractions, 'voxel is not an integer', 'voxels are not integers')
        said = f'{counted}: {named}{more}'
        if where:
            said += f'; {where[FRACTIONS]}'
        if label.scaling:
            said += f'; the header scales values: value * {label.scaling[0]:g} + {label.scaling[1]:g}'
        return self._build_fault(label, said, label.fractions, {value: broken[value] for value in shown}, where)

    # ---- two files

    def _compare(self, file: FileRecord, other: FileRecord, name: str) -> Iterator[Fault]:
        voxels = file.voxels
        if file.shape[1:] != other.shape[1:]:
            said = f'{_join(file.shape[1:])}, its {name} {_join(other.shape[1:])} (z, y, x)'
            yield kinds.SHAPE, self._build_fault(file, said, voxels)
        pairs = {what: (own, getattr(other.geometry, what)) for what, own in vars(file.geometry).items()}
        differ = {
            what: f'{what} {_format_numbers(own)}, its {name} {_format_numbers(its)}'
            for what, (own, its) in pairs.items()
            if len(own) != len(its) or not np.allclose(own, its)  # nnU-Net's tolerance
        }
        if 'spacing' in differ:
            yield kinds.SPACING, self._build_fault(file, f'{differ.pop("spacing")} (z, y, x)', voxels)
        if differ:
            yield kinds.ORIENTATION, self._build_fault(file, '; '.join(differ.values()), voxels)

    # ---- texts

    def _build_fault(self, file: FileRecord, *details: Any) -> CaseFault:
        return CaseFault(self.case, self.shorten_path(file.path), *details)

    def shorten_path(self, path: str) -> str:
        return make_printable(path, os.path.abspath(self.root))

    def _describe_slices_of(self, file: FileRecord, values: Sequence[str]) -> Dict[str, str]:
        if not file.has_slices:
            return {}
        return {value: describe_slices(_count_along_z(file, value)) for value in values if file.slices.get(value)}


def _count_along_z(file: FileRecord, value: str) -> Dict[int, int]:
    """Count the voxels of a value in each slice, summed over channels, as {z: count}."""
    counts: Dict[int, int] = {}
    for place, count in file.slices.get(value, {}).items():
        z = place % file.shape[1]
        counts[z] = counts.get(z, 0) + count
    return counts


def _describe_values(values: Dict[str, int], slices: Dict[str, str]) -> str:
    ranked = sorted(values, key=lambda value: (-values[value], value))
    texts: List[str] = []
    for value in ranked[:_NAMED_VALUES]:
        where = f', {slices[value]}' if value in slices else ''
        name = f'value {value}' if is_integer(value) else {NAN: 'NaN', INF: 'infinite'}.get(value, value)
        texts.append(f'{name}: {quantity(values[value], "voxel")}{where}')
    rest = f'; {quantity(len(ranked) - _NAMED_VALUES, "more value")}' if len(ranked) > _NAMED_VALUES else ''
    return '; '.join(texts) + rest


def _join(shape: Sequence[int]) -> str:
    return 'x'.join(map(str, shape))


def _format_numbers(values: Sequence[float]) -> str:
    return '(' + ', '.join(f'{value + 0.0:.6g}' for value in values) + ')'
