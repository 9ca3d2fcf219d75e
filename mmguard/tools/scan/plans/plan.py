"""What is to be scanned: the data sets that a target names."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import Any, Callable, List, Optional, Union

from mmguard.config.read import ReadConfig
from mmguard.errors import CannotRun
from mmguard.findings.facts import ConfigFacts, LabelFacts
from mmguard.tools.scan.nnunet.source import CaseSource
from mmguard.tools.scan.options import ScanOptions
from mmguard.tools.scan.sources.base import MapSource
from mmguard.tools.scan.sources.config import SPLITS

#: How splits are called elsewhere.
_OTHER_NAMES = {'training': 'train', 'valid': 'val', 'validation': 'val', 'testing': 'test'}


class CannotScan(CannotRun):
    """There is nothing that could be scanned, and why."""


@dataclass
class AnnotationSource:
    """A data set of annotation files.

    Args:
        name (str): What to call it.
        read (callable): Reads it.
        notes (list[str]): What the user should know of it.
        files (list): What it reads, to tell whether two splits are the same.
        spread (bool): Whether ``read`` takes a mapper, and what is called with the number of files done.
    """

    name: str
    read: Callable[..., LabelFacts]
    notes: List[str] = field(default_factory=list)
    files: List[Any] = field(default_factory=list)
    spread: bool = False


Source = Union[MapSource, AnnotationSource, CaseSource]


@dataclass
class Plan:
    """What is to be scanned.

    Args:
        sources (list): The data sets.
        config (ConfigFacts): What the config, or the command line, says about labels.
        failed (list[str]): Data sets that could not be opened, and why.
        tree (ReadConfig, optional): The config, where the target is one.
        target (str): What the user named.
        options (ScanOptions): What the user said about it.
    """

    sources: List[Source]
    config: ConfigFacts
    failed: List[str] = field(default_factory=list)
    tree: Optional[ReadConfig] = None
    target: str = ''
    options: ScanOptions = field(default_factory=ScanOptions)

    def source(self, name: str) -> Optional[Source]:
        """The data set of a name."""
        return next((source for source in self.sources if source.name == name), None)


def is_left_out(split: str, options: ScanOptions) -> bool:
    """Whether a split, or its folder, has one of the usual names, and is not asked for."""
    name = os.path.basename(split)
    name = _OTHER_NAMES.get(name, name)
    return name in SPLITS and name not in options.splits
