"""Statistics of the label files of a YOLO data set."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Dict, List, Optional, Tuple

#: Kinds of faults, as keys of ``YoloFacts.faults``.
ROWS = 'rows'
BEYOND = 'beyond'
OTHER_TASK = 'other task'
NO_IMAGE = 'no image'
NO_LABEL = 'no label'
DECLARED = 'declared'
#: Faults of single files: ids that are not a class, and files that cannot be opened.
CLASS = 'class'
UNREADABLE = 'unreadable'

#: Kinds of rows.
BOXES, OUTLINES, CORNERS, KEYPOINTS = 'boxes', 'outlines', 'oriented boxes', 'keypoints'


@dataclass
class Original:
    """A COCO file with the same images but other objects, from which the label files seem to be converted."""

    source: str  #: The file.
    counts: Dict[str, Tuple[int, int]]  #: Class -> objects in the label files and in the COCO file, if they differ.
    is_looked_up: bool  #: True if its category ids were looked up among the 80 ids of COCO to give the labels.


@dataclass
class YoloFacts:
    """Statistics of YOLO label files and their data.yaml."""

    task: str = BOXES  #: Kind of most rows: ``'boxes'``, ``'outlines'``, ``'oriented boxes'`` or ``'keypoints'``.
    rows: int = 0  #: Number of rows, readable or not, without blank ones.
    #: Fault, one of ``ROWS`` to ``DECLARED`` -> its first places, ``'labels/a.txt: line 3: what'``.
    faults: Dict[str, List[str]] = field(default_factory=dict)
    counts: Dict[str, int] = field(default_factory=dict)  #: Fault, as in ``faults`` -> number of its places.
    reasons: Dict[str, int] = field(default_factory=dict)  #: Reason why rows cannot be read -> number of rows.
    in_pixels: int = 0  #: Rows with a coordinate above 2, which rounding does not explain.
    turned: int = 0  #: Boxes outside of [0, 1] with a negative width or height.
    left_out: int = 0  #: Images that ultralytics excludes from training, with all rows, because of one row.
    unswapped: int = 0  #: Keypoints whose ``flip_idx`` of data.yaml is the identity; 0 without one.
    #: Fault, one of ``ROWS`` to ``UNREADABLE`` -> every file with it.
    files: Dict[str, List[str]] = field(default_factory=dict)
    images: int = 0  #: Images found; 0: their folder is unknown.
    #: Folder of images without label files -> where ultralytics looks for them, where they are, and how many.
    elsewhere: Dict[str, Tuple[str, str, int]] = field(default_factory=dict)
    #: The COCO file that the label files seem to be converted from, if its objects differ.
    original: Optional[Original] = None
