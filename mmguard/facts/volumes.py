"""Statistics of a data set of 3D volumes in the format of nnU-Net."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Dict, List

#: Kinds of faults of a case, as keys of ``VolumeFacts.faults``.
UNEXPECTED = 'unexpected'
FRACTIONS = 'fractions'
INTENSITIES = 'intensities'
NOT_FINITE = 'not finite'
SHAPE = 'shape'
SPACING = 'spacing'
ORIENTATION = 'orientation'
FORM = 'form'
UNREADABLE = 'unreadable'
NO_LABEL = 'no label'
NO_IMAGE = 'no image'
CHANNELS = 'channels'
STRANGER = 'stranger'
BACKGROUND_ONLY = 'background only'
IGNORED_ONLY = 'ignored only'


@dataclass
class CaseFault:
    """Fault in one file of a case. A case is an image with its label."""

    case: str  #: Name of the case, ``'liver_003'``.
    file: str  #: Path of the file, relative to the data set.
    detail: str  #: Description of the fault, with its numbers.
    voxels: int = 0  #: Number of voxels with the fault; 0 if the whole file has the fault.
    values: Dict[str, int] = field(default_factory=dict)  #: Invalid value, as nnU-Net reads it -> number of voxels.
    #: Value -> its slices, ``'slices 40-55 (most in slice 47)'``. Slices are counted from 0 along z, the last axis of a
    #: NIfTI file and the first axis of nnU-Net's arrays.
    slices: Dict[str, str] = field(default_factory=dict)


@dataclass
class VolumeFacts:
    """Statistics of a data set of volumes: its cases, its dataset.json, and their faults."""

    format: str = ''  #: Name of its format, ``'nnunet'``.
    cases: int = 0  #: Number of training cases.
    reader: str = ''  #: nnU-Net's class that reads the files, ``'SimpleITKIO'``.
    file_ending: str = ''  #: Extension of the files, as given in dataset.json.
    expected: List[int] = field(default_factory=list)  #: Valid values, including the ignored label.
    #: Part of dataset.json (``'keys'``, ``'labels'``, ``'regions'``, or ``'count'`` of cases) -> its faults.
    declared: Dict[str, List[str]] = field(default_factory=dict)
    faults: Dict[str, List[CaseFault]] = field(default_factory=dict)  #: Kind of fault -> all faults of this kind.
    never: List[int] = field(default_factory=list)  #: Declared values that no label file contains.
    files_with_class: Dict[int, int] = field(default_factory=dict)  #: Value -> number of label files.
    labels_read: int = 0  #: Number of readable label files.
    root: str = ''  #: The folder of the data set.
    content: Dict[str, Any] = field(default_factory=dict)  #: Parsed content of dataset.json.
    #: ``'v2'``, ``'v1'``, or ``'msd'`` (Medical Segmentation Decathlon: v1 without channels in the names of images).
    layout: str = 'v2'

    def find_faults(self, *kinds: str) -> List[CaseFault]:
        """Return the faults of the given kinds, ordered by kind."""
        return [fault for kind in kinds for fault in self.faults.get(kind, [])]
