"""Raw data sets of nnU-Net: ``dataset.json``, ``imagesTr``, ``labelsTr``; volumes in NIfTI and other formats."""

from __future__ import annotations

from mmguard.formats.format import CannotScan, Format, Sets
from mmguard.formats.options import ScanOptions


class NnUNet(Format):
    """A raw data set, its dataset.json, or a folder of several."""

    name = 'nnunet'
    endings = ('dataset.json',)
    beside_suffix = True

    def detect(self, target: str) -> bool:
        from mmguard.nnunet.format.spec import find_raw_datasets

        return bool(find_raw_datasets(target))

    def sets(self, target: str, options: ScanOptions) -> Sets:
        from mmguard.formats.volumes.nifti import explain_unread
        from mmguard.nnunet.format.source import CaseSource
        from mmguard.nnunet.format.spec import LABELS, REGIONS, find_raw_datasets

        sources = [CaseSource(folder) for folder in find_raw_datasets(target)]
        for source in sources:
            why = explain_unread(source.reader, source.spec.file_ending)
            if why and not {LABELS, REGIONS} & set(source.spec.faults):
                raise CannotScan(f'{source.name}: {why}')
            if why:
                source.skip_volumes(why)  # dataset.json alone stops nnU-Net
        return Sets(list(sources))
