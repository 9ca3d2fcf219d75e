"""Files that cannot be taken as a volume."""

from __future__ import annotations

from typing import Dict

from mmguard.findings.facts import LabelFacts
from mmguard.findings.rules.labels.volumes.base import VolumeCause
from mmguard.findings.views import listing
from mmguard.findings.volumes import FORM, UNREADABLE


class UnfitForm(VolumeCause):
    """4-D files, colours, several values per voxel."""

    code = 'MG191'
    shown_by = (FORM,)
    summary = 'Files are not volumes of one value per voxel.'
    why = 'nnU-Net takes one 3-D file per channel and one per label; in other files it mixes up axes and channels.'
    advice = (
        'Split 4-D images into channels, `nnUNetv2_convert_MSD_dataset -i FOLDER` does so for the Decathlon; of a 4-D '
        'label keep the volume that is meant, `seg[..., 0]`; turn colours into classes, `np.array(Image.open(path))` '
        'of a palette PNG holds the classes.'
    )


class UnreadableVolumes(VolumeCause):
    """Files that cannot be read."""

    code = 'MG192'
    shown_by = (UNREADABLE,)
    summary = 'Files cannot be read: {reasons}.'
    why = 'nnU-Net stops at the first such file; the next comes to light one run later.'
    advice = (
        'Copy or export these files anew (check free space; `gzip -t FILE` tests one; Git LFS pointers are replaced by '
        '`git lfs pull`), or take the cases out and write the new numTraining.'
    )
    package = 'Install what reads them: `pip install {package}`.'
    axes = (
        'The axes in the header are not at right angles to each other (sform and qform differ by rounding, mostly). '
        'Write it anew: `image.set_sform(image.get_qform()); nib.save(image, path)`, or let nnU-Net read by nibabel: '
        '`"overwrite_image_reader_writer": "NibabelIO"` in dataset.json.'
    )

    def words(self, facts: LabelFacts) -> Dict[str, str]:
        reasons = list(dict.fromkeys(fault.detail.split(':')[0] for fault in self.faults(facts)))
        needed = [reason[len('needs ') :] for reason in reasons if reason.startswith('needs ')]
        return {'reasons': listing(reasons, 4), 'package': ' '.join(needed)}

    def advise(self, facts: LabelFacts) -> str:
        details = [fault.detail for fault in self.faults(facts)]
        if all(detail.startswith('needs ') for detail in details):
            return self.package
        return self.axes if all('not orthonormal' in detail for detail in details) else self.advice
