"""The rules that read a config. A rule, or a few of a kind, a file; adding one touches only this list.

Imports what findings may; no rules but its own.
"""

from typing import List, Type

from mmguard.findings.rule import ConfigRule
from mmguard.findings.rules.config.background_counted import BackgroundCounted
from mmguard.findings.rules.config.base_hooks_replaced import BaseHooksReplaced
from mmguard.findings.rules.config.class_list import ClassList
from mmguard.findings.rules.config.class_weight_length import ClassWeightLength
from mmguard.findings.rules.config.foreign_classes import ForeignClasses
from mmguard.findings.rules.config.guard_misplaced import GuardMisplaced
from mmguard.findings.rules.config.guard_num_classes import GuardNumClasses
from mmguard.findings.rules.config.guard_report_missing import GuardReportMissing
from mmguard.findings.rules.config.guards_unheard import GuardsUnheard
from mmguard.findings.rules.config.head_num_classes import HeadNumClasses
from mmguard.findings.rules.config.ignored_class import IgnoredClass
from mmguard.findings.rules.config.ignored_in_loss import IgnoredInLoss
from mmguard.findings.rules.config.ignored_labels_agree import IgnoredLabelsAgree
from mmguard.findings.rules.config.label_map_range import LabelMapRange
from mmguard.findings.rules.config.metric_annotations import MetricAnnotations
from mmguard.findings.rules.config.negative_crop import NegativeCrop
from mmguard.findings.rules.config.old_style import OldStyle
from mmguard.findings.rules.config.one_channel import OneChannelSoftmax
from mmguard.findings.rules.config.own_line_fails import OwnLineFails
from mmguard.findings.rules.config.reduce_zero_label_twice import ReduceZeroLabelTwice
from mmguard.findings.rules.config.reduced_background import ReducedBackground
from mmguard.findings.rules.config.sampler_one_channel import SamplerOneChannel
from mmguard.findings.rules.config.shift_and_map import ShiftAndMap
from mmguard.findings.rules.config.split_classes import SplitClasses
from mmguard.findings.rules.config.unguarded_evaluation import UnguardedEvaluation
from mmguard.findings.rules.config.unguarded_losses import UnguardedLosses
from mmguard.findings.rules.config.unused_parameters import UnusedParameters
from mmguard.findings.rules.config.weighted_ignored import WeightedIgnored
from mmguard.findings.rules.config.wrappers import WrapperMetainfo, WrapperPipeline
from mmguard.findings.rules.config.wrong_type import WrongType

#: Causes before what follows from them: a class list that does not arrive also makes every head wrong.
CONFIG_RULES: List[Type[ConfigRule]] = [
    OldStyle,
    WrongType,
    OwnLineFails,
    WrapperPipeline,
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
    ShiftAndMap,
    LabelMapRange,
    WeightedIgnored,
    SamplerOneChannel,
    OneChannelSoftmax,
    UnguardedLosses,
    NegativeCrop,
    GuardMisplaced,
    GuardReportMissing,
    GuardsUnheard,
    BaseHooksReplaced,
    GuardNumClasses,
    UnusedParameters,
    MetricAnnotations,
    UnguardedEvaluation,
    IgnoredInLoss,
]
