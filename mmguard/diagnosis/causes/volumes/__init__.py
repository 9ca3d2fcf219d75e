"""Causes in data sets of volumes (nnU-Net)."""

from typing import List, Type

from mmguard.diagnosis.causes.volumes.dataset_json import DatasetJson
from mmguard.diagnosis.causes.volumes.fractional_values import FractionalValues
from mmguard.diagnosis.causes.volumes.grids_differ import OrientationsDiffer, ShapesDiffer, SpacingsDiffer
from mmguard.diagnosis.causes.volumes.incomplete_cases import IncompleteCases
from mmguard.diagnosis.causes.volumes.label_list import LabelList, RegionList, TrainingCount
from mmguard.diagnosis.causes.volumes.not_finite import NotFinite
from mmguard.diagnosis.causes.volumes.nothing_labelled import ClassNeverSeen, NothingLabelled
from mmguard.diagnosis.causes.volumes.unexpected_values import UnexpectedValues
from mmguard.diagnosis.causes.volumes.volume_files import UnfitForm, UnreadableVolumes
from mmguard.diagnosis.causes.volumes.volumes_fine import VolumesFine
from mmguard.diagnosis.finding import Cause

VOLUME_CAUSES: List[Type[Cause]] = [
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
]
