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
        "LoadAnnotations ends with KeyError: 'seg_map_path' where it meets a data set of mmseg without "
        "data_prefix.seg_map_path, or with_seg=True one of mmdet without data_prefix.seg, and with KeyError: 'mask' "
        'where with_mask=True meets one that holds boxes alone.'
    )
    advice = (
        'Write `data_prefix=dict(img=..., seg=...)` with the folder of the label maps, or leave with_seg=True (and the '
        'semantic head) out.'
    )

    of_mmseg = 'Write `data_prefix=dict(img_path=..., seg_map_path=...)` with the folder of the label maps.'

    def look(self, config: ReadConfig) -> Iterator[Finding]:
        for pipeline in pipelines(config):
            for step in pipeline:
                dataset = step.owner
                if step.name != 'LoadAnnotations' or dataset is None or dataset.is_old:
                    continue
                if dataset.scope == 'mmseg':
                    if _names_images_alone(dataset):
                        prefix = dataset.config['data_prefix']
                        message = f'{dataset.name} at {dataset.path} names no label maps to load.'
                        yield self.at(dataset.at('data_prefix'), prefix, message, self.of_mmseg)
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


def _names_images_alone(dataset: Part) -> bool:
    """Without a ``data_prefix`` maps and images are looked for in ``data_root``; one without maps replaces that."""
    prefix = dataset.config.get('data_prefix')
    lists = getattr(getattr(dataset.cls, 'load_data_list', None), '__qualname__', '')  # a class of one's own may differ
    known = lists.startswith('BaseSegDataset.')
    return known and isinstance(prefix, dict) and 'img_path' in prefix and prefix.get('seg_map_path') is None


def _is_without_maps(dataset: Part) -> bool:
    if dataset.is_a(*_BOXES_ALONE):
        return True
    prefix = dataset.config.get('data_prefix')
    named = prefix.get('seg') or prefix.get('seg_map_path') if isinstance(prefix, dict) else None
    return dataset.is_a('CocoDataset') and not named
