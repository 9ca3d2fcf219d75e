"""The causes that values alone can show. One cause, one file; adding one touches this list alone."""

from typing import List, Type

from mmguard.diagnosis.causes.binary_mask import BinaryMask
from mmguard.diagnosis.causes.gray_levels import GrayLevels
from mmguard.diagnosis.causes.more_classes_than_head import MoreClassesThanHead
from mmguard.diagnosis.causes.negative import NegativeLabels
from mmguard.diagnosis.causes.one_too_many import OneTooMany
from mmguard.diagnosis.causes.out_of_range import OutOfRange
from mmguard.diagnosis.causes.raw_cityscapes import RawCityscapesIds
from mmguard.diagnosis.causes.unusable_boxes import UnusableBoxes
from mmguard.diagnosis.causes.void_not_ignored import VoidNotIgnored
from mmguard.diagnosis.finding import Cause

CAUSES: List[Type[Cause]] = [
    RawCityscapesIds,
    OneTooMany,
    BinaryMask,
    VoidNotIgnored,
    NegativeLabels,
    GrayLevels,
    MoreClassesThanHead,
    UnusableBoxes,
    OutOfRange,
]
