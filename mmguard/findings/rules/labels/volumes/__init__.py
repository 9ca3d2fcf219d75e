"""Causes in data sets of volumes (nnU-Net).

Imports what findings may; no rules but its own.
"""

from typing import List, Type

from mmguard.findings.rule import DataRule
from mmguard.findings.rules.labels.volumes.dataset_json import DatasetJson, LabelList, RegionList, TrainingCount
from mmguard.findings.rules.labels.volumes.grids_differ import OrientationsDiffer, ShapesDiffer, SpacingsDiffer
from mmguard.findings.rules.labels.volumes.incomplete_cases import IncompleteCases
from mmguard.findings.rules.labels.volumes.nothing_labelled import ClassNeverSeen, NothingLabelled
from mmguard.findings.rules.labels.volumes.unexpected_values import UnexpectedValues
from mmguard.findings.rules.labels.volumes.volume_files import (
    FractionalValues,
    ImagesAsLabels,
    NotFinite,
    UnfitForm,
    UnreadableVolumes,
)
from mmguard.findings.rules.labels.volumes.volumes_fine import VolumesFine

VOLUME_RULES: List[Type[DataRule]] = [
    DatasetJson,
    LabelList,
    RegionList,
    TrainingCount,
    IncompleteCases,
    UnexpectedValues,
    FractionalValues,
    NotFinite,
    ShapesDiffer,
    SpacingsDiffer,
    OrientationsDiffer,
    UnfitForm,
    UnreadableVolumes,
    NothingLabelled,
    ClassNeverSeen,
    VolumesFine,
    ImagesAsLabels,
]
