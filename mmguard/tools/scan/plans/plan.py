"""What is to be scanned: the data sets that a target names, those of a config."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Callable, List, Optional, Union

from mmguard.config.label_spaces import from_config
from mmguard.config.old_style import with_loaders
from mmguard.config.parts import datasets, image_labels_are_classes
from mmguard.config.read import ReadConfig
from mmguard.config.types import words_of_misplaced
from mmguard.errors import CannotRun
from mmguard.findings.facts import ConfigFacts, LabelFacts
from mmguard.labels.spaces import from_options
from mmguard.labels.spaces.space import VOID
from mmguard.text.failures import words_of
from mmguard.tools.scan.nnunet.source import CaseSource
from mmguard.tools.scan.settings import SPLITS, ScanOptions
from mmguard.tools.scan.sources.base import MapSource
from mmguard.tools.scan.sources.config import ConfigSource, split_sets
from mmguard.tools.storage.urls import enter_all

#: How splits are called elsewhere.
_OTHER_NAMES = {'training': 'train', 'valid': 'val', 'validation': 'val', 'testing': 'test'}


class CannotScan(CannotRun):
    """There is nothing that could be scanned, and why."""


@dataclass
class AnnotationSource:
    """A data set of annotation files."""

    name: str  #: What to call it.
    read: Callable[..., LabelFacts]  #: Reads it.
    notes: List[str] = field(default_factory=list)  #: What the user should know of it.
    files: List[Any] = field(default_factory=list)  #: What it reads, to tell whether two splits are the same.
    spread: bool = False  #: Whether ``read`` takes a mapper, and what is called with the number of files done.


Source = Union[MapSource, AnnotationSource, CaseSource]


@dataclass
class Plan:
    """What is to be scanned."""

    sources: List[Source]  #: The data sets.
    config: ConfigFacts  #: What the config, or the command line, says about labels.
    failed: List[str] = field(default_factory=list)  #: Data sets that could not be opened, and why.
    tree: Optional[ReadConfig] = None  #: The config, where the target is one.
    target: str = ''  #: What the user named.
    options: ScanOptions = field(default_factory=ScanOptions)  #: What the user said about it.

    def source(self, name: str) -> Optional[Source]:
        """The data set of a name."""
        return next((source for source in self.sources if source.name == name), None)


def is_left_out(split: str, options: ScanOptions) -> bool:
    """Whether a split, or its folder, has one of the usual names, and is not asked for."""
    name = os.path.basename(split)
    name = _OTHER_NAMES.get(name, name)
    return name in SPLITS and name not in options.splits


def read(target: str, run_code: bool = False) -> ReadConfig:
    from mmguard.config.recognized import check_is_config

    check_is_config(target)  # needs no mmengine
    import mmengine  # noqa: F401  where it is missing, the command line says how to install it

    from mmguard.config.read import read_config

    return read_config(target, run_code)


def config_plan(read: ReadConfig, options: ScanOptions) -> Plan:
    from mmguard.findings.config_facts import facts_of_config

    try:
        facts = facts_of_config(read)
    except Exception as error:  # a config may hold anything
        raise CannotScan(f'{read.file} cannot be looked at: {words_of(error)}') from error
    today = with_loaders(read)
    enter_all(today.data)
    in_data = [one for one in today.misplaced if one.fatal and re.match(r'(train|val|test)_dataloader\b', one.path)]
    if in_data:
        raise CannotScan(f'{read.file}: {words_of_misplaced(in_data)}')
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

    plan = Plan([], facts, tree=read)
    for split in options.splits:
        sets = datasets_of_config(today.data, split)
        files = [(dataset.ann_file, dataset.images) for dataset in sets]
        same = next((source for source in plan.sources if files and getattr(source, 'files', None) == files), None)
        if same is not None:
            same.name += f', {split}'  # the test split is mostly the validation again
        elif files:
            scan = partial(scan_detection_config, today.data, split, options.num_classes, options.masks)
            plan.sources.append(AnnotationSource(split, scan, list(today.notes), files))
    if not plan.sources:
        raise CannotScan(_without_data_set(read, options))
    return plan


def _image_plan(read: ReadConfig, options: ScanOptions, facts: ConfigFacts) -> Plan:
    from mmguard.tools.scan.annotations.image_labels import scan_image_labels

    plan = Plan([], facts, tree=read)
    space = from_options(options.num_classes, None, from_config(read)).instances
    for split in options.splits if image_labels_are_classes(read) else ():
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
