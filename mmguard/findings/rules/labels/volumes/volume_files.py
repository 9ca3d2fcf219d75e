"""Faults in single files of volumes, and the verdict if no file has any."""

from __future__ import annotations

from typing import Iterator

from mmguard.findings.facts import LabelFacts
from mmguard.findings.finding import ERROR, LIKELY, PROVEN, WARNING, Finding
from mmguard.findings.rule import AllClear, Example, Facts
from mmguard.findings.rules.labels.volumes.base import VolumeCause, find_ignore_value, get_volumes, is_old
from mmguard.findings.views import join_items
from mmguard.findings.volumes import (
    BACKGROUND_ONLY,
    CONVERSIONS,
    FRACTIONS,
    IGNORED_ONLY,
    INTENSITIES,
    NOT_FINITE,
    ORIENTATION,
    SHAPE,
    SPACING,
    list_missing_entries,
)
from mmguard.language import Message
from mmguard.text import quantity


class GridsDiffer(VolumeCause):
    """Label and image, or two channels, with different shapes, spacings or origins."""

    code = 'MG188'
    aliases = ('MG189', 'MG190')
    shown_by = (SHAPE, SPACING, ORIENTATION)
    summary = 'Volumes of a case have different shapes, spacings or positions.'
    title = 'Volumes of a case differ in their {what}.'
    why = (
        'nnU-Net stops if shapes or spacings differ. If only origin, direction or affine differ, it continues voxel '
        'by voxel and ignores the headers: a flipped label is trained flipped.'
    )
    example = Example(
        wrong='label 112x160x128, image 112x160x127',
        right='sitk.Resample(label, image, sitk.Transform(), sitk.sitkNearestNeighbor)',
    )
    limits = 'It does not know which of two headers is wrong. Equal grids may still be of two different volumes.'
    advice = (
        'Overlay them, `nnUNetv2_plot_overlay_pngs -d DATASET_ID -o FOLDER`: if the voxels fit, copy the header, '
        '`label.CopyInformation(image)`. If not, resample the label onto the image with '
        '`sitk.sitkNearestNeighbor`, or move swapped axes back, `np.transpose(seg, (2, 1, 0))`.'
    )

    def look(self, facts: Facts, labels: LabelFacts) -> Iterator[Finding]:
        kinds = [kind for kind in self.shown_by if get_volumes(labels).find_faults(kind)]
        certainty, severity = (LIKELY, WARNING) if kinds == [ORIENTATION] else (PROVEN, ERROR)
        if kinds:
            yield self.report_cases(facts, labels, certainty, words={'what': join_items(kinds)}, severity=severity)


class NotIntegers(VolumeCause):
    """Voxels that are NaN or infinite, or label files whose values are not integers."""

    code = 'MG187'
    aliases = ('MG186',)
    shown_by = (NOT_FINITE, FRACTIONS)
    summary = 'Voxels are NaN or infinite, or labels are not integers.'
    why = (
        'One NaN makes the mean and standard deviation of its case NaN, with them all its voxels, and then the loss. '
        'Labels are truncated: 0.9998 becomes 0, and the class shrinks or vanishes without a message.'
    )
    example = Example(
        wrong='sitk.Resample(label, image, sitk.Transform(), sitk.sitkLinear)',
        right='sitk.Resample(label, image, sitk.Transform(), sitk.sitkNearestNeighbor)',
    )
    limits = 'It names the voxels, not what made them.'
    advice = (
        'Replace NaN in images with the value of empty space (-1000 in CT, 0 in MR), `np.nan_to_num(image, '
        'nan=VALUE)`. Round labels that are within 0.01 of integers, `np.rint(seg)`, or save '
        '`image.dataobj.get_unscaled()` if the header scales them; else resample the originals with '
        '`sitk.sitkNearestNeighbor`.'
    )


class ImagesAsLabels(VolumeCause):
    """Label files that contain an image."""

    code = 'MG196'
    follows = ('MG135', 'MG197')
    shown_by = (INTENSITIES,)
    summary = 'Label files hold intensities: they are images, not segmentations.'
    why = 'Every gray level becomes a class that the network does not have: a device-side assert on a GPU.'
    example = Example(
        wrong='labelsTr/case_003.nii.gz is a copy of imagesTr/case_003_0000.nii.gz',
        right='labelsTr/case_003.nii.gz with 0 and 1',
    )
    limits = 'A parcellation of very many small regions may look like an image.'
    advice = (
        'Look at them, `nnUNetv2_plot_overlay_pngs -d DATASET_ID -o FOLDER`: if images were copied under the names '
        'of labels, put the segmentations into labelsTr; do not map intensities to labels. Threshold a mask of two '
        'classes drawn in gray, `seg = (seg > 127).astype(np.uint8)`, and save one channel without loss.'
    )


class NothingLabelled(VolumeCause):
    """Label files with only background, or only ignored voxels."""

    code = 'MG193'
    shown_by = (BACKGROUND_ONLY, IGNORED_ONLY)
    severity = 'warning'
    summary = 'Label files do not contain a single voxel of a class.'
    why = (
        'That is right for a healthy case. If the case is not healthy, the export dropped its labels, and the model '
        'learns background there.'
    )
    example = Example(
        wrong='a case that was not annotated, its label file all 0',
        right='its label file all "ignore", or the case left out',
    )
    limits = 'It cannot tell a healthy case from one that was not annotated.'
    advice = (
        'Look at the cases named, `nnUNetv2_plot_overlay_pngs -d DATASET_ID -o FOLDER`, and keep healthy ones. '
        'Leave out a case that was not annotated, or declare `"ignore": {next}` and write that value into it.'
    )

    def look(self, facts: Facts, labels: LabelFacts) -> Iterator[Finding]:
        if self.faults(labels):
            yield self.report_cases(facts, labels, LIKELY, words={'next': find_ignore_value(labels)})


class VolumesFine(AllClear):
    """Verdict: all cases were read, and none has a fault."""

    code = 'MG195'
    kinds = ('voxels',)
    needs = ('volumes',)
    summary = 'Your nnU-Net data set is fine.'
    why = 'A training that fails with these labels fails for another reason; changing labels would hide it.'
    example = Example(
        wrong='a training that dies on data preprocessed before the labels were corrected',
        right='nnUNetv2_plan_and_preprocess -d DATASET_ID',
    )
    limits = 'It cannot tell whether a declared label is the right one for its voxels.'
    advice = (
        'Continue with `nnUNetv2_plan_and_preprocess -d DATASET_ID`, also if an older version of the labels was '
        'preprocessed before.'
    )
    title_old = 'The label files are fine, but nnU-Net v2 reads this data set only after its conversion.'
    advice_old = 'Convert it, `{command}`, and scan the result.'
    advice_incomplete = (
        'Add `{entries}` to dataset.json: the conversion fails without these keys. Then convert it, `{command}`, and '
        'scan the result.'
    )

    def look(self, facts: Facts, labels: LabelFacts) -> Iterator[Finding]:
        volumes = get_volumes(labels)
        evidence = Message(
            '{cases}, {total:,} voxels, all of them {expected}; checked: {labels} read; not checked: what '
            'preprocessing makes of them',
            cases=quantity(volumes.cases, 'case'),
            total=labels.total,
            expected=join_items(volumes.expected, 16),
            labels=quantity(volumes.labels_read, 'label file'),
        )
        if volumes.labels_read and is_old(labels):
            entries = list_missing_entries(volumes.layout, volumes.content)
            words = {'command': CONVERSIONS[volumes.layout], 'entries': entries}
            advice = self.advice_incomplete if entries else self.advice_old
            yield self.report_in(facts, PROVEN, evidence, words, self.title_old, advice=advice)
        elif volumes.labels_read:
            yield self.report_in(facts, PROVEN, evidence)
