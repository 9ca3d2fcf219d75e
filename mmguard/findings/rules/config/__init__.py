"""The rules that read a config. Adding one touches this list.

Imports what findings may; no rules but its own.
"""

from typing import List, Type

from mmguard.findings.rule import ConfigRule
from mmguard.findings.rules.config.class_counts import BackgroundCounted, HeadNumClasses
from mmguard.findings.rules.config.class_lists import ClassList, ForeignClasses, SplitClasses
from mmguard.findings.rules.config.class_weights import ClassWeightLength, WeightedIgnored
from mmguard.findings.rules.config.form import OldStyle, WrongType
from mmguard.findings.rules.config.guards import (
    GuardMisplaced,
    GuardNumClasses,
    GuardReportMissing,
    GuardsUnheard,
    UnguardedEvaluation,
    UnguardedLosses,
)
from mmguard.findings.rules.config.ignored_labels import IgnoredClass, IgnoredInLoss, IgnoredLabelsAgree
from mmguard.findings.rules.config.label_map_range import LabelMapRange
from mmguard.findings.rules.config.metric_annotations import MetricAnnotations
from mmguard.findings.rules.config.negative_crop import NegativeCrop
from mmguard.findings.rules.config.one_channel import OneChannelSoftmax, SamplerOneChannel
from mmguard.findings.rules.config.own_lines import BaseHooksReplaced, OwnLineFails
from mmguard.findings.rules.config.unused_parameters import UnusedParameters
from mmguard.findings.rules.config.wrappers import WrapperMetainfo, WrapperPipeline
from mmguard.findings.rules.config.zero_label import ReducedBackground, ReduceZeroLabelTwice, ShiftAndMap

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
