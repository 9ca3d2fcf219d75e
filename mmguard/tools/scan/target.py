"""From what the user names to what is to be scanned."""

from __future__ import annotations

import os
from dataclasses import replace
from types import MappingProxyType
from typing import Any, Callable, Dict, Mapping, Optional

from mmguard.config.detr_yaml import is_detr_yaml
from mmguard.config.read import ReadConfig
from mmguard.findings.facts import ConfigFacts
from mmguard.tools.scan.arrays import is_array_name
from mmguard.tools.scan.nnunet.source import CaseSource, raw_datasets, why_unread
from mmguard.tools.scan.options import ScanOptions
from mmguard.tools.scan.plans import formats
from mmguard.tools.scan.plans.of_config import config_plan, read
from mmguard.tools.scan.plans.of_files import (
    class_folder_plan,
    coco_folder_plan,
    coco_plan,
    detr_plan,
    labelme_plan,
    map_plan,
    voc_plan,
    yolo_plan,
)
from mmguard.tools.scan.plans.plan import CannotScan, Plan
from mmguard.tools.scan.sources.folders import is_image_name
from mmguard.tools.scan.sources.other_files import words_of as words_of_files
from mmguard.tools.scan.sources.other_programs import words_of_program
from mmguard.tools.scan.tried import with_copies
from mmguard.tools.storage.files import FILES, forget_listings
from mmguard.tools.storage.urls import is_url

_CONFIG_ENDINGS = ('.py', '.yaml', '.yml')


def plan_of(target: str, options: ScanOptions, copies: Mapping[str, str] = MappingProxyType({})) -> Plan:
    """Finds out what a target is, by its name and its first files.

    Args:
        target (str): An mm config (a file, or ``'mmseg::pidnet/....py'``), a COCO or LVIS JSON, a folder of label maps,
            one label map, or a folder or file of a format that :mod:`~mmguard.tools.scan.plans.formats` knows.
        options (ScanOptions): What the user says about it.
        copies (dict[str, str]): File that the target names -> what is read in its place.

    Raises:
        CannotScan: It is none of them, or does not exist.
    """
    forget_listings()
    plan = detr_plan(target, options, copies) if is_detr_yaml(target) else _plan_of(target, options, copies)
    plan.target, plan.options = target, options
    return plan


def plan_again(
    plan: Plan, config: Optional[ReadConfig], options: Mapping[str, Any], copies: Optional[Dict[str, str]] = None
) -> Plan:
    """What would be scanned with another config, with other options, or with copies in place of files."""
    said = replace(plan.options, **options)
    if config is not None:
        return config_plan(with_copies(config, copies) if copies else config, said)
    fresh = plan_of((copies or {}).get(plan.target, plan.target), said, copies or {})
    for source, known in zip(fresh.sources, plan.sources):
        source.name = known.name
    return fresh


def _plan_of(target: str, options: ScanOptions, copies: Mapping[str, str]) -> Plan:
    if '::' in target and not is_url(target) and not os.path.exists(target):  # a config that ships with a framework
        return config_plan(read(target, options.run_code), options)
    if not FILES.exists(target):
        raise CannotScan(f'{target} does not exist: name a config, a folder of label maps, a COCO JSON or a VOC folder')
    found = formats.format_of(target, options.suffix)
    ending = os.path.splitext(target)[1].lower()
    if (options.labels or options.framework) and ending != '.json' and found != formats.COCO_FOLDER:
        raise CannotScan(
            f'--labels and --framework say how the categories of a COCO JSON become labels; {target} is none: '
            f'leave them out, a config and a folder say it themselves'
        )
    if found:
        return _OF_FORMAT[found](target, options, copies)
    if FILES.is_folder(target):
        return map_plan(target, options)
    return _file_plan(target, ending, options)


def _file_plan(target: str, ending: str, options: ScanOptions) -> Plan:
    if ending in _CONFIG_ENDINGS:
        if is_url(target):
            raise CannotScan(
                f'{target}: a config is code, and is read from a disk: copy it here, with the files that its _base_ '
                f'names, and name the copy. The labels that it names may stay where they are'
            )
        return config_plan(read(target, options.run_code), options)
    if ending == '.json':
        return coco_plan(target, options)
    if is_image_name(os.path.basename(target)) or is_array_name(os.path.basename(target)):
        return map_plan(target, options)
    raise CannotScan(
        f'{target}: nothing to scan in a {ending or "file without ending"}. {words_of_files([target])}. Name a config '
        f'(.py), a folder of label maps, a COCO JSON or a VOC folder'
    )


def _volume_plan(target: str, options: ScanOptions, copies: Mapping[str, str]) -> Plan:
    sources = [CaseSource(folder) for folder in raw_datasets(target)]
    for source in sources:
        why = why_unread(source.reader, source.spec.file_ending)
        if why:
            raise CannotScan(f'{source.name}: {why}')
    return Plan(list(sources), ConfigFacts())


def _no_plan(target: str, options: ScanOptions, copies: Mapping[str, str]) -> Plan:
    raise CannotScan(f'{target}: nothing was read, {words_of_program(target)}')


_OF_FORMAT: Dict[str, Callable[[str, ScanOptions, Mapping[str, str]], Plan]] = {
    formats.NNUNET: _volume_plan,
    formats.OTHER_PROGRAM: _no_plan,
    formats.VOC: voc_plan,
    formats.YOLO: yolo_plan,
    formats.LABELME: labelme_plan,
    formats.COCO_FOLDER: coco_folder_plan,
    formats.CLASS_FOLDERS: class_folder_plan,
}
