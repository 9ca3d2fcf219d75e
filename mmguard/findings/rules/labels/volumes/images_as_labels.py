from __future__ import annotations

from mmguard.findings.facts import LabelFacts
from mmguard.findings.rule import Example
from mmguard.findings.rules.labels.volumes.base import VolumeCause, volumes_of
from mmguard.findings.volumes import INTENSITIES


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
