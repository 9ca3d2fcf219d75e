"""The causes that files, counts and configs can show. One cause, one file; adding one touches this list alone."""

from typing import List, Type

from mmguard.diagnosis.causes.ade_not_reduced import AdeNotReduced
from mmguard.diagnosis.causes.background_counted import BackgroundCounted
from mmguard.diagnosis.causes.binary_mask import BinaryMask
from mmguard.diagnosis.causes.boxes_as_corners import BoxesAsCorners
from mmguard.diagnosis.causes.boxes_beyond_image import BoxesBeyondImage
from mmguard.diagnosis.causes.categories_left_out import CategoriesLeftOut
from mmguard.diagnosis.causes.class_lists_differ import ClassListsDiffer
from mmguard.diagnosis.causes.class_weight_length import ClassWeightLength
from mmguard.diagnosis.causes.class_weight_meets_ignored import ClassWeightMeetsIgnored
from mmguard.diagnosis.causes.counts_from_one import CountsFromOne
from mmguard.diagnosis.causes.duplicate_ids import DuplicateIds
from mmguard.diagnosis.causes.filtered_by_size import FilteredBySize
from mmguard.diagnosis.causes.folders_swapped import FoldersSwapped
from mmguard.diagnosis.causes.fractions import Fractions
from mmguard.diagnosis.causes.gaps_in_ids import GapsInIds
from mmguard.diagnosis.causes.gray_levels import GrayLevels
from mmguard.diagnosis.causes.heads_differ_from_data import HeadsDifferFromData
from mmguard.diagnosis.causes.huge_ids import HugeIds
from mmguard.diagnosis.causes.ids_as_labels import IdsAsLabels
from mmguard.diagnosis.causes.ignored_differs import IgnoredDiffers
from mmguard.diagnosis.causes.ignored_is_class import IgnoredIsClass
from mmguard.diagnosis.causes.image_size_differs import ImageSizeDiffers
from mmguard.diagnosis.causes.images_without_target import ImagesWithoutTarget
from mmguard.diagnosis.causes.instance_maps import InstanceMaps
from mmguard.diagnosis.causes.label_map_before_shift import LabelMapBeforeShift
from mmguard.diagnosis.causes.label_map_leads_out import LabelMapLeadsOut
from mmguard.diagnosis.causes.labels_fine import LabelsFine
from mmguard.diagnosis.causes.lossy import LossyOrInterpolated
from mmguard.diagnosis.causes.minus_one_workaround import MinusOneWorkaround
from mmguard.diagnosis.causes.missing_images import MissingImages
from mmguard.diagnosis.causes.mixed_conventions import MixedConventions
from mmguard.diagnosis.causes.more_classes_than_head import MoreClassesThanHead
from mmguard.diagnosis.causes.names_nearly_equal import NamesNearlyEqual
from mmguard.diagnosis.causes.names_not_in_file import NamesNotInFile
from mmguard.diagnosis.causes.negative import NegativeLabels
from mmguard.diagnosis.causes.no_usable_instance import NoUsableInstance
from mmguard.diagnosis.causes.normalised_boxes import NormalisedBoxes
from mmguard.diagnosis.causes.nothing_to_train_on import NothingToTrainOn
from mmguard.diagnosis.causes.one_channel_softmax import OneChannelSoftmax
from mmguard.diagnosis.causes.one_too_many import OneTooMany
from mmguard.diagnosis.causes.only_one_class import OnlyOneClass
from mmguard.diagnosis.causes.order_differs import OrderDiffers
from mmguard.diagnosis.causes.orphan_annotations import OrphanAnnotations
from mmguard.diagnosis.causes.out_of_range import OutOfRange
from mmguard.diagnosis.causes.palette_as_colours import PaletteReadAsColours
from mmguard.diagnosis.causes.raw_brats import RawBratsIds
from mmguard.diagnosis.causes.raw_cityscapes import RawCityscapesIds
from mmguard.diagnosis.causes.raw_coco import RawCocoIds
from mmguard.diagnosis.causes.records_without_key import RecordsWithoutKey
from mmguard.diagnosis.causes.reduce_zero_hides_class import ReduceZeroHidesClass
from mmguard.diagnosis.causes.scaled_gray import ScaledGray
from mmguard.diagnosis.causes.shifted_void import ShiftedVoid
from mmguard.diagnosis.causes.size_mismatch import SizeMismatch
from mmguard.diagnosis.causes.stored_as_colours import StoredAsColours
from mmguard.diagnosis.causes.stray_value import StrayValue
from mmguard.diagnosis.causes.stretched_bits import StretchedBits
from mmguard.diagnosis.causes.unnamed_categories import UnnamedCategories
from mmguard.diagnosis.causes.unpaired_files import UnpairedFiles
from mmguard.diagnosis.causes.unreadable_files import UnreadableFiles
from mmguard.diagnosis.causes.unusable_boxes import UnusableBoxes
from mmguard.diagnosis.causes.void_not_ignored import VoidNotIgnored
from mmguard.diagnosis.causes.volumes import VOLUME_CAUSES
from mmguard.diagnosis.causes.wider_than_8_bits import WiderThanEightBits
from mmguard.diagnosis.causes.wrong_records import WrongRecords
from mmguard.diagnosis.finding import Cause

CAUSES: List[Type[Cause]] = [
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
    ClassWeightMeetsIgnored,
    ClassWeightLength,
    OneChannelSoftmax,
    IgnoredIsClass,
    IgnoredDiffers,
    CountsFromOne,
    GapsInIds,
    RawCocoIds,
    RawBratsIds,
    AdeNotReduced,
    StoredAsColours,
    PaletteReadAsColours,
    WiderThanEightBits,
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
    LabelMapLeadsOut,
    OnlyOneClass,
    LossyOrInterpolated,
    HugeIds,
    IdsAsLabels,
    MinusOneWorkaround,
    NamesNotInFile,
    OrderDiffers,
    BackgroundCounted,
    HeadsDifferFromData,
    ClassListsDiffer,
    FilteredBySize,
    ImagesWithoutTarget,
    DuplicateIds,
    OrphanAnnotations,
    UnnamedCategories,
    MissingImages,
    StretchedBits,
    BoxesBeyondImage,
    RecordsWithoutKey,
    CategoriesLeftOut,
    InstanceMaps,
    MixedConventions,
    BoxesAsCorners,
    NormalisedBoxes,
    NoUsableInstance,
    ImageSizeDiffers,
    WrongRecords,
    NamesNearlyEqual,
    *VOLUME_CAUSES,
]
