"""The rules. One rule, one file; adding one touches this list alone."""

from typing import List, Type

from mmguard.check.rule import Rule
from mmguard.check.rules.background_counted import BackgroundCounted
from mmguard.check.rules.class_list import ClassList
from mmguard.check.rules.class_weight_length import ClassWeightLength
from mmguard.check.rules.empty_images_detr import EmptyImagesDetr
from mmguard.check.rules.foreign_classes import ForeignClasses
from mmguard.check.rules.guard_num_classes import GuardNumClasses
from mmguard.check.rules.guard_report_lost import GuardReportLost
from mmguard.check.rules.half_precision_weights import HalfPrecisionWeights
from mmguard.check.rules.head_num_classes import HeadNumClasses
from mmguard.check.rules.ignored_as_background import IgnoredAsBackground
from mmguard.check.rules.ignored_class import IgnoredClass
from mmguard.check.rules.ignored_labels_agree import IgnoredLabelsAgree
from mmguard.check.rules.label_indexed_early import LabelIndexedEarly
from mmguard.check.rules.label_map_range import LabelMapRange
from mmguard.check.rules.loss_num_classes import LossNumClasses
from mmguard.check.rules.mask_interpolation import MaskInterpolation
from mmguard.check.rules.metric_annotations import MetricAnnotations
from mmguard.check.rules.negative_ignore_index import NegativeIgnoreIndex
from mmguard.check.rules.nested_use_sigmoid import NestedUseSigmoid
from mmguard.check.rules.old_style import OldStyle
from mmguard.check.rules.one_channel import OneChannelSoftmax
from mmguard.check.rules.reduce_zero_label_twice import ReduceZeroLabelTwice
from mmguard.check.rules.reduced_background import ReducedBackground
from mmguard.check.rules.split_classes import SplitClasses
from mmguard.check.rules.unguarded_evaluation import UnguardedEvaluation
from mmguard.check.rules.unguarded_losses import UnguardedLosses
from mmguard.check.rules.unguarded_ohem import UnguardedOhem
from mmguard.check.rules.unused_parameters import UnusedParameters
from mmguard.check.rules.weighted_ignored import WeightedIgnored
from mmguard.check.rules.wrapper_metainfo import WrapperMetainfo

#: Causes before what follows from them: a class list that does not arrive also makes every head wrong.
RULES: List[Type[Rule]] = [
    OldStyle,
    WrapperMetainfo,
    ClassList,
    ForeignClasses,
    HeadNumClasses,
    BackgroundCounted,
    SplitClasses,
    ClassWeightLength,
    IgnoredLabelsAgree,
    IgnoredClass,
    ReduceZeroLabelTwice,
    ReducedBackground,
    LabelMapRange,
    MaskInterpolation,
    WeightedIgnored,
    OneChannelSoftmax,
    NegativeIgnoreIndex,
    HalfPrecisionWeights,
    UnguardedOhem,
    LabelIndexedEarly,
    UnguardedLosses,
    EmptyImagesDetr,
    IgnoredAsBackground,
    GuardReportLost,
    NestedUseSigmoid,
    GuardNumClasses,
    UnusedParameters,
    LossNumClasses,
    MetricAnnotations,
    UnguardedEvaluation,
]
