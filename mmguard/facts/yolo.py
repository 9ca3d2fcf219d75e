"""Statistics of the label files of a YOLO data set."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Dict, List, Optional, Tuple

#: Kinds of faults, as keys of ``YoloFacts.faults``: malformed rows, coordinates outside of the image, rows for another
#: task, label files without an image, images without a label file, and faults of data.yaml.
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
    """COCO file from which the label files were probably made: it has the same images, but different objects."""

    source: str  #: Path of the COCO file.
    counts: Dict[str, Tuple[int, int]]  #: Class -> differing counts of objects in the label files and the COCO file.
    is_looked_up: bool  #: True if the labels are positions of the category ids among the 80 ids of COCO.


@dataclass
class YoloFacts:
    """Statistics of YOLO label files and their data.yaml."""

    task: str = BOXES  #: Kind of most rows: ``'boxes'``, ``'outlines'``, ``'oriented boxes'`` or ``'keypoints'``.
    rows: int = 0  #: Number of rows that are not blank, including unreadable rows.
    #: Fault, one of ``ROWS`` to ``DECLARED`` -> its first occurrences, ``'labels/a.txt: line 3: reason'``.
    faults: Dict[str, List[str]] = field(default_factory=dict)
    counts: Dict[str, int] = field(default_factory=dict)  #: Fault, as in ``faults`` -> number of its occurrences.
    reasons: Dict[str, int] = field(default_factory=dict)  #: Reason why rows cannot be read -> number of rows.
    in_pixels: int = 0  #: Number of rows with a coordinate above 2, which is too large for a rounding error.
    turned: int = 0  #: Boxes outside of [0, 1] with a negative width or height.
    left_out: int = 0  #: Images that ultralytics excludes from training because one of their rows is invalid.
    unswapped: int = 0  #: Number of keypoints if ``flip_idx`` of data.yaml maps all of them to themselves, else 0.
    #: Fault, one of ``ROWS`` to ``UNREADABLE`` -> all files with this fault.
    files: Dict[str, List[str]] = field(default_factory=dict)
    images: int = 0  #: Number of images; 0 if their folder is unknown.
    #: Image folder without label files -> (folder where ultralytics expects label files, folder that contains the label
    #: files, their number).
    elsewhere: Dict[str, Tuple[str, str, int]] = field(default_factory=dict)
    #: The COCO file that is probably the source of the label files, if its objects differ from the rows.
    original: Optional[Original] = None
