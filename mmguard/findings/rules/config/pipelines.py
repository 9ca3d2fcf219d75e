"""Rules about transforms that corrupt or reject labels, and about image and window sizes that do not fit."""

from __future__ import annotations

import re
from typing import Any, Iterator, List, Optional, Tuple

from mmguard.config.parts import (
    Part,
    find_datasets,
    find_pipelines,
    find_preprocessors,
    find_transforms,
    get_class_names,
)
from mmguard.config.read import ReadConfig
from mmguard.facts.labels import LabelFacts
from mmguard.findings.config_edits import propose
from mmguard.findings.edits import Edit
from mmguard.findings.finding import ERROR, LIKELY, POSSIBLE, WARNING, Finding
from mmguard.findings.rule import ConfigRule, Example
from mmguard.findings.views import get_annotations, join_items
from mmguard.language import Message

#: Names of transforms that move pixels, and names of transforms that set the size of an image.
_MOVES, _RESIZES = re.compile('Resize|Crop|Flip|Rotate|Affine|Shear|Translate|Expand'), re.compile('Resize')
_LOADERS = ('LoadAnnotations', 'LoadPanopticAnnotations')


class LoadedTooLate(ConfigRule):
    code = 'MG381'
    summary = 'The training loads labels after it has resized, cropped or flipped the image.'
    title = '{loader} comes after {step} in the training pipeline: the image is transformed, but its labels are not.'
    why = (
        'The labels no longer match the transformed image. Only validation pipelines of label maps load labels last, '
        'because predictions are resized to the label map.'
    )
    example = Example(
        wrong="[dict(type='LoadImageFromFile'), dict(type='Resize', ...), dict(type='LoadAnnotations'), ...]",
        right="[dict(type='LoadImageFromFile'), dict(type='LoadAnnotations'), dict(type='Resize', ...), ...]",
    )
    limits = 'Transforms of your own that move pixels are not recognized.'
    advice = 'Put {loader} before {step}.'

    def look(self, config: ReadConfig) -> Iterator[Finding]:
        for steps in find_pipelines(config):
            loader = next((step for step in steps if step.name in _LOADERS and step.split == 'train'), None)
            before = steps[: steps.index(loader)] if loader is not None else []
            moved = next((step for step in before if _MOVES.search(step.name)), None)
            if loader is not None and moved is not None:
                words = {'loader': loader.name, 'step': moved.name}
                edit = _insert('Load the labels first.', [step for step in steps if step is not loader], loader, moved)
                yield self.report_at(loader.path, loader.name, words, edits=[edit] if edit else [])


class GapsBetweenWindows(ConfigRule):
    code = 'MG382'
    summary = 'The stride of sliding-window inference is larger than the window.'
    title = 'stride={stride} is larger than crop_size={window}: pixels between two windows are never predicted.'
    why = 'Validation fails at the first image larger than the window: `assert (count_mat == 0).sum() == 0`.'
    example = Example(wrong='crop_size=(512, 512), stride=(768, 768)', right='crop_size=(512, 512), stride=(341, 341)')
    advice = 'Write a stride of at most crop_size; two thirds of crop_size is usual.'

    def look(self, config: ReadConfig) -> Iterator[Finding]:
        test = config.part('model').get('test_cfg')
        test = test if isinstance(test, dict) else {}
        window, stride = _read_size(test.get('crop_size')), _read_size(test.get('stride'))
        if test.get('mode') == 'slide' and any(step > side for step, side in zip(stride, window)):
            usual = tuple(max(2 * side // 3, 1) for side in window)
            edit = propose('Let the windows overlap by a third.', ('model.test_cfg.stride', usual))
            words = {'stride': tuple(stride), 'window': tuple(window)}
            yield self.report_at('model.test_cfg.stride', tuple(stride), words, edits=[edit])


class NotCropped(ConfigRule):
    code = 'MG383'
    summary = 'data_preprocessor.size only pads, but the pipeline makes larger images and does not crop them.'
    title = (
        'data_preprocessor.size={size} only pads, but {step} makes images of up to {largest}, and no step crops them.'
    )
    why = 'Images of different sizes cannot be stacked: the run ends with "stack expects each tensor to be equal size".'
    example = Example(
        wrong="size=(512, 512), [dict(type='RandomResize', scale=(512, 512), ratio_range=(0.5, 2.0))]",
        right="size=(512, 512), [dict(type='RandomResize', ...), dict(type='RandomCrop', crop_size=(512, 512))]",
    )
    limits = 'The image files are not read: images of equal size stay equal after Resize, and the run works.'
    advice = 'Write `dict(type="RandomCrop", crop_size={size})` after {step}.'

    def look(self, config: ReadConfig) -> Iterator[Finding]:
        size = next((tuple(_read_size(one.config.get('size'))) for one in find_preprocessors(config)), ())
        batch = config.part('train_dataloader').get('batch_size')
        for steps in find_pipelines(config) if size and config.framework == 'mmseg' and batch != 1 else ():
            last = next((step for step in reversed(steps) if _RESIZES.search(step.name)), None)
            largest = _find_largest(last) if last is not None and last.split == 'train' else []
            cropped = any('Crop' in step.name for step in steps)
            if last is not None and not cropped and any(one > most for one, most in zip(largest, sorted(size))):
                words = {'size': size, 'step': last.name, 'largest': ' x '.join(map(str, largest))}
                crop = Part('', {'type': 'RandomCrop', 'crop_size': size}, last.scope)
                edit = _insert('Crop to data_preprocessor.size.', steps, crop, last, after=True)
                # A fixed scale gives images of equal shape an equal size.
                severity = WARNING if last.name == 'Resize' else ERROR
                yield self.report_at(last.path, last.name, words, severity=severity, edits=[edit] if edit else [])


def _read_size(value: Any) -> List[int]:
    """Return a size as a list of two integers, or [] if ``value`` is not an integer or a pair of integers."""
    sides = list(value) if isinstance(value, (list, tuple)) else [value, value]
    return sides if len(sides) == 2 and all(type(side) is int for side in sides) else []


def _find_largest(resize: Part) -> List[int]:
    """Return the largest [short side, long side] of resized images, or [] if their size is fixed or unknown."""
    if resize.name == 'Resize' and not resize.config.get('keep_ratio'):
        return []
    said, ratios = resize.config.get('scales'), resize.config.get('ratio_range')
    said = said if isinstance(said, (list, tuple)) else [resize.config.get('scale')]
    scales = [sorted(sides) for sides in map(_read_size, said) if sides]
    ratios = ratios if isinstance(ratios, (list, tuple)) else ()
    most = max((one for one in ratios if isinstance(one, (int, float))), default=1.0)
    return [int(most * max(sides)) for sides in zip(*scales)]


def _insert(title: str, steps: List[Part], new: Part, at: Part, after: bool = False) -> Optional[Edit]:
    """Return an edit that inserts ``new`` before (or after) the step ``at``, or ``None`` if a step is nested."""
    pipeline = at.path.rpartition('[')[0]
    if not all(step.written and step.path.rpartition('[')[0] == pipeline for step in steps):
        return None
    place = steps.index(at) + after
    order = [step.config for step in (*steps[:place], new, *steps[place:])]
    return propose(Message(title), (pipeline, order))


_LEFT = re.compile(r'(?i)(?<![a-z])(?:left|l)(?![a-z])')


class SidesNotSwapped(ConfigRule):
    code = 'MG234'
    severity = WARNING
    summary = 'RandomFlip mirrors label maps, but does not swap the labels of left and right.'
    title = 'RandomFlip mirrors images, but the labels of left and right are not swapped: {pairs}.'
    why = 'A mirrored left arm looks like a right arm but keeps its label, so the model confuses left and right.'
    example = Example(
        wrong="classes=('left-arm', 'right-arm'); dict(type='RandomFlip', prob=0.5)",
        right="dict(type='RandomFlip', prob=0.5, swap_seg_labels=[(0, 1)])",
    )
    limits = 'Sides are recognized by the words left and right (or l and r) in the class names.'
    advice = 'Write `swap_seg_labels={labels}` in RandomFlip, or prob=0.'

    def look(self, config: ReadConfig) -> Iterator[Finding]:
        names = next(filter(None, map(get_class_names, (d for d in find_datasets(config) if d.split == 'train'))), None)
        pairs = _find_sides(names or [])
        for flip in find_transforms(config) if pairs and config.framework == 'mmseg' else ():
            is_mirror = flip.name == 'RandomFlip' and flip.config.get('prob') != 0 and flip.split == 'train'
            vertical = flip.config.get('direction') == 'vertical'
            if is_mirror and not vertical and not flip.config.get('swap_seg_labels'):
                place = flip.place('swap_seg_labels')
                shown = join_items((f'{names[a]}, {names[b]}' for a, b in pairs), 3) if names else ''
                asked = Message('Are these the left and the right side of the same thing: {pairs}?', pairs=shown)
                edit = propose('Swap left and right labels.', (place, [list(pair) for pair in pairs]), question=asked)
                words = {'pairs': shown, 'labels': str(pairs)}
                yield self.report_at(place, None, words, edits=[edit])


def _find_sides(names: List[str]) -> List[Tuple[int, int]]:
    """Return the pairs of labels (left, right) whose class names differ only in the side.

    Example:
        >>> _find_sides(['hat', 'Left-arm', 'Right-arm', 'leftover'])
        [(1, 2)]
    """
    places = {name.lower(): place for place, name in enumerate(names)}

    def find_right(name: str) -> Optional[int]:
        found = _LEFT.search(name)
        other = {'left': 'right', 'l': 'r'}.get(found.group().lower(), '') if found else ''
        return places.get(_LEFT.sub(other, name, count=1).lower()) if found else None

    return [(place, right) for place, right in enumerate(map(find_right, names)) if right is not None]


class NegativeCrop(ConfigRule):
    code = 'MG233'
    follows = ('MG146',)
    severity = WARNING
    summary = 'filter_empty_gt=False keeps images without an object, but RandomCrop rejects them.'
    why = (
        'With allow_negative_crop=False, the default in MMDetection, RandomCrop rejects a crop without a box, and the '
        'data set draws another image. So images without an object are silently never trained.'
    )
    example = Example(
        wrong="filter_cfg=dict(filter_empty_gt=False); dict(type='RandomCrop', crop_size=(512, 512))",
        right="dict(type='RandomCrop', crop_size=(512, 512), allow_negative_crop=True)",
    )
    limits = 'Only RandomCrop of MMDetection is checked, not transforms of your own.'
    advice = 'Write allow_negative_crop=True in RandomCrop, or exclude images without an object: filter_empty_gt=True.'

    def look(self, config: ReadConfig) -> Iterator[Finding]:
        kept = any(
            False
            in (dataset.config.get('filter_empty_gt'), (dataset.config.get('filter_cfg') or {}).get('filter_empty_gt'))
            for dataset in find_datasets(config)
            if dataset.split == 'train'
        )
        for crop in find_transforms(config) if kept and config.framework == 'mmdet' else ():
            if crop.split == 'train' and crop.name == 'RandomCrop' and not crop.config.get('allow_negative_crop'):
                place = crop.place('allow_negative_crop')
                yield self.report_at(place, False, edits=[propose('Keep crops without an object.', (place, True))])

    def certainty_given(self, finding: Finding, labels: LabelFacts) -> str:
        return LIKELY if get_annotations(labels).images_without_target else POSSIBLE
