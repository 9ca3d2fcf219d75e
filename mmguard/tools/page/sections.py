"""Sections of the page."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Dict, List, Optional

from mmguard.findings import Finding, LabelFacts
from mmguard.findings.facts import BoxedImage


@dataclass
class WorstFile:
    """File with many invalid labels, for a picture drawn from its paths; a file that cannot be read is named instead.

    Args:
        source (str): Its name, as shown. Any string: names are escaped, and need not be UTF-8.
        label_path (str, optional): The label map on disk.
        image_path (str, optional): Its image.
        values (dict[int, int]): Invalid value *as stored in the file* -> pixels or instances. These are the pixels that
            are marked.
        skipped (int): Pixels or instances that are not trained on because they are invalid.
        reasons (dict[str, int]): For instances, reason why they are invalid -> count.
        ignored (list[int], optional): Values as stored that count as ignored. ``None``: the ``ignore_index`` of the
            section (with ``reduce_zero_label`` that is not the stored value).
        boxed (BoxedImage, optional): Its boxes, and its image.
    """

    source: str
    label_path: Optional[str] = None
    image_path: Optional[str] = None
    values: Dict[int, int] = field(default_factory=dict)
    skipped: int = 0
    reasons: Dict[str, int] = field(default_factory=dict)
    ignored: Optional[List[int]] = None
    boxed: Optional[BoxedImage] = None

    @property
    def is_drawn(self) -> bool:
        return self.label_path is not None or self.boxed is not None


@dataclass
class Section:
    """Data set (a split) on the page; the worst files first, a few of them drawn."""

    name: str
    facts: LabelFacts
    findings: List[Finding] = field(default_factory=list)
    worst: List[WorstFile] = field(default_factory=list)
    notes: List[str] = field(default_factory=list)
