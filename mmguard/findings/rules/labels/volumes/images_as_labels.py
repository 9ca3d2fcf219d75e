from __future__ import annotations

from mmguard.findings.rules.labels.volumes.base import VolumeCause
from mmguard.findings.volumes import INTENSITIES


class ImagesAsLabels(VolumeCause):
    """Label files that hold an image."""

    code = 'MG196'
    shown_by = (INTENSITIES,)
    weight = 0.94
    explains = ('MG194',)
    summary = 'Label files hold intensities: they are images, no segmentations.'
    why = 'Every gray level becomes a class that the network does not have: a device-side assert on a GPU.'
    advice = (
        'Put the segmentations into labelsTr. Either an image was copied or exported under the name of the label, or '
        'both were swapped: look at them, `nnUNetv2_plot_overlay_pngs -d DATASET_ID -o FOLDER`. Do not map them to '
        'labels: they mean none.'
    )
