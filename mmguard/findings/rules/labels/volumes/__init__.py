"""Causes in data sets of volumes (nnU-Net).

Imports what findings may; no rules but its own.
"""

from typing import List, Type

from mmguard.findings.rule import DataRule
from mmguard.findings.rules.labels.volumes.dataset_json import DatasetJson, LabelList, RegionList
from mmguard.findings.rules.labels.volumes.unexpected_values import UnexpectedValues
from mmguard.findings.rules.labels.volumes.volume_files import (
    FractionalValues,
    GridsDiffer,
    ImagesAsLabels,
    NotFinite,
    NothingLabelled,
    UnusableVolumes,
    VolumesFine,
)

VOLUME_RULES: List[Type[DataRule]] = [
    DatasetJson,
    LabelList,
    RegionList,
    UnexpectedValues,
    FractionalValues,
    NotFinite,
    GridsDiffer,
    UnusableVolumes,
    NothingLabelled,
    VolumesFine,
    ImagesAsLabels,
]
