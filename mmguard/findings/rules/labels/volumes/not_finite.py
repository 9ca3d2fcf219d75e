from __future__ import annotations

from mmguard.findings.rule import Example
from mmguard.findings.rules.labels.volumes.base import VolumeCause
from mmguard.findings.volumes import NOT_FINITE


class NotFinite(VolumeCause):
    """NaN or infinite voxels."""

    code = 'MG187'
    shown_by = (NOT_FINITE,)
    summary = 'Voxels are NaN or infinite.'
    why = 'One of them makes mean and standard deviation of its case NaN, with them all its voxels, then the loss.'
    example = Example(
        wrong='image / image.max() of an empty volume',
        right='np.nan_to_num(image, nan=0, posinf=0, neginf=0)',
    )
    limits = 'It names the voxels, not what made them.'
    advice = (
        'Replace them with the value of nothing in your images (air in CT, 0 in MR): `np.nan_to_num(image, nan=0, '
        'posinf=0, neginf=0)`. In a label file find out what made them; they are not a class.'
    )
