# Public names for type checkers: at run time most of them are imported where they are used first.
from mmguard import detection as detection
from mmguard import distributed as distributed
from mmguard import functional as functional
from mmguard import nn as nn
from mmguard import testing as testing
from mmguard.commands.api import Diagnosis as Diagnosis
from mmguard.commands.api import check as check
from mmguard.commands.api import dry_run as dry_run
from mmguard.commands.api import explain as explain
from mmguard.commands.api import scan as scan
from mmguard.commands.apply.guarded import guard_config as guard_config
from mmguard.functional.check_target import check_target as check_target
from mmguard.hooks import FlightRecorderHook as FlightRecorderHook
from mmguard.hooks import LabelGuardHook as LabelGuardHook
from mmguard.hooks import RankGuardHook as RankGuardHook
from mmguard.labels.tally import LabelGuardError as LabelGuardError
from mmguard.labels.tally import Tally as Tally
from mmguard.log.guard_log import read_log as read_log
from mmguard.loops import LabelGuard as LabelGuard
from mmguard.losses import GuardedCrossEntropyLoss as GuardedCrossEntropyLoss
from mmguard.losses import GuardedLoss as GuardedLoss
from mmguard.transforms import GuardInstanceLabels as GuardInstanceLabels
from mmguard.transforms import GuardSegLabels as GuardSegLabels
from mmguard.version import __version__ as __version__

def register() -> None: ...
