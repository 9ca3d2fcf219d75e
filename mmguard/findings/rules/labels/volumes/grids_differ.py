"""Label and image that do not lie on the same grid."""

from __future__ import annotations

from mmguard.findings.finding import LIKELY
from mmguard.findings.rules.labels.volumes.base import VolumeCause
from mmguard.findings.volumes import ORIENTATION, SHAPE, SPACING


class ShapesDiffer(VolumeCause):
    """Label and image, or two channels, of different shapes."""

    code = 'MG188'
    shown_by = (SHAPE,)
    summary = 'Volumes of a case have different shapes.'
    why = 'nnU-Net stops: label and image, and all channels, must have the same voxels.'
    advice = (
        'Resample onto the grid of the image, labels with nearest neighbour: '
        '`sitk.Resample(label, image, sitk.Transform(), sitk.sitkNearestNeighbor)`. If the same numbers stand in '
        'another order, an axis was moved when an array was saved: `np.transpose(seg, (2, 1, 0))`.'
    )


class SpacingsDiffer(VolumeCause):
    """Label and image, or two channels, of different spacings."""

    code = 'MG189'
    shown_by = (SPACING,)
    summary = 'Volumes of a case have different spacings.'
    why = 'nnU-Net stops; one of the headers is wrong, and resampling would go by it.'
    advice = (
        'If the voxels fit and only the header is wrong, copy that of the image: `label.CopyInformation(image)` '
        '(SimpleITK), `nib.Nifti1Image(seg, image.affine)` (nibabel). Otherwise resample onto the grid of the image.'
    )


class OrientationsDiffer(VolumeCause):
    """Origins, directions or affines that differ."""

    code = 'MG190'
    shown_by = (ORIENTATION,)
    usual_certainty = LIKELY
    severity = 'warning'
    summary = 'Volumes of a case lie in different places: origin, direction or affine differ.'
    why = 'nnU-Net goes on, voxel by voxel, whatever the headers say: a flipped label is trained as it lies.'
    advice = (
        'Look at them one over the other: `nnUNetv2_plot_overlay_pngs -d DATASET_ID -o FOLDER`. If they fit voxel by '
        'voxel, copy the header, `label.CopyInformation(image)`; if not, resample the label onto the image.'
    )
