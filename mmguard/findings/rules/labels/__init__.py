"""The causes that files, counts and configs can show. Adding one touches this list.

Imports what findings may; no rules but its own.
"""

from typing import List, Type

from mmguard.findings.rule import Rule
from mmguard.findings.rules.labels.boxes import BoxesBeyondImage, BoxesInAnotherForm, UnusableBoxes
from mmguard.findings.rules.labels.category_ids import CocoIdsLookedUp, IdsAsLabels, OrderDiffers
from mmguard.findings.rules.labels.category_names import BackgroundListed, CategoriesLeftOut, NamesNotInFile
from mmguard.findings.rules.labels.class_counts import MoreClassesThanHead, OnlyOneClass, OutputsNeverTrained
from mmguard.findings.rules.labels.colours import PaletteReadAsColours, StoredAsColours
from mmguard.findings.rules.labels.file_forms import FoldersSwapped, Fractions, NotEightBits
from mmguard.findings.rules.labels.files import MissingImages, SizeMismatch, UnpairedFiles, UnreadableFiles
from mmguard.findings.rules.labels.gray import BinaryMask, GrayLevels, ScaledGray
from mmguard.findings.rules.labels.known_ids import AdeNotReduced, RawBratsIds, RawCityscapesIds, RawCocoIds
from mmguard.findings.rules.labels.labels_fine import LabelsFine
from mmguard.findings.rules.labels.loader_differs import LoaderDiffers
from mmguard.findings.rules.labels.lossy import LossyOrInterpolated
from mmguard.findings.rules.labels.no_targets import ImagesWithoutTarget, NoUsableInstance
from mmguard.findings.rules.labels.numbering import CountsFromOne, GapsInIds, HugeIds
from mmguard.findings.rules.labels.out_of_range import NegativeLabels, OneTooMany, OutOfRange, StrayValue
from mmguard.findings.rules.labels.records import DuplicateIds, RecordsWithoutKey, UnnamedCategories, WrongRecords
from mmguard.findings.rules.labels.shifts import LabelMapBeforeShift, ReduceZeroHidesClass
from mmguard.findings.rules.labels.unusable_masks import UnusableMasks
from mmguard.findings.rules.labels.void import NothingToTrainOn, ShiftedVoid, VoidNotIgnored
from mmguard.findings.rules.labels.volumes import VOLUME_RULES
from mmguard.findings.rules.labels.yolo import (
    DataYaml,
    ImagesWithoutLabelFile,
    NoFractions,
    RefusedRows,
    RowsOfAnotherTask,
)

DATA_RULES: List[Type[Rule]] = [
    LabelsFine,
    RawCityscapesIds,
    OneTooMany,
    BinaryMask,
    VoidNotIgnored,
    NegativeLabels,
    GrayLevels,
    OutOfRange,
    MoreClassesThanHead,
    UnusableBoxes,
    CountsFromOne,
    GapsInIds,
    RawCocoIds,
    RawBratsIds,
    AdeNotReduced,
    StoredAsColours,
    PaletteReadAsColours,
    NotEightBits,
    Fractions,
    ReduceZeroHidesClass,
    ScaledGray,
    LabelMapBeforeShift,
    StrayValue,
    NothingToTrainOn,
    UnpairedFiles,
    SizeMismatch,
    FoldersSwapped,
    UnreadableFiles,
    ShiftedVoid,
    OnlyOneClass,
    LossyOrInterpolated,
    HugeIds,
    IdsAsLabels,
    NamesNotInFile,
    OrderDiffers,
    ImagesWithoutTarget,
    DuplicateIds,
    UnnamedCategories,
    MissingImages,
    BoxesBeyondImage,
    RecordsWithoutKey,
    CategoriesLeftOut,
    BackgroundListed,
    OutputsNeverTrained,
    CocoIdsLookedUp,
    RefusedRows,
    NoFractions,
    RowsOfAnotherTask,
    DataYaml,
    ImagesWithoutLabelFile,
    BoxesInAnotherForm,
    NoUsableInstance,
    WrongRecords,
    LoaderDiffers,
    UnusableMasks,
    *VOLUME_RULES,
]
