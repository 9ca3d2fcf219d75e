"""Label and image on different grids."""

from __future__ import annotations

from mmguard.findings.finding import LIKELY
from mmguard.findings.rule import Example
from mmguard.findings.rules.labels.volumes.base import VolumeCause
from mmguard.findings.volumes import ORIENTATION, SHAPE, SPACING


class ShapesDiffer(VolumeCause):
    """Label and image, or two channels, of different shapes."""

    code = 'MG188'
    shown_by = (SHAPE,)
    summary = 'Volumes of a case have different shapes.'
    why = 'nnU-Net stops: label and image, and all channels, must have the same voxels.'
    example = Example(
        wrong='label 112x160x128, image 112x160x127',
        right='sitk.Resample(label, image, sitk.Transform(), sitk.sitkNearestNeighbor)',
    )
    limits = 'Equal shapes may still be of two different volumes.'
    advice = (
        'Resample onto the grid of the image, labels with nearest neighbour: `sitk.Resample(label, image, '
        'sitk.Transform(), sitk.sitkNearestNeighbor)`. If it is the same numbers in another order, an axis was moved '
        'when an array was saved: `np.transpose(seg, (2, 1, 0))`.'
    )


class SpacingsDiffer(VolumeCause):
    """Label and image, or two channels, of different spacings."""

    code = 'MG189'
    shown_by = (SPACING,)
    summary = 'Volumes of a case have different spacings.'
    why = 'nnU-Net stops; one of the headers is wrong, and resampling would go by it.'
    example = Example(
        wrong='nib.Nifti1Image(seg, np.eye(4))',
        right='nib.Nifti1Image(seg, image.affine)',
    )
    limits = 'Which of the two headers is wrong, it does not know.'
    advice = (
        'If the voxels fit and only the header is wrong, copy that of the image: `label.CopyInformation(image)` '
        '(SimpleITK), `nib.Nifti1Image(seg, image.affine)` (nibabel). If they do not fit, resample onto the grid of '
        'the image.'
    )


class OrientationsDiffer(VolumeCause):
    """Origins, directions or affines that differ."""

    code = 'MG190'
    shown_by = (ORIENTATION,)
    usual_certainty = LIKELY
    severity = 'warning'
    summary = 'Volumes of a case have different places: origin, direction or affine differ.'
    why = 'nnU-Net goes on, voxel by voxel, whatever the headers say: a flipped label is trained flipped.'
    example = Example(
        wrong='label.SetOrigin((0, 0, 0))',
        right='label.CopyInformation(image)',
    )
    limits = 'Whether the voxels fit all the same, only a look at them tells.'
    advice = (
        'Look at them one over the other: `nnUNetv2_plot_overlay_pngs -d DATASET_ID -o FOLDER`. If they fit voxel by '
        'voxel, copy the header, `label.CopyInformation(image)`; if not, resample the label onto the image.'
    )
