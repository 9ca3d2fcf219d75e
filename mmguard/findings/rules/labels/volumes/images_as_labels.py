from __future__ import annotations

from mmguard.findings.facts import LabelFacts
from mmguard.findings.rules.labels.volumes.base import VolumeCause, volumes_of
from mmguard.findings.volumes import INTENSITIES


class ImagesAsLabels(VolumeCause):
    """Label files that hold an image."""

    code = 'MG196'
    shown_by = (INTENSITIES,)
    summary = 'Label files hold intensities: they are images, no segmentations.'
    why = 'Every gray level becomes a class that the network does not have: a device-side assert on a GPU.'
    advice = (
        'Put the segmentations into labelsTr. Either an image was copied or exported under the name of the label, or '
        'both were swapped: look at them, `nnUNetv2_plot_overlay_pngs -d DATASET_ID -o FOLDER`. Do not map them to '
        'labels: they mean none.'
    )
    two = (
        'Look at them. If it is the mask, drawn or resized in gray, threshold it, '
        '`seg = (seg > 127).astype(np.uint8)`, and save it without loss as one channel (PNG, NIfTI). If an image was '
        'copied or exported under the name of the label, or both are swapped, put the segmentations into labelsTr.'
    )

    def summarise(self, facts: LabelFacts) -> str:
        return self.gray if self._may_be_masks(facts) else self.summary

    gray = 'Label files hold gray levels, no class numbers: an image, or a mask that was drawn in gray.'

    def advise(self, facts: LabelFacts) -> str:
        return self.two if self._may_be_masks(facts) else self.advice

    def _may_be_masks(self, facts: LabelFacts) -> bool:
        """Whether two classes are declared, and the levels are those of 8 bits, dark and bright."""
        levels = [float(value) for fault in self.faults(facts) for value in fault.values]
        return (
            volumes_of(facts).expected == [0, 1]
            and bool(levels)
            and 0 <= min(levels) <= 32
            and 223 <= max(levels) <= 255
        )
