"""From what the user names to what is to be scanned."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field, replace
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Callable, Dict, List, Mapping, Optional, Union

from mmguard.config.detr_yaml import is_detr_yaml, read_detr_yaml
from mmguard.config.label_spaces import from_config
from mmguard.config.old_style import with_loaders
from mmguard.config.parts import OF_OBJECTS_3D, OF_POINTS, datasets, image_labels_are_classes
from mmguard.config.read import ReadConfig
from mmguard.config.types import words_of_misplaced
from mmguard.errors import CannotRun
from mmguard.findings.facts import ConfigFacts, LabelFacts
from mmguard.labels.numbering import COCO, IDS
from mmguard.labels.spaces import from_options
from mmguard.labels.spaces.space import VOID, label_map_of
from mmguard.text.failures import words_of
from mmguard.tools.scan.arrays import is_array_name
from mmguard.tools.scan.nnunet.source import CaseSource, missing_package, raw_datasets
from mmguard.tools.scan.options import ScanOptions
from mmguard.tools.scan.sources.base import MapSource
from mmguard.tools.scan.sources.config import SPLITS, ConfigSource, split_sets, type_name
from mmguard.tools.scan.sources.folder import FolderSource
from mmguard.tools.scan.sources.folders import is_image_name, is_label_folder, is_label_name
from mmguard.tools.scan.sources.labelmap import read_labelmap
from mmguard.tools.scan.sources.layout import label_and_image_folders
from mmguard.tools.scan.sources.other_files import words_of as words_of_files
from mmguard.tools.scan.sources.other_files import words_of_json
from mmguard.tools.scan.sources.other_programs import words_of_program
from mmguard.tools.scan.tried import with_copies
from mmguard.tools.storage.files import FILES, forget_listings
from mmguard.tools.storage.urls import is_url

if TYPE_CHECKING:
    from mmguard.tools.scan.annotations.coco_folder import CocoFile
    from mmguard.tools.scan.annotations.shape_target import ShapeTarget

_OF_MAPS = (
    'polygons of Cityscapes: training reads the *_labelTrainIds.png that are drawn of them (mmseg: '
    '`python tools/dataset_converters/cityscapes.py data/cityscapes`)'
)
_HEADERS = (
    'labels of DOTA: header lines (imagesource:, gsd:) and blank ones are passed over, as by img_split.py of mmrotate; '
    'its DOTADataset stops at them'
)
_BY_FOLDER = (
    'the folders are the classes: a label is the place among their sorted names (CustomDataset without ann_file of '
    'mmpretrain, ImageFolder of torchvision, imagefolder of Hugging Face)'
)
#: Of VOC and its like.
_MASKS = ('SegmentationClass', 'SegmentationObject')
_CONFIG_ENDINGS = ('.py', '.yaml', '.yml')


class CannotScan(CannotRun):
    """There is nothing that could be scanned, and why."""


@dataclass
class AnnotationSource:
    """A data set of annotation files.

    Args:
        name (str): What to call it.
        read (callable): Reads it.
        notes (list[str]): What the user should know of it.
        files (list): What it reads, to tell whether two splits are the same.
        spread (bool): Whether ``read`` takes a mapper, and what is called with the number of files done.
    """

    name: str
    read: Callable[..., LabelFacts]
    notes: List[str] = field(default_factory=list)
    files: List[Any] = field(default_factory=list)
    spread: bool = False


Source = Union[MapSource, AnnotationSource, CaseSource]


@dataclass
class Plan:
    """What is to be scanned.

    Args:
        sources (list): The data sets.
        config (ConfigFacts): What the config, or the command line, says about labels.
        failed (list[str]): Data sets that could not be opened, and why.
        tree (ReadConfig, optional): The config, where the target is one.
        target (str): What the user named.
        options (ScanOptions): What the user said about it.
    """

    sources: List[Source]
    config: ConfigFacts
    failed: List[str] = field(default_factory=list)
    tree: Optional[ReadConfig] = None
    target: str = ''
    options: ScanOptions = field(default_factory=ScanOptions)

    def source(self, name: str) -> Optional[Source]:
        """The data set of a name."""
        return next((source for source in self.sources if source.name == name), None)

    def again(
        self, config: Optional[ReadConfig], options: Mapping[str, Any], copies: Optional[Dict[str, str]] = None
    ) -> Plan:
        """What would be scanned with another config, with other options, or with copies in place of files."""
        said = replace(self.options, **options)
        if config is not None:
            return _config_plan(with_copies(config, copies) if copies else config, said)
        plan = plan_of((copies or {}).get(self.target, self.target), said, copies or {})
        for source, known in zip(plan.sources, self.sources):
            source.name = known.name
        return plan


def plan_of(target: str, options: ScanOptions, copies: Mapping[str, str] = MappingProxyType({})) -> Plan:
    """Finds out what a target is, by its name and its first files.

    Args:
        target (str): An mm config (a file, or ``'mmseg::pidnet/....py'``), a COCO or LVIS JSON, a VOC folder, an
            XML of CVAT or the folder with it, a data.yaml or a folder of YOLO, a folder or a JSON of Labelme or
            Cityscapes, a folder of label maps, one label map, a raw
            data set of nnU-Net, or a folder of such.
        options (ScanOptions): What the user says about it.
        copies (dict[str, str]): File that the target names -> what is read in its place.

    Raises:
        CannotScan: It is none of them, or does not exist.
    """
    forget_listings()
    plan = _detr_plan(target, options, copies) if is_detr_yaml(target) else _plan_of(target, options, copies)
    plan.target, plan.options = target, options
    return plan


def _plan_of(target: str, options: ScanOptions, copies: Mapping[str, str]) -> Plan:
    if '::' in target and not is_url(target) and not os.path.exists(target):  # a config that ships with a framework
        return _config_plan(_read(target), options)
    if not FILES.exists(target):
        raise CannotScan(f'{target} does not exist: name a config, a folder of label maps, a COCO JSON or a VOC folder')
    ending = os.path.splitext(target)[1].lower()
    if (options.labels or options.framework) and ending != '.json' and not _coco_files(target):
        raise CannotScan(
            f'--labels and --framework say how the categories of a COCO JSON become labels; {target} is none: '
            f'leave them out, a config and a folder say it themselves'
        )
    volumes = raw_datasets(target)
    if volumes:
        return _volume_plan(volumes)
    if not is_url(target):
        from mmguard.tools.scan.annotations.cvat import is_cvat, scan_cvat

        if is_cvat(target):
            read = partial(scan_cvat, _shapes_asked(target, options, copies))
            return Plan([AnnotationSource(target, read)], ConfigFacts())
        plan = _hf_plan(target, options, copies)
        if plan is not None:
            return plan
        from mmguard.tools.scan.annotations.oriented.labels import DOTA, format_of
        from mmguard.tools.scan.annotations.oriented.scan import scan_oriented

        oriented = '' if options.suffix else format_of(target)
        if oriented:
            read = partial(scan_oriented, _shapes_asked(target, options, copies))
            return Plan([AnnotationSource(target, read, [_HEADERS] if oriented == DOTA else [])], ConfigFacts())
    _check_is_read(target, options, is_last=False)
    if FILES.is_folder(target):
        from mmguard.tools.scan.annotations.voc import is_voc

        if not is_url(target) and not options.suffix:
            _check_program(target)
        if is_voc(target):
            return _voc_plan(target, options)
        here = _yolo_plan(target, options) or (None if is_url(target) else _shapes_plan(target, options, copies))
        if here is None:
            _check_is_read(target, options, is_last=True)
        if here is None and not is_url(target) and not options.suffix:
            here = _coco_folder_plan(target, options, copies) or _class_folder_plan(target, options)
        return here or _folder_plan(target, options)
    if ending in ('.txt', '.yaml', '.yml'):
        plan = _yolo_plan(target, options)
        if plan is not None:
            return plan
    if ending in _CONFIG_ENDINGS:
        if is_url(target):
            raise CannotScan(
                f'{target}: a config is code, and is read from a disk: copy it here, with the files that its _base_ '
                f'names, and name the copy. The labels that it names may stay where they are'
            )
        return _config_plan(_read(target), options)
    _check_is_read(target, options, is_last=True)
    if not is_url(target):
        _check_program(target)
    if ending == '.json':
        return (None if is_url(target) else _shapes_plan(target, options, copies)) or _coco_plan(target, options)
    if is_image_name(os.path.basename(target)) or is_array_name(os.path.basename(target)):
        return _folder_plan(target, options)
    if is_label_name(os.path.basename(target)) and not is_url(target):
        return _points_plan(target, options)
    raise CannotScan(
        f'{target}: nothing to scan in a {ending or "file without ending"}. {words_of_files([target])}. Name a config '
        f'(.py), a folder of label maps, a COCO JSON or a VOC folder'
    )


def _check_is_read(target: str, options: ScanOptions, is_last: bool) -> None:
    """Refuses what lies behind a URL and is read from a disk alone."""
    from mmguard.tools.scan.disk_alone import kind_on_disk

    kind = kind_on_disk(target, is_last) if is_url(target) and not options.suffix else ''
    if kind:
        raise CannotScan(f'{target}: {kind}, which are read from a disk: copy them here, or mount the storage')


def _check_program(target: str) -> None:
    words = words_of_program(target)
    if words:
        raise CannotScan(f'{target}: nothing was read, {words}')


def _volume_plan(folders: List[str]) -> Plan:
    sources = [CaseSource(folder) for folder in folders]
    for source in sources:
        package = missing_package(source.reader, source.spec.file_ending)
        if package:
            ending = source.spec.file_ending
            raise CannotScan(f'{source.name}: {ending} files are read by {package}: pip install {package}')
    return Plan(list(sources), ConfigFacts())


def _folder_plan(target: str, options: ScanOptions) -> Plan:
    notes = []
    if options.images is None and FILES.is_folder(target):
        folders = label_and_image_folders(target)
        if folders is not None:
            target = folders[0]
            options = replace(options, images=folders[1])
            notes.append(f'labels: {folders[0]}, images: {folders[1]}')
        elif not is_url(target) and all(os.path.isdir(os.path.join(target, name)) for name in _MASKS):
            target = os.path.join(target, _MASKS[0])  # not what numbers the objects
            notes.append(f'labels: {target}')
    try:
        source = FolderSource(target, options.settings(), options.images, options.suffix)
        instead = source.found_instead()
    except OSError as error:
        raise CannotScan(str(error)) from error
    if instead is not None:
        if not is_url(target) and is_label_folder(target):
            return _points_plan(target, options)
        raise CannotScan(f'{target}: nothing was read, it has no label map. {words_of_files(instead, source.suffix)}')
    _import_pillow(target)
    source.notes += notes
    if not is_url(target):
        source.declared = read_labelmap(target)
    if options.num_classes is None:
        source.notes.append('no --num-classes: every value counts as a class; with it, invalid ones are found')
    return Plan([source], _facts_of(options))


def _points_plan(target: str, options: ScanOptions) -> Plan:
    from mmguard.tools.scan.point_sources import LabelFolder

    source = LabelFolder(target, options)
    if options.num_classes is None:
        source.notes.append('no --num-classes: every value counts as a class; with it, invalid ones are found')
    return Plan([source], _facts_of(options))


def _import_pillow(target: str) -> None:
    """Here, because processes that are forked later need not import it again."""
    try:
        import PIL.Image  # noqa: F401
    except ImportError as error:
        raise CannotScan(
            f'{target}: label maps are read with pillow, which does not import ({error}): pip install pillow. COCO, '
            f'LVIS and VOC annotations are read without it'
        ) from error


def _facts_of(options: ScanOptions) -> ConfigFacts:
    facts = ConfigFacts(framework='mmseg', label_map=label_map_of(dict(options.label_map)))
    if options.reduce_zero_label:
        facts.reduce_zero_label['--reduce-zero-label'] = True
    return facts


def _voc_plan(target: str, options: ScanOptions) -> Plan:
    from mmguard.tools.scan.annotations import scan_voc

    read = partial(scan_voc, target, options.num_classes, options.classes)
    return Plan([AnnotationSource(target, read)], ConfigFacts())


def _coco_folder_plan(target: str, options: ScanOptions, copies: Mapping[str, str]) -> Optional[Plan]:
    """The COCO files of a folder; ``None`` where it has none."""
    plan = Plan([], ConfigFacts())
    for name, file, images in _coco_files(target):
        if not _is_left_out(os.path.dirname(name), options):
            (source,) = _coco_plan(
                copies.get(file, file), replace(options, images=options.images or images or None)
            ).sources
            source.name = name
            source.notes += [f'images: {images}'] if images and not options.images else []
            plan.sources.append(source)
    return plan if plan.sources else None


def _coco_files(target: str) -> List[CocoFile]:
    from mmguard.tools.scan.annotations.coco_folder import coco_files

    return [] if is_url(target) else coco_files(target)


def _class_folder_plan(target: str, options: ScanOptions) -> Optional[Plan]:
    """Folders whose names are labels; ``None`` where a target has none."""
    from mmguard.tools.scan.annotations.class_folders import scan_class_folder, splits_of_classes

    folders = splits_of_classes(target)
    train = next(iter(folders.values()), '')
    plan = Plan([], ConfigFacts(framework='mmpretrain'))
    for split, folder in folders.items():
        if not _is_left_out(folder, options):
            read = partial(scan_class_folder, folder, options.num_classes, options.classes, train)
            plan.sources.append(AnnotationSource(split or target, read, [_BY_FOLDER]))
    return plan if plan.sources else None


def _hf_plan(target: str, options: ScanOptions, copies: Mapping[str, str]) -> Optional[Plan]:
    """The data sets of Hugging Face; ``None`` where a target is none of them."""
    from mmguard.tools.scan.annotations.hf import (
        is_image_folder,
        saved_splits,
        scan_image_folder,
        scan_parquet,
        scan_saved,
    )
    from mmguard.tools.scan.annotations.hf_parquet import parquet_splits

    splits = saved_splits(target)
    if splits:
        chosen = [split for split in splits if len(splits) == 1 or not _is_left_out(split, options)]
        names = [target if split == target else os.path.basename(split) for split in chosen]
        reads = [partial(scan_saved, split, options.num_classes) for split in chosen]
        return Plan([AnnotationSource(name, read) for name, read in zip(names, reads)], ConfigFacts())
    parts = {} if options.suffix else parquet_splits(target)
    if parts:
        asked = {split: files for split, files in parts.items() if len(parts) == 1 or not _is_left_out(split, options)}
        tables = [
            AnnotationSource(split, partial(scan_parquet, split, files, options.num_classes))
            for split, files in sorted(asked.items())
        ]
        return Plan(list(tables), ConfigFacts())
    if options.suffix or not is_image_folder(target):
        return None
    home = _home(target, copies)
    read = partial(scan_image_folder, target, options.num_classes, options.classes, options.images, home)
    return Plan([AnnotationSource(target, read)], ConfigFacts())


def _is_left_out(split: str, options: ScanOptions) -> bool:
    """Whether a split has one of the usual names, and is not asked for."""
    name = {'validation': 'val'}.get(os.path.basename(split), os.path.basename(split))
    return name in SPLITS and name not in options.splits


def _home(target: str, copies: Mapping[str, str]) -> str:
    """A copy may stand elsewhere; the images, and a class list above, are still where they were."""
    return next((original for original, copy in copies.items() if copy == target), target)


def _shapes_plan(target: str, options: ScanOptions, copies: Mapping[str, str]) -> Optional[Plan]:
    """The JSON of Labelme, or of Cityscapes; ``None`` where a target is none of it."""
    from mmguard.tools.scan.annotations.cityscapes import is_cityscapes, scan_cityscapes
    from mmguard.tools.scan.annotations.labelme import classes_beside, is_labelme, scan_labelme

    asked = _shapes_asked(target, options, copies)
    if is_cityscapes(target, options.suffix):
        return Plan([AnnotationSource(target, partial(scan_cityscapes, asked), [_OF_MAPS])], ConfigFacts())
    if options.suffix or not is_labelme(target):  # of label maps
        return None
    path, names = ('', list(options.classes)) if options.classes else classes_beside(asked.home or target)
    read = partial(scan_labelme, asked._replace(class_names=names or None))
    return Plan([AnnotationSource(target, read, [f'classes: {path}'] if path else [])], ConfigFacts())


def _shapes_asked(target: str, options: ScanOptions, copies: Mapping[str, str]) -> ShapeTarget:
    from mmguard.tools.scan.annotations.shape_target import ShapeTarget

    return ShapeTarget(target, options.num_classes, options.classes, options.images, _home(target, copies))


def _yolo_plan(target: str, options: ScanOptions) -> Optional[Plan]:
    """The YOLO label files; ``None`` where a target has none."""
    from mmguard.tools.scan.yolo.sets import yolo_sets

    plan = Plan([], ConfigFacts())
    sets = yolo_sets(target, options.splits, options.images)
    for found in sets:
        absent = [place for place in found.places or () if not FILES.exists(place)]
        if absent and found.name != 'test':  # of a challenge nobody has the images
            plan.failed.append(f'{found.name}: {absent[0]} does not exist, which {found.declared.file} names')
        if not absent:
            plan.sources.append(
                AnnotationSource(found.name, partial(found.read, options.num_classes), found.notes, spread=True)
            )
    if sets and not plan.sources:
        raise CannotScan('\n'.join(plan.failed) or f'{target} names no images in {", ".join(options.splits)}')
    return plan if sets else None


def _coco_plan(target: str, options: ScanOptions) -> Plan:
    from mmguard.tools.scan.annotations import scan_coco

    def read() -> LabelFacts:
        facts = scan_coco(
            target,
            options.num_classes,
            images=options.images,
            labels=options.labels,
            framework=options.framework,
            masks=options.masks,
        )
        found = facts.annotations
        if found is not None and not (found.images or found.annotations or found.categories):
            ended_early = any(what.startswith('is no COCO JSON') for what in found.unreadable)
            damaged = any(not what.startswith(('has no', 'is no COCO JSON')) for what in found.unreadable)
            looks = '' if damaged else words_of_json(target, ended_early)
            if looks:
                raise ValueError(f'nothing was read. {looks}')
        return facts

    return Plan([AnnotationSource(target, read)], ConfigFacts())


def _detr_plan(target: str, options: ScanOptions, copies: Mapping[str, str]) -> Plan:
    """The JSON files that a YAML of RT-DETR, D-FINE or DEIM names, with the labels that it makes of them."""
    said = read_detr_yaml(target)
    options = replace(
        options,
        num_classes=options.num_classes or said.num_classes,
        framework=options.framework or 'rt-detr',
        labels=options.labels or (COCO if said.remaps else IDS),
    )
    plan = Plan([], ConfigFacts())
    for split, file, images in said.files:
        if split in options.splits:
            here = replace(options, images=options.images or (images if os.path.isdir(images) else None))
            (source,) = _coco_plan(copies.get(file, file), here).sources
            plan.sources.append(replace(source, name=split) if isinstance(source, AnnotationSource) else source)
    if not plan.sources:
        raise CannotScan(f'{target} names no ann_file at {" or ".join(f"{s}_dataloader" for s in options.splits)}')
    return plan


def _read(target: str) -> ReadConfig:
    from mmguard.config.recognized import check_is_config

    check_is_config(target)  # needs no mmengine
    import mmengine  # noqa: F401  where it is missing, the command line says how to install it

    from mmguard.config.read import read_config

    return read_config(target)


def _config_plan(read: ReadConfig, options: ScanOptions) -> Plan:
    from mmguard.findings.config_facts import facts_of_config

    try:
        facts = facts_of_config(read)
    except Exception as error:  # a config may hold anything
        raise CannotScan(f'{read.file} cannot be looked at: {words_of(error)}') from error
    today = with_loaders(read)
    in_data = [one for one in today.misplaced if one.fatal and re.match(r'(train|val|test)_dataloader\b', one.path)]
    if in_data:
        raise CannotScan(f'{read.file}: {words_of_misplaced(in_data)}')
    if any(one.is_a(OF_POINTS, OF_OBJECTS_3D) for one in datasets(read)):
        return _space_plan(read, today, options, facts)
    if read.framework == 'mmdet':
        return _det_plan(read, today, options, facts)
    if read.framework == 'mmpretrain':
        return _image_plan(read, options, facts)
    plan = Plan([], facts, tree=read)
    pixels = from_options(options.num_classes, options.ignore_index, from_config(read)).pixels
    num_classes = None if pixels is None else pixels.num_classes
    ignore_index = options.ignore_index if pixels is None else pixels.ignore_index
    ignore_index = VOID if ignore_index is None else ignore_index
    unlabelled: List[ConfigSource] = []
    for split in split_sets(today.data, options.splits):
        try:
            opened = ConfigSource(split, num_classes, ignore_index)
            if opened.count():
                plan.sources.append(opened)
            else:
                unlabelled.append(opened)
        except Exception as error:  # what a data set's class raises where its files are not
            plan.failed.append(f'{split.name}: {_in_words(error)}')
    for bare in unlabelled:
        if plan.sources and bare.name == 'test':  # of a challenge nobody has the labels
            plan.sources[0].notes += bare.notes
        else:
            plan.failed.append(f'nothing was read of {"; ".join(bare.notes)}: data_prefix names no seg_map_path')
    if not plan.sources:
        raise CannotScan('\n'.join([*plan.failed, *read.unknown_framework()]) or _without_data_set(read, options))
    for source in plan.sources:
        source.notes += today.notes
    return plan


def _det_plan(read: ReadConfig, today: ReadConfig, options: ScanOptions, facts: ConfigFacts) -> Plan:
    from mmguard.tools.scan.annotations import datasets_of_config, scan_detection_config
    from mmguard.tools.scan.annotations.oriented.dataset import is_without_labels

    plan = Plan([], facts, tree=read)
    unlabelled = []
    for split in options.splits:
        sets = datasets_of_config(today.data, split)
        if split == 'test' and sets and all(map(is_without_labels, sets)):
            unlabelled.append(f'{split}: {sets[0].type} without ann_file has no labels')
            continue
        files = [(dataset.ann_file, dataset.images) for dataset in sets]
        same = next((source for source in plan.sources if files and getattr(source, 'files', None) == files), None)
        if same is not None:
            same.name += f', {split}'  # the test split is mostly the validation again
        elif files:
            scan = partial(scan_detection_config, today.data, split, options.num_classes, options.masks)
            plan.sources.append(AnnotationSource(split, scan, list(today.notes), files))
    if not plan.sources:
        raise CannotScan('; '.join(unlabelled) or _without_data_set(read, options))
    plan.sources[0].notes += unlabelled
    return plan


def _space_plan(read: ReadConfig, today: ReadConfig, options: ScanOptions, facts: ConfigFacts) -> Plan:
    """The points, or the objects in space, of mmdet3d's data sets."""
    from mmguard.tools.scan.annotations.infos_3d import base_of
    from mmguard.tools.scan.annotations.objects_3d import scan_objects
    from mmguard.tools.scan.point_sources import PointSource

    plan = Plan([], facts, tree=read)
    spaces = from_options(options.num_classes, options.ignore_index, from_config(read))
    for split in split_sets(today.data, options.splits):
        base = base_of(split.config)
        if base == OF_OBJECTS_3D:
            number = None if spaces.instances is None else spaces.instances.num_classes
            plan.sources.append(AnnotationSource(split.name, partial(scan_objects, split.config, number)))
            continue
        try:
            if not base:
                raise ValueError(f'{type_name(split.config)} derives neither from {OF_POINTS} nor from {OF_OBJECTS_3D}')
            pixels = spaces.pixels
            said = (options.num_classes, options.ignore_index)
            plan.sources.append(
                PointSource(split, *(said if pixels is None else (pixels.num_classes, pixels.ignore_index)))
            )
        except Exception as error:  # what a data set's class raises where its files are not
            plan.failed.append(f'{split.name}: {_in_words(error)}')
    if not plan.sources:
        raise CannotScan('\n'.join(plan.failed) or _without_data_set(read, options))
    return plan


def _image_plan(read: ReadConfig, options: ScanOptions, facts: ConfigFacts) -> Plan:
    from mmguard.tools.scan.annotations.image_labels import scan_image_labels

    plan = Plan([], facts, tree=read)
    space = from_options(options.num_classes, None, from_config(read)).instances
    splits = [split for split in options.splits if image_labels_are_classes(read, split)]
    for split in splits:
        sets = [one for one in datasets(read) if one.split == split]
        files = [{key: value for key, value in one.config.items() if key != 'pipeline'} for one in sets]
        same = next((source for source in plan.sources if files and getattr(source, 'files', None) == files), None)
        if same is not None:
            same.name += f', {split}'
        elif sets:
            scan = partial(scan_image_labels, sets, None if space is None else space.num_classes)
            plan.sources.append(AnnotationSource(split, scan, files=files))
    if not plan.sources:
        raise CannotScan(_without_data_set(read, options))
    return plan


def _without_data_set(read: ReadConfig, options: ScanOptions) -> str:
    misplaced = f': {words_of_misplaced(read.misplaced)}' if read.misplaced else ''
    return f'{read.file} has no data set in {", ".join(options.splits)}{misplaced}'


def _in_words(error: Any) -> str:
    return f'the data set cannot be opened: {words_of(error)}'
