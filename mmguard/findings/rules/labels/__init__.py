"""The causes that files, counts and configs can show. One cause, one file; adding one touches this list alone.

Imports what findings may; no rules but its own.
"""

from typing import List, Type

from mmguard.findings.rule import Rule
from mmguard.findings.rules.labels.background_listed import BackgroundListed
from mmguard.findings.rules.labels.binary_mask import BinaryMask
from mmguard.findings.rules.labels.boxes_as_corners import BoxesInAnotherForm
from mmguard.findings.rules.labels.boxes_beyond_image import BoxesBeyondImage
from mmguard.findings.rules.labels.categories_left_out import CategoriesLeftOut
from mmguard.findings.rules.labels.coco_ids_looked_up import CocoIdsLookedUp
from mmguard.findings.rules.labels.counts_from_one import CountsFromOne
from mmguard.findings.rules.labels.duplicate_ids import DuplicateIds
from mmguard.findings.rules.labels.folders_swapped import FoldersSwapped
from mmguard.findings.rules.labels.fractions import Fractions
from mmguard.findings.rules.labels.gaps_in_ids import GapsInIds
from mmguard.findings.rules.labels.gray_levels import GrayLevels, ScaledGray
from mmguard.findings.rules.labels.huge_ids import HugeIds
from mmguard.findings.rules.labels.ids_as_labels import IdsAsLabels
from mmguard.findings.rules.labels.images_without_target import ImagesWithoutTarget
from mmguard.findings.rules.labels.label_map_before_shift import LabelMapBeforeShift
from mmguard.findings.rules.labels.labels_fine import LabelsFine
from mmguard.findings.rules.labels.loader_differs import LoaderDiffers
from mmguard.findings.rules.labels.lossy import LossyOrInterpolated
from mmguard.findings.rules.labels.missing_images import MissingImages
from mmguard.findings.rules.labels.more_classes_than_head import MoreClassesThanHead
from mmguard.findings.rules.labels.names_not_in_file import NamesNotInFile
from mmguard.findings.rules.labels.no_usable_instance import NoUsableInstance
from mmguard.findings.rules.labels.nothing_to_train_on import NothingToTrainOn
from mmguard.findings.rules.labels.one_too_many import OneTooMany
from mmguard.findings.rules.labels.only_one_class import OnlyOneClass
from mmguard.findings.rules.labels.order_differs import OrderDiffers
from mmguard.findings.rules.labels.out_of_range import NegativeLabels, OutOfRange
from mmguard.findings.rules.labels.outputs_never_trained import OutputsNeverTrained
from mmguard.findings.rules.labels.palette_as_colours import PaletteReadAsColours
from mmguard.findings.rules.labels.raw_cityscapes import RawCityscapesIds
from mmguard.findings.rules.labels.raw_ids import AdeNotReduced, RawBratsIds, RawCocoIds
from mmguard.findings.rules.labels.records_without_key import RecordsWithoutKey
from mmguard.findings.rules.labels.reduce_zero_hides_class import ReduceZeroHidesClass
from mmguard.findings.rules.labels.shifted_void import ShiftedVoid
from mmguard.findings.rules.labels.size_mismatch import SizeMismatch
from mmguard.findings.rules.labels.stored_as_colours import StoredAsColours
from mmguard.findings.rules.labels.stray_value import StrayValue
from mmguard.findings.rules.labels.unnamed_categories import UnnamedCategories
from mmguard.findings.rules.labels.unpaired_files import UnpairedFiles
from mmguard.findings.rules.labels.unreadable_files import UnreadableFiles
from mmguard.findings.rules.labels.unusable_boxes import UnusableBoxes
from mmguard.findings.rules.labels.unusable_masks import UnusableMasks
from mmguard.findings.rules.labels.void_not_ignored import VoidNotIgnored
from mmguard.findings.rules.labels.volumes import VOLUME_RULES
from mmguard.findings.rules.labels.wider_than_8_bits import NotEightBits
from mmguard.findings.rules.labels.wrong_records import WrongRecords
from mmguard.findings.rules.labels.yolo import YOLO_RULES

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
    *YOLO_RULES,
    BoxesInAnotherForm,
    NoUsableInstance,
    WrongRecords,
    LoaderDiffers,
    UnusableMasks,
    *VOLUME_RULES,
]
