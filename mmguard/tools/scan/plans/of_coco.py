"""COCO and LVIS JSON: one, those of a folder, or those that a YAML of RT-DETR, D-FINE or DEIM names."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Mapping

from mmguard.config.detr_yaml import read_detr_yaml
from mmguard.findings.facts import ConfigFacts, LabelFacts
from mmguard.labels.numbering import COCO, IDS
from mmguard.tools.scan.options import ScanOptions
from mmguard.tools.scan.plans.plan import AnnotationSource, CannotScan, Plan, is_left_out
from mmguard.tools.scan.sources.other_files import words_of_json


def coco_plan(target: str, options: ScanOptions) -> Plan:
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


def coco_folder_plan(target: str, options: ScanOptions, copies: Mapping[str, str]) -> Plan:
    """The COCO files of a folder.

    Raises:
        CannotScan: They are of other splits than those that are asked for.
    """
    from mmguard.tools.scan.annotations.coco_folder import coco_files

    plan = Plan([], ConfigFacts())
    for name, file, images in coco_files(target):
        if not is_left_out(os.path.dirname(name), options):
            here = replace(options, images=options.images or images or None)
            (source,) = coco_plan(copies.get(file, file), here).sources
            source.name = name
            source.notes += [f'images: {images}'] if images and not options.images else []
            plan.sources.append(source)
    if not plan.sources:
        raise CannotScan(f'{target} has no COCO file of {", ".join(options.splits)}')
    return plan


def detr_plan(target: str, options: ScanOptions, copies: Mapping[str, str]) -> Plan:
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
            (source,) = coco_plan(copies.get(file, file), here).sources
            plan.sources.append(replace(source, name=split) if isinstance(source, AnnotationSource) else source)
    if not plan.sources:
        raise CannotScan(f'{target} names no ann_file at {" or ".join(f"{s}_dataloader" for s in options.splits)}')
    return plan
