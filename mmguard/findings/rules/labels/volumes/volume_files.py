"""Files that cannot be taken as a volume."""

from __future__ import annotations

from typing import Dict

from mmguard.findings.facts import LabelFacts
from mmguard.findings.rule import Example
from mmguard.findings.rules.labels.volumes.base import VolumeCause
from mmguard.findings.views import listing
from mmguard.findings.volumes import FORM, UNREADABLE


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
