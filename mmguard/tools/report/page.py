"""What the page is made from."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Dict, List, Optional, Tuple

from mmguard.findings import Finding, LabelFacts


@dataclass
class Box:
    """A box to draw.

    Args:
        corners (tuple): x1, y1, x2, y2 in pixels of the image file; any finite or other number.
        name (str): What to write at it: the class, or the label that is none.
        reason (str): Why it is invalid, as in ``LabelFacts.reasons`` (``'label'``, ``'box_no_area'``, ...); empty: it
            is valid.
    """

    corners: Tuple[float, float, float, float]
    name: str = ''
    reason: str = ''


@dataclass
class WorstFile:
    """A file with much that is invalid. Its picture is drawn from the paths; what cannot be read is said instead.

    Args:
        source (str): Its name, as shown. Any string: names are escaped, and may be no UTF-8.
        image_path (str, optional): The image on disk.
        label_path (str, optional): The label map on disk; ``None`` for boxes.
        boxes (list[Box]): All boxes of the image, valid ones too.
        values (dict[int, int]): Invalid value *as stored in the file* -> pixels or instances. These are the pixels that
            are marked.
        skipped (int): Pixels or instances that are not trained on because they are invalid.
        reasons (dict[str, int]): Of instances, why they are invalid -> count.
        ignored (list[int], optional): Values as stored that count as ignored. ``None``: the ``ignore_index`` of the
            section (with ``reduce_zero_label`` that is not what is stored).
    """

    source: str
    image_path: Optional[str] = None
    label_path: Optional[str] = None
    boxes: List[Box] = field(default_factory=list)
    values: Dict[int, int] = field(default_factory=dict)
    skipped: int = 0
    reasons: Dict[str, int] = field(default_factory=dict)
    ignored: Optional[List[int]] = None

    @property
    def has_picture(self) -> bool:
        return bool(self.image_path or self.label_path)


@dataclass
class Section:
    """One data set (a split), or one mode of a training, on the page.

    Args:
        name (str): ``'train'``, ...
        facts (LabelFacts): Its counts: ``histogram`` (or else ``values``) is drawn.
        findings (list[Finding]): The most likely first; none: "your labels are fine".
        worst (list[WorstFile]): The worst first. All are listed, the first few drawn.
        notes (list[str]): Sentences under the verdict: where to look instead, what was left out.
        history (dict[str, dict[int, int]]): Of a training: what is counted (``'skipped pixels'``, ...) ->
            iteration -> count.
    """

    name: str
    facts: LabelFacts
    findings: List[Finding] = field(default_factory=list)
    worst: List[WorstFile] = field(default_factory=list)
    notes: List[str] = field(default_factory=list)
    history: Dict[str, Dict[int, int]] = field(default_factory=dict)
