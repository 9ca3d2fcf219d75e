from __future__ import annotations

from typing import Iterator

from mmguard.config.parts import Part, pipelines
from mmguard.config.read import ReadConfig
from mmguard.findings.finding import Finding
from mmguard.findings.rule import ConfigRule

#: Data sets of mmdet whose files hold boxes alone.
_BOXES_ALONE = ('XMLDataset', 'OpenImagesDataset', 'CrowdHumanDataset')


class MissingInput(ConfigRule):
    """A pipeline that loads what its data set does not have."""

    code = 'MG245'
    blames_labels = True
    summary = 'The pipeline loads masks or label maps that the data set does not name.'
    why = (
        "LoadAnnotations ends with KeyError: 'seg_map_path' where with_seg=True meets a data set without "
        "data_prefix.seg, and with KeyError: 'mask' where with_mask=True meets one that holds boxes alone."
    )
    advice = (
        'Write `data_prefix=dict(img=..., seg=...)` with the folder of the label maps, or leave with_seg=True (and the '
        'semantic head) out.'
    )

    def look(self, config: ReadConfig) -> Iterator[Finding]:
        for pipeline in pipelines(config) if config.scope == 'mmdet' else ():
            for step in pipeline:
                dataset = step.owner
                if step.name != 'LoadAnnotations' or dataset is None or dataset.is_old:
                    continue
                if step.config.get('with_seg') is True and _is_without_maps(dataset):
                    yield self.at(
                        step.at('with_seg'), True, f'{dataset.name} at {dataset.path} names no label maps to load.'
                    )
                if step.config.get('with_mask') is True and dataset.is_a(*_BOXES_ALONE):
                    yield self.at(
                        step.at('with_mask'),
                        True,
                        f'The files of {dataset.name} hold boxes and no masks.',
                        'Leave with_mask=True (and the mask head) out, or train on a COCO JSON with "segmentation".',
                    )


def _is_without_maps(dataset: Part) -> bool:
    if dataset.is_a(*_BOXES_ALONE):
        return True
    prefix = dataset.config.get('data_prefix')
    named = prefix.get('seg') or prefix.get('seg_map_path') if isinstance(prefix, dict) else None
    return dataset.is_a('CocoDataset') and not named
