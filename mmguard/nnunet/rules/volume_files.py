"""Rules about faults in volume files and about classes in few cases, and the verdict that all files are fine."""

from __future__ import annotations

from typing import Dict, Iterator

from mmguard.facts.labels import LabelFacts
from mmguard.facts.volumes import (
    BACKGROUND_ONLY,
    FRACTIONS,
    IGNORED_ONLY,
    INTENSITIES,
    NOT_FINITE,
    ORIENTATION,
    SHAPE,
    SPACING,
)
from mmguard.findings.finding import ERROR, INFO, LIKELY, PROVEN, WARNING, Finding
from mmguard.findings.rule import AllClear, DataRule, Example, Facts
from mmguard.findings.views import join_items
from mmguard.language import Message
from mmguard.nnunet.conversions import CONVERSIONS, list_missing_entries
from mmguard.nnunet.rules.dataset_json import VolumeCause, find_ignore_value, get_volumes, is_old
from mmguard.text import quantity

#: Number of folds that nnU-Net splits the cases into.
FOLDS = 5


class GridsDiffer(VolumeCause):
    code = 'MG188'
    before = 'MG102'
    aliases = ('MG189', 'MG190')
    shown_by = (SHAPE, SPACING, ORIENTATION)
    summary = 'Volumes of a case have different shapes, spacings or positions.'
    title = 'Volumes of a case differ in their {what}.'
    why = (
        'nnU-Net stops if shapes or spacings differ. If only origin, direction or affine differ, nnU-Net '
        'ignores the difference and pairs voxels by index: a flipped label is trained flipped.'
    )
    example = Example(
        wrong='label 112x160x128, image 112x160x127',
        right='sitk.Resample(label, image, sitk.Transform(), sitk.sitkNearestNeighbor)',
    )
    limits = 'Cannot tell which of two headers is wrong. Equal grids may still belong to different volumes.'
    advice = (
        'Overlay label and image with `nnUNetv2_plot_overlay_pngs -d DATASET_ID -o FOLDER`. If the voxels fit, copy '
        'the header with `label.CopyInformation(image)`; if not, resample the label onto the image with '
        '`sitk.sitkNearestNeighbor`, or swap axes back with `np.transpose(seg, (2, 1, 0))`.'
    )

    def look(self, facts: Facts, labels: LabelFacts) -> Iterator[Finding]:
        kinds = [kind for kind in self.shown_by if get_volumes(labels).find_faults(kind)]
        certainty, severity = (LIKELY, WARNING) if kinds == [ORIENTATION] else (PROVEN, ERROR)
        if kinds:
            yield self.report_cases(facts, labels, certainty, words={'what': join_items(kinds)}, severity=severity)


class NotIntegers(VolumeCause):
    code = 'MG187'
    before = 'MG105'
    aliases = ('MG186',)
    shown_by = (NOT_FINITE, FRACTIONS)
    summary = 'Voxels are NaN or infinite, or labels are not integers.'
    why = (
        'One NaN makes the mean and standard deviation of its case NaN, so all its voxels and the loss become NaN. '
        'Fractional labels are truncated: 0.9998 becomes 0, and the class silently shrinks or vanishes.'
    )
    example = Example(
        wrong='sitk.Resample(label, image, sitk.Transform(), sitk.sitkLinear)',
        right='sitk.Resample(label, image, sitk.Transform(), sitk.sitkNearestNeighbor)',
    )
    limits = 'Cannot tell what caused these voxels.'
    advice = (
        'Replace NaN in images with `np.nan_to_num(image, nan=VALUE)`, where VALUE is empty space (-1000 in CT, 0 in '
        'MR). Round labels within 0.01 of integers with `np.rint(seg)`, or save `image.dataobj.get_unscaled()` if the '
        'header scales them; otherwise resample the originals with `sitk.sitkNearestNeighbor`.'
    )


class ImagesAsLabels(VolumeCause):
    code = 'MG196'
    before = 'MG132'
    follows = ('MG135', 'MG197')
    shown_by = (INTENSITIES,)
    summary = 'Label files hold intensities: they are images, not segmentations.'
    why = 'Every gray level becomes a class that the network does not have, which raises a device-side assert on a GPU.'
    example = Example(
        wrong='labelsTr/case_003.nii.gz is a copy of imagesTr/case_003_0000.nii.gz',
        right='labelsTr/case_003.nii.gz with the values 0 and 1',
    )
    limits = 'A parcellation of very many small regions may look like an image.'
    advice = (
        'Look at these files with `nnUNetv2_plot_overlay_pngs -d DATASET_ID -o FOLDER`: if images were copied under '
        'the names of labels, put the segmentations into labelsTr; do not map intensities to labels. Threshold a mask '
        'of two classes drawn in gray, `seg = (seg > 127).astype(np.uint8)`, and save one channel without loss.'
    )


class NothingLabelled(VolumeCause):
    code = 'MG193'
    before = 'MG105'
    shown_by = (BACKGROUND_ONLY, IGNORED_ONLY)
    severity = 'warning'
    summary = 'Label files contain only background or ignored voxels.'
    why = (
        'This is correct for a healthy case. If the case is not healthy, the export dropped its labels, and the model '
        'learns background there.'
    )
    example = Example(
        wrong='a case that was not annotated, with a label file of only 0',
        right='a label file of only "ignore" for this case, or the case left out',
    )
    limits = 'Cannot tell a healthy case from one that was not annotated.'
    advice = (
        'Look at these cases with `nnUNetv2_plot_overlay_pngs -d DATASET_ID -o FOLDER`, and keep healthy cases. Leave '
        'out a case that was not annotated, or declare `"ignore": {next}` and fill its label file with {next}.'
    )

    def look(self, facts: Facts, labels: LabelFacts) -> Iterator[Finding]:
        if self.faults(labels):
            yield self.report_cases(facts, labels, LIKELY, words={'next': find_ignore_value(labels)})


class RarerThanFolds(DataRule):
    code = 'MG197'
    before = 'MG146'
    shows_values = False
    kinds = ('voxels',)
    severity = INFO
    needs = ('volumes',)
    summary = 'Classes occur in fewer cases than nnU-Net has folds.'
    title = 'Classes occur in fewer cases than nnU-Net has folds ({folds}): {rare}.'
    why = 'If no validation case of a fold has a class, its Dice in this fold is nan, or 0 if the class is predicted.'
    example = Example(
        wrong='labels: lesion 1, lesion 2, lesion 3, one label for each object of a case',
        right='labels: lesion',
    )
    limits = 'Only cases are counted; splits_final.json is not read.'
    advice = (
        'Judge such a class by the folds whose cases contain it: see splits_final.json. If the names number the '
        'objects of one class (`lesion 1`, `lesion 2`), write them as one label: nnU-Net learns classes, not objects.'
    )

    def look(self, facts: Facts, labels: LabelFacts) -> Iterator[Finding]:
        rare = _find_rarer_than_folds(labels)
        if rare:
            named = [f'{labels.name_of(label)} ({label}) in {quantity(cases, "case")}' for label, cases in rare.items()]
            words = {'folds': FOLDS, 'rare': join_items(named)}
            label, cases = min(rare.items(), key=lambda pair: pair[1])
            text = '{number} or more of {folds} folds validate without {name} ({label}): its Dice is nan or 0 there'
            seen_in = Message(text, number=FOLDS - cases, folds=FOLDS, name=labels.name_of(label), label=label)
            yield self.report_in(facts, PROVEN, seen_in, words, value=sorted(rare))


def _find_rarer_than_folds(labels: LabelFacts) -> Dict[int, int]:
    """Return {class: number of cases} of classes in fewer cases than folds; {} if files are unread or regions exist."""
    volumes = labels.volumes
    if volumes is None or volumes.labels_read < max(FOLDS, volumes.cases) or 'regions_class_order' in volumes.content:
        return {}
    classes = set(volumes.expected) - {0, labels.ignore_index}
    return {label: cases for label, cases in volumes.files_with_class.items() if label in classes and cases < FOLDS}


class VolumesFine(AllClear):
    code = 'MG195'
    kinds = ('voxels',)
    needs = ('volumes',)
    summary = 'Your nnU-Net data set is fine.'
    why = 'A training that fails with these labels fails for another reason; changing labels would hide it.'
    example = Example(
        wrong='a training that crashes on data preprocessed before the labels were corrected',
        right='nnUNetv2_plan_and_preprocess -d DATASET_ID',
    )
    limits = 'Cannot tell whether the voxels of a label show the class that dataset.json names.'
    advice = (
        'Continue with `nnUNetv2_plan_and_preprocess -d DATASET_ID`, even if you have preprocessed an older version of '
        'the labels.'
    )
    title_old = 'The label files are fine, but nnU-Net v2 reads this data set only after its conversion.'
    advice_old = 'Convert the data set with `{command}`, and scan the result.'
    advice_incomplete = (
        'Add `{entries}` to dataset.json: the conversion fails without these keys. Then convert the data set with '
        '`{command}`, and scan the result.'
    )

    def look(self, facts: Facts, labels: LabelFacts) -> Iterator[Finding]:
        volumes = get_volumes(labels)
        evidence = Message(
            '{cases}, {total:,} voxels, all with one of the values {expected}; read: {labels}; not checked: the result '
            'of preprocessing',
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
