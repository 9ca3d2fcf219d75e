"""Data sets that do not fit each other, their pipelines, and the metrics that evaluate them."""

from __future__ import annotations

import posixpath
import re
from dataclasses import replace
from itertools import zip_longest
from typing import Any, Dict, Iterable, Iterator, List, Optional, Sequence, Tuple

from mmguard.config.changes import change_config
from mmguard.config.guards import add_reporting
from mmguard.config.head_classes import find_class_counts, find_joined_lists, has_open_vocabulary
from mmguard.config.label_spaces import from_config
from mmguard.config.parts import (
    Part,
    find_datasets,
    find_metrics,
    find_pipelines,
    find_preprocessors,
    find_transforms,
    get_class_names,
    get_classes_path,
    get_metainfo,
    says_classes,
)
from mmguard.config.read import ReadConfig
from mmguard.facts.labels import LabelFacts
from mmguard.findings.config_edits import combine_pair, count_in_heads, insert_guard, name_classes, propose
from mmguard.findings.edits import Edit
from mmguard.findings.file_edits import rewrite
from mmguard.findings.finding import ERROR, LIKELY, POSSIBLE, WARNING, Finding
from mmguard.findings.rule import ConfigRule, Example, Facts
from mmguard.findings.views import VOID, get_annotations, join_items
from mmguard.language import Message
from mmguard.text import shorten

OWN_NUMBERS = 'Are the label maps of each data set numbered by its own class list?'
SAME_NAMES = 'Does each name mean the same class in all data sets?'
SAME_FILES = 'Does every annotation file list all of these categories, in this order?'
#: Keys of ``metainfo`` that data sets of different types do not share, so that ConcatDataset has to ignore them.
_OWN_KEYS = ('dataset_type', 'task_name', 'palette', 'label_map')


class JoinedSets(ConfigRule):
    code = 'MG590'
    follows = ('MG201', 'MG202')
    about_labels = True
    summary = 'The data sets of one training have different class lists.'
    title = (
        'These data sets are trained together, but label {label} is {here} here and {there} in {place}. '
        'Their {number} classes are: {union}.'
    )
    why = (
        'ConcatDataset does not translate labels: each data set numbers its own list. The one of mmengine refuses such '
        'data sets ("The meta information of the 2-th dataset does not match") unless ignore_keys names classes; the '
        'one of mmdet trains one label as several classes.'
    )
    example = Example(
        wrong="datasets=[dict(metainfo=dict(classes=('cat', 'dog'))), dict(metainfo=dict(classes=('dog', 'car')))]",
        right="classes=('cat', 'dog', 'car') in both; label maps of the second also need label_map={0: 1, 1: 2}",
    )
    limits = (
        'Classes are matched by name: it cannot see that "car" and "vehicle" are the same. An object whose class is '
        'not labeled in its own data set is trained as background.'
    )
    advice = (
        'Write one list, {union}, as metainfo of every data set, and count it in the heads. Label maps: translate each '
        "data set's numbers, `GuardSegLabels(num_classes={number}, label_map=...)` after its LoadAnnotations. COCO "
        'files, which mmdet numbers one by one: `mmguard fix FILE --classes {listed} --out DIR`.'
    )

    def look(self, config: ReadConfig) -> Iterator[Finding]:
        lists = [] if has_open_vocabulary(config) else find_joined_lists(config)
        union = list(dict.fromkeys(name for _, names in lists for name in names))
        edits = [*_complete(config), *_unite(config, union)] if lists else []
        for dataset, names in lists[1:]:
            first, expected = lists[0]
            pairs = list(zip_longest(names, expected, fillvalue='no class'))
            label = next((n for n, (here, there) in enumerate(pairs) if here != there), None)
            if label is not None:
                words: Dict[str, Any] = dict(place=get_classes_path(first), label=label, number=len(union))
                words.update(zip(('here', 'there'), map(shorten, pairs[label])))
                words.update(union=join_items(map(repr, union), len(union)), listed=','.join(union))
                yield self.report_at(get_classes_path(dataset), names, words, edits=edits)

    def edits(self, finding: Finding, facts: Facts) -> Iterable[Edit]:
        for edit in finding.candidates:
            yield edit
            names = [value['classes'] for path, value in edit.config if path.endswith('.metainfo')][:1]
            if names and facts.labels is not None and get_annotations(facts.labels).names_from == 'categories':
                for copies in rewrite(self, facts, '', classes=names[0]):
                    both = combine_pair(edit, copies, 'Write one class list in all data sets, and it in all files.')
                    yield replace(both, files=copies.files, question=SAME_NAMES, if_not='')


def _complete(config: ReadConfig) -> Iterator[Edit]:
    """Yield an edit that gives the only list of the config to the data sets without one."""
    sets, counts = find_datasets(config), find_class_counts(config)
    said = {tuple(get_class_names(dataset) or ()) for dataset in sets if says_classes(dataset)}
    left = [dataset for dataset in sets if not says_classes(dataset)]
    if len(said) == 1 and left and all(count.kind == 'all' for count in counts):
        (names,) = said
        yield propose(
            Message('Write this class list in {places}, too.', places=join_items(one.path for one in left)),
            *(change for dataset in left for change in name_classes(dataset, names)),
            *count_in_heads(config, len(names)),
            question=Message('Are the files of {name} labeled with these classes?', name=left[0].path),
        )


def _unite(config: ReadConfig, union: Sequence[str]) -> List[Edit]:
    """Return an edit that numbers the labels of every data set by one list; none if a split has other classes."""
    sets, counts, has_maps = find_datasets(config), find_class_counts(config), config.framework == 'mmseg'
    others = [name for one in sets for name in get_class_names(one) or () if name not in union]
    if others or (has_maps and config.is_old) or any(count.kind != 'all' for count in counts):
        return []
    changes: List[Tuple[str, Any]] = []
    guard: Dict[str, Any] = dict(type='GuardSegLabels', num_classes=len(union))
    space = from_config(config).pixels
    void = VOID if space is None or space.ignore_index is None else space.ignore_index
    guard.update(dict(ignore_index=void) if void != VOID else {})
    for dataset in sets:
        table = _find_table(dataset, union, void) if has_maps else {}
        inserted = list(insert_guard(dataset, {**guard, 'label_map': table})) if table else []
        if table and not inserted and dataset.split == 'train':
            return []  # its wrapper loads the label maps
        changes += [*name_classes(dataset, union), *inserted]
    changes += add_reporting(config) if any(path.endswith('.pipeline') for path, _ in changes) else ()
    changes += _ignore_keys(config, [dataset for dataset in sets if dataset.split == 'train'])
    by_name = all(dataset.is_a('XMLDataset') for dataset in sets)
    question = OWN_NUMBERS if has_maps else SAME_NAMES if by_name else SAME_FILES
    listed = join_items(map(repr, union), len(union))
    return [
        propose(
            Message('Number the labels of all data sets by one list: {union}.', union=listed),
            *changes,
            *count_in_heads(change_config(config, changes), len(union)),
            question=question,
            if_not='Run `mmguard scan CONFIG`: it offers copies that do.' if question == SAME_FILES else '',
            notes=('Objects of a class that their own data set does not label are trained as background.',),
        )
    ]


def _find_table(dataset: Part, union: Sequence[str], void: int) -> Dict[int, int]:
    """Return value as loaded -> label for the values of a data set that have another number in a list."""
    own = list(map(str, get_metainfo(dataset).get('classes') or ()))
    if own and set(union) <= set(own):  # mmseg maps the classes of its own types by name
        return {}
    stored = enumerate(own or get_class_names(dataset) or ())
    table = {value: union.index(name) if name in union else void for value, name in stored}
    return {value: label for value, label in table.items() if value != label}


def _ignore_keys(config: ReadConfig, train: Sequence[Part]) -> Iterator[Tuple[str, Any]]:
    """Yield the changes that let a ConcatDataset join data sets whose ``metainfo`` differs in more than the classes."""
    is_mixed = any(one.name != train[0].name or 'palette' in (one.config.get('metainfo') or ()) for one in train)
    shifts = {bool(dataset.get('reduce_zero_label')) for dataset in train}
    keys = [*_OWN_KEYS] * is_mixed + ['reduce_zero_label'] * (len(shifts) > 1)
    for wrapper in find_datasets(config, wrappers=True):
        known = wrapper.config.get('ignore_keys') or []
        if keys and wrapper.name == 'ConcatDataset' and wrapper.split == 'train' and not wrapper.is_old:
            yield wrapper.place('ignore_keys'), [*([known] if isinstance(known, str) else known), *keys]


ANNOTATION_METRICS = ('CocoMetric', 'LVISMetric', 'CocoPanopticMetric')


class MetricAnnotations(ConfigRule):
    code = 'MG229'
    summary = 'The metric takes its ground truth from a different file than the data set that it evaluates.'
    title = 'The metric and its data set read different files: {place} reads {expected}.'
    why = (
        'COCO metrics take the ground truth from their own ann_file. If it is still that of the base config, images '
        'and category ids do not match: evaluation fails, or its scores are meaningless.'
    )
    example = Example(
        wrong="dataset: ann_file='my_val.json'; CocoMetric: ann_file='data/coco/annotations/instances_val2017.json'",
        right="CocoMetric: ann_file='my_val.json'",
    )
    limits = 'Paths are compared, not files: a copy under another name looks like a mistake.'
    advice = 'Write the ann_file of the data set in the metric, too.'

    def look(self, config: ReadConfig) -> Iterator[Finding]:
        for metric in find_metrics(config):
            sets = [dataset for dataset in find_datasets(config) if dataset.split == metric.split]
            file = metric.config.get('ann_file')
            if len(sets) != 1 or metric.name not in ANNOTATION_METRICS or not isinstance(file, str):
                continue
            dataset = sets[0]
            if dataset.is_a('CocoPanopticDataset') != (metric.name == 'CocoPanopticMetric'):
                continue  # the boxes of a panoptic model are evaluated on another file, on purpose
            root, own = dataset.config.get('data_root') or '', dataset.config.get('ann_file')
            if not isinstance(root, str) or not isinstance(own, str) or not own:
                continue
            expected, place = posixpath.join(root, own), metric.place('ann_file')
            if posixpath.normpath(expected) != posixpath.normpath(file):
                edit = propose('Evaluate with the annotations of the data set.', (place, expected))
                yield self.report_at(place, file, dict(place=dataset.path, expected=expected), edits=[edit])


#: Names of transforms that move pixels, and of those that set the size of an image.
_MOVES, _RESIZES = re.compile('Resize|Crop|Flip|Rotate|Affine|Shear|Translate|Expand'), re.compile('Resize')
_LOADERS = ('LoadAnnotations', 'LoadPanopticAnnotations')


class LoadedTooLate(ConfigRule):
    code = 'MG381'
    summary = 'The training loads labels after it has resized, cropped or flipped the image.'
    title = '{loader} comes after {step} in the training pipeline: the labels keep the size and place of the file.'
    why = 'Only a validation of label maps is written like this: its scores are resized to the file.'
    example = Example(
        wrong="[dict(type='LoadImageFromFile'), dict(type='Resize', ...), dict(type='LoadAnnotations'), ...]",
        right="[dict(type='LoadImageFromFile'), dict(type='LoadAnnotations'), dict(type='Resize', ...), ...]",
    )
    limits = 'It does not know transforms of your own that move pixels.'
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
    summary = 'The stride of the sliding prediction is larger than its window.'
    title = 'stride={stride} is larger than crop_size={window}: pixels between two windows are never predicted.'
    why = 'The first validation of an image larger than the window ends: `assert (count_mat == 0).sum() == 0`.'
    example = Example(wrong='crop_size=(512, 512), stride=(768, 768)', right='crop_size=(512, 512), stride=(341, 341)')
    advice = 'Write a stride of at most crop_size; two thirds of it is usual.'

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
    summary = 'data_preprocessor.size pads images, but the pipeline makes larger ones and does not crop.'
    title = (
        'data_preprocessor.size={size} only pads, but {step} makes images of up to {largest} and nothing crops them.'
    )
    why = 'Images of different sizes cannot be stacked: a batch ends with "stack expects each tensor to be equal size".'
    example = Example(
        wrong="size=(512, 512), [dict(type='RandomResize', scale=(512, 512), ratio_range=(0.5, 2.0))]",
        right="size=(512, 512), [dict(type='RandomResize', ...), dict(type='RandomCrop', crop_size=(512, 512))]",
    )
    limits = 'It does not know the sizes of the image files: if all are equal, Resize makes all equal.'
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
                edit = _insert('Crop to this size.', steps, crop, last, after=True)
                # A fixed scale gives images of one shape one size.
                severity = WARNING if last.name == 'Resize' else ERROR
                yield self.report_at(last.path, last.name, words, severity=severity, edits=[edit] if edit else [])


def _read_size(value: Any) -> List[int]:
    """Return height and width; empty if they are not two numbers."""
    sides = list(value) if isinstance(value, (list, tuple)) else [value, value]
    return sides if len(sides) == 2 and all(type(side) is int for side in sides) else []


def _find_largest(resize: Part) -> List[int]:
    """Return the largest short and long side of what a resize of varying result makes; empty if unknown."""
    if resize.name == 'Resize' and not resize.config.get('keep_ratio'):
        return []
    said, ratios = resize.config.get('scales'), resize.config.get('ratio_range')
    said = said if isinstance(said, (list, tuple)) else [resize.config.get('scale')]
    scales = [sorted(sides) for sides in map(_read_size, said) if sides]
    ratios = ratios if isinstance(ratios, (list, tuple)) else ()
    most = max((one for one in ratios if isinstance(one, (int, float))), default=1.0)
    return [int(most * max(sides)) for sides in zip(*scales)]


def _insert(title: str, steps: List[Part], new: Part, at: Part, after: bool = False) -> Optional[Edit]:
    """Return an edit that puts a step before or after another one of the same list; ``None`` if one is nested."""
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
    summary = 'RandomFlip mirrors label maps, and left and right keep their labels.'
    title = 'RandomFlip mirrors images, but the labels of left and right are not swapped: {pairs}.'
    why = 'In the mirrored image a left arm is where a right one was: half of the images teach the opposite.'
    example = Example(
        wrong="classes=('left-arm', 'right-arm'); dict(type='RandomFlip', prob=0.5)",
        right="dict(type='RandomFlip', prob=0.5, swap_seg_labels=[(0, 1)])",
    )
    limits = 'It knows sides by the words left and right (l and r) in the names.'
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
                asked = Message('Are these the left and the right one of the same thing: {pairs}?', pairs=shown)
                edit = propose('Swap them.', (place, [list(pair) for pair in pairs]), question=asked)
                words = {'pairs': shown, 'labels': str(pairs)}
                yield self.report_at(place, None, words, edits=[edit])


def _find_sides(names: List[str]) -> List[Tuple[int, int]]:
    """Return the labels of each left and its right.

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
        'With allow_negative_crop=False, its default in MMDetection, RandomCrop does not return a crop without a box; '
        'the data set draws another image then. Images without an object are never trained, without a message.'
    )
    example = Example(
        wrong="filter_cfg=dict(filter_empty_gt=False); dict(type='RandomCrop', crop_size=(512, 512))",
        right="dict(type='RandomCrop', crop_size=(512, 512), allow_negative_crop=True)",
    )
    limits = 'It knows RandomCrop of MMDetection, not transforms of your own.'
    advice = 'Write allow_negative_crop=True in RandomCrop, or leave such images out: filter_empty_gt=True.'

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
