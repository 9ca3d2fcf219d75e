"""Plan of a scan: the data sets of a config, or the data sets that are detected in a target."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, List, Mapping, Optional

from mmguard.config.other_styles import add_loaders, is_detr_yaml, read_detr_yaml
from mmguard.config.parts import from_config
from mmguard.config.read import ReadConfig
from mmguard.config.tree import describe_wrong_types
from mmguard.errors import CannotRun
from mmguard.facts.labels import ConfigFacts
from mmguard.formats.coco import Coco
from mmguard.formats.detection import detect
from mmguard.formats.files import check_local
from mmguard.formats.format import CannotScan, Format, LabelSet, Source
from mmguard.formats.options import ScanOptions
from mmguard.formats.unsupported_formats import describe_files
from mmguard.labels.numbering import COCO, IDS
from mmguard.labels.spaces import VOID, from_options
from mmguard.scanning.config_maps import ConfigSource, split_sets
from mmguard.text import describe_error


@dataclass
class Plan:
    """Data sets to scan, with the options of the scan and the facts from the config."""

    sources: List[Source]  #: The data sets.
    config: ConfigFacts  #: Facts about labels from the config or the command line.
    failed: List[str] = field(default_factory=list)  #: Data sets that could not be opened, with the reasons.
    tree: Optional[ReadConfig] = None  #: Config, if the target is a config.
    target: str = ''  #: Target as the user named it.
    options: ScanOptions = field(default_factory=ScanOptions)  #: Options of the user.
    format: Optional[Format] = None  #: Format of the target; ``None`` if it is a config.

    def find_source(self, name: str) -> Optional[Source]:
        """Return the data set with this name, or ``None`` if it does not exist."""
        return next((source for source in self.sources if source.name == name), None)


_CONFIG_ENDINGS = ('.py', '.yaml', '.yml')


def plan_target(target: str, options: ScanOptions) -> Plan:
    """Plan the scan of a target: an OpenMMLab config (a file, or ``'mmseg::pidnet/....py'``), or label files.

    Raises:
        CannotRun: The target is neither a config nor labels, does not exist, or is a URL.
    """
    for path in (target, options.images or ''):
        check_local(path)
    if '::' in target and not os.path.exists(target):  # a config that ships with a framework
        plan = plan_config(read_tree(target, options.run_code), options)
    elif target.lower().endswith(_CONFIG_ENDINGS) and is_detr_yaml(target):
        plan = _plan_detr(target, options)
    elif not os.path.exists(target):
        raise CannotScan(f'{target} does not exist: name a config, a folder of label maps, a COCO JSON or a VOC folder')
    else:
        found = detect(target, options.suffix)
        _check_options(target, found, options)
        plan = _plan_file(target, options) if found is None else plan_format(target, found, options)
    plan.target, plan.options = target, options
    return plan


def plan_format(target: str, data_format: Format, options: ScanOptions) -> Plan:
    """Plan the scan of a target whose format is known."""
    sets = data_format.sets(target, options)
    return Plan(sets.sources, sets.config, sets.failed, None, target, options, data_format)


def plan_again(plan: Plan, config: Optional[ReadConfig], options: Mapping[str, Any]) -> Plan:
    """Plan the same scan with another config or other options."""
    said = replace(plan.options, **options)
    if config is not None:
        return plan_config(config, said)
    target, found = plan.target, plan.format
    fresh = plan_target(target, said) if found is None else plan_format(target, found, said)
    for source, known in zip(fresh.sources, plan.sources):
        source.name = known.name
    return fresh


def _check_options(target: str, data_format: Optional[Format], options: ScanOptions) -> None:
    if (options.labels or options.framework) and not (data_format is not None and data_format.numbered):
        raise CannotScan(
            f'--labels and --framework say how the categories of a COCO JSON become labels; {target} is not a COCO '
            'JSON. Leave out both options: a config or a folder defines its own labels'
        )


def _plan_file(target: str, options: ScanOptions) -> Plan:
    ending = os.path.splitext(target)[1].lower()
    if ending not in _CONFIG_ENDINGS:
        raise CannotScan(
            f'{target}: nothing to scan in a {ending or "file without ending"}. {describe_files([target])}. Name a '
            f'config (.py), a folder of label maps, a COCO JSON or a VOC folder'
        )
    return plan_config(read_tree(target, options.run_code), options)


def _plan_detr(target: str, options: ScanOptions) -> Plan:
    """Plan a scan of the JSON files in a YAML of RT-DETR, D-FINE or DEIM, with the labels that the YAML assigns."""
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
            check_local(file)
            here = replace(options, images=options.images or (images if os.path.isdir(images) else None))
            plan.sources.append(LabelSet(split, partial(Coco().read, file, here)))
    if not plan.sources:
        raise CannotScan(f'{target} has no ann_file in {" or ".join(f"{s}_dataloader" for s in options.splits)}')
    return plan


def read_tree(target: str, run_code: bool = False) -> ReadConfig:
    from mmguard.config.recognition import check_is_config

    check_is_config(target)  # does not need mmengine
    import mmengine  # noqa: F401  if it is missing, the command line says how to install it

    from mmguard.config.read import read_config

    return read_config(target, run_code)


def plan_config(config: ReadConfig, options: ScanOptions) -> Plan:
    from mmguard.facts.config import collect_config_facts

    try:
        facts = collect_config_facts(config)
    except Exception as error:  # a config may hold anything
        raise CannotScan(f'{config.file} cannot be checked: {describe_error(error)}') from error
    current = add_loaders(config)
    in_data = [one for one in current.wrong_types if re.match(r'(train|val|test)_dataloader\b', one.path)]
    if in_data:
        raise CannotScan(f'{config.file}: {describe_wrong_types(in_data)}')
    if config.framework == 'mmdet':
        return _plan_detection(config, current, options, facts)
    plan = Plan([], facts, tree=config)
    pixels = from_options(options.num_classes, options.ignore_index, from_config(config)).pixels
    num_classes = None if pixels is None else pixels.num_classes
    ignore_index = options.ignore_index if pixels is None else pixels.ignore_index
    ignore_index = VOID if ignore_index is None else ignore_index
    unlabelled: List[ConfigSource] = []
    for split in split_sets(current.run_data, options.splits):
        try:
            opened = ConfigSource(split, num_classes, ignore_index)
            if opened.count():
                plan.sources.append(opened)
            else:
                unlabelled.append(opened)
        except CannotRun as error:
            plan.failed.append(f'{split.name}: {error}')
        except Exception as error:  # raised by the data set's class if its files are missing
            plan.failed.append(f'{split.name}: the data set cannot be opened: {describe_error(error)}')
    for bare in unlabelled:
        if plan.sources and bare.name == 'test':  # the test labels of a challenge are not public
            plan.sources[0].notes += bare.notes
        else:
            plan.failed.append(f'{"; ".join(bare.notes)}, so nothing was read: data_prefix has no seg_map_path')
    if not plan.sources:
        raise CannotScan(
            '; '.join([*plan.failed, *config.describe_unknown_framework()]) or _describe_missing(config, options)
        )
    for source in plan.sources:
        source.notes += current.notes
    return plan


def _plan_detection(config: ReadConfig, current: ReadConfig, options: ScanOptions, facts: ConfigFacts) -> Plan:
    from mmguard.scanning.config_instances import find_det_datasets, scan_detection_config

    plan = Plan([], facts, tree=config)
    for split in options.splits:
        sets = find_det_datasets(current.data, split)
        files = [(dataset.ann_file, dataset.images) for dataset in sets]
        scan = partial(scan_detection_config, current.data, split, options.num_classes, options.masks)
        _add_once(plan, LabelSet(split, scan, list(current.notes), files))
    if not plan.sources:
        raise CannotScan(_describe_missing(config, options))
    return plan


def _add_once(plan: Plan, source: LabelSet) -> None:
    """Add a source that has files; if a planned source has the same files, only append to the name of that source."""
    same = next((one for one in plan.sources if source.files and getattr(one, 'files', None) == source.files), None)
    if same is not None:
        same.name += f', {source.name}'
    elif source.files:
        plan.sources.append(source)


def _describe_missing(config: ReadConfig, options: ScanOptions) -> str:
    wrong_types = f': {describe_wrong_types(config.wrong_types)}' if config.wrong_types else ''
    return f'{config.file} has no data set in {", ".join(options.splits)}{wrong_types}'
