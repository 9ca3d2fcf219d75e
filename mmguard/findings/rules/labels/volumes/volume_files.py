from __future__ import annotations

from typing import Dict, Iterator

from mmguard.findings.edits import Edit
from mmguard.findings.facts import LabelFacts
from mmguard.findings.finding import Finding
from mmguard.findings.rule import Example, Facts
from mmguard.findings.rules.labels.volumes.base import VolumeCause, rewrite_volumes, volumes_of
from mmguard.findings.views import listing
from mmguard.findings.volumes import FORM, FRACTIONS, INTENSITIES, NOT_FINITE, UNREADABLE


class UnfitForm(VolumeCause):
    """4-D files, colours, several values per voxel."""

    code = 'MG191'
    shown_by = (FORM,)
    summary = 'Files are not volumes of one value per voxel.'
    why = 'nnU-Net takes one 3-D file per channel and one per label; in other files it mixes up axes and channels.'
    example = Example(
        wrong='a 4-D label file',
        right='seg[..., 0]',
    )
    limits = 'Which volume of a 4-D file is meant, it does not know.'
    advice = (
        'Split 4-D images into channels, `nnUNetv2_convert_MSD_dataset -i FOLDER` does so for the Decathlon; of a 4-D '
        'label keep the volume that is meant, `seg[..., 0]`; turn colours into classes, `np.array(Image.open(path))` '
        'of a palette PNG holds the classes.'
    )


class UnreadableVolumes(VolumeCause):
    """Files that cannot be read."""

    code = 'MG192'
    shown_by = (UNREADABLE,)
    summary = 'Files cannot be read.'
    title = 'Files cannot be read: {reasons}.'
    why = 'nnU-Net stops at the first such file; the next comes to light one run later.'
    example = Example(
        wrong='a NIfTI file whose gzip stream ends too early',
        right='the file copied again',
    )
    limits = 'It reads with SimpleITK or nibabel, as nnU-Net would; another reader may accept more.'
    advice = (
        'If a package is needed, install it with pip. Copy or export damaged files again (check free space; `gzip -t '
        'FILE` tests one; `git lfs pull` replaces pointers), or take the cases out and write the new numTraining. If '
        'axes are not orthonormal, write the header again: `image.set_sform(image.get_qform()); nib.save(image, '
        'path)`.'
    )

    def describe(self, facts: LabelFacts) -> Dict[str, str]:
        reasons = list(dict.fromkeys(fault.detail.split(':')[0] for fault in self.faults(facts)))
        return {'reasons': listing(reasons, 4)}


#: So near to an integer a value was one, before it was scaled or cast.
NEAR = 0.01


class FractionalValues(VolumeCause):
    """Label files whose values are not integers."""

    code = 'MG186'
    shown_by = (FRACTIONS,)
    summary = 'Label files hold values that are not integers.'
    why = 'nnU-Net casts them down: 0.9998 becomes 0, and the class shrinks or is gone without a message.'
    example = Example(
        wrong='sitk.Resample(label, image, sitk.Transform(), sitk.sitkLinear)',
        right='sitk.Resample(label, image, sitk.Transform(), sitk.sitkNearestNeighbor)',
    )
    limits = 'It does not know what the labels were before they were resampled.'
    advice = (
        'If the header scales what is stored (scl_slope, scl_inter), save the stored values: '
        '`image.dataobj.get_unscaled()`. If all values are within 0.01 of integers, round them, `np.rint(seg)`. If '
        'not, the labels were interpolated: resample the originals again with `sitk.sitkNearestNeighbor`; rounding '
        'would draw other classes along borders.'
    )

    def edits(self, finding: Finding, facts: Facts) -> Iterator[Edit]:
        faults = [] if facts.labels is None else self.faults(facts.labels)
        values = [value for fault in faults for value in fault.values]
        is_scaled = all('the header scales' in fault.detail for fault in faults)
        if facts.labels is not None and values and not is_scaled and all(map(_is_near, values)):
            title, lines = 'Round the labels, and save label files as integers.', ('np.rint(seg).astype(np.uint8)',)
            yield rewrite_volumes(facts.labels, title, lines=lines, rounded=True)


def _is_near(value: str) -> bool:
    try:
        number = float(value)
        return abs(number - round(number)) <= NEAR
    except (ValueError, OverflowError):  # a log that somebody wrote to; inf
        return False


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


class ImagesAsLabels(VolumeCause):
    """Label files that hold an image."""

    code = 'MG196'
    shown_by = (INTENSITIES,)
    summary = 'Label files hold intensities: they are images, not segmentations.'
    title_gray = 'Label files hold gray levels, not class numbers: an image, or a mask that was drawn in gray.'
    why = 'Every gray level becomes a class that the network does not have: a device-side assert on a GPU.'
    example = Example(
        wrong='labelsTr/case_003.nii.gz is a copy of imagesTr/case_003_0000.nii.gz',
        right='labelsTr/case_003.nii.gz with 0 and 1',
    )
    limits = 'A parcellation of very many small regions may look like an image.'
    advice = (
        'Look at them: `nnUNetv2_plot_overlay_pngs -d DATASET_ID -o FOLDER`. If an image was copied or exported under '
        'the name of the label, or both were swapped, put the segmentations into labelsTr; do not map intensities to '
        'labels. If it is a mask of two classes drawn in gray, threshold it, `seg = (seg > 127).astype(np.uint8)`, and '
        'save one channel without loss.'
    )

    def choose_title(self, facts: LabelFacts) -> str:
        return self.title_gray if self._may_be_masks(facts) else self.summary

    def _may_be_masks(self, facts: LabelFacts) -> bool:
        """True if two classes are declared, and the levels are those of 8 bits, dark and bright."""
        levels = [float(value) for fault in self.faults(facts) for value in fault.values]
        return (
            volumes_of(facts).expected == [0, 1]
            and bool(levels)
            and 0 <= min(levels) <= 32
            and 223 <= max(levels) <= 255
        )
