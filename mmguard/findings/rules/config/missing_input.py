from __future__ import annotations

from typing import Iterator

from mmguard.config.parts import Part, pipelines
from mmguard.config.read import ReadConfig
from mmguard.findings.finding import Finding
from mmguard.findings.rule import ConfigRule, Example

#: Data sets of mmdet whose files hold only boxes.
_ONLY_BOXES = ('XMLDataset', 'OpenImagesDataset', 'CrowdHumanDataset')


class MissingInput(ConfigRule):
    """A pipeline that loads what its data set does not have."""

    code = 'MG245'
    blames_labels = True
    summary = 'The pipeline loads masks or label maps that the data set does not name.'
    title = '{kind} at {place} names no label maps to load.'
    title_masks = 'The files of {kind} hold boxes, but no masks.'
    why = (
        "LoadAnnotations ends with KeyError: 'seg_map_path' where it meets a data set of mmseg without "
        "data_prefix.seg_map_path, or with_seg=True one of mmdet without data_prefix.seg, and with KeyError: 'mask' "
        'where with_mask=True meets one that holds only boxes.'
    )
    example = Example(wrong="dict(img_path='images')", right="dict(img_path='images', seg_map_path='masks')")
    limits = 'A data set class of your own that lists its files itself is not judged.'
    advice = (
        'If there are label maps, name their folder in data_prefix: seg_map_path in mmseg, seg in mmdet. If not, leave '
        'with_seg=True and the semantic head out. Masks of instances need a COCO JSON with "segmentation"; without one '
        'leave with_mask=True and the mask head out.'
    )

    def look(self, config: ReadConfig) -> Iterator[Finding]:
        for step in (step for pipeline in pipelines(config) for step in pipeline if step.name == 'LoadAnnotations'):
            dataset = step.owner
            if dataset is None or dataset.is_old:
                continue
            words = dict(kind=dataset.name, place=dataset.path)
            if dataset.scope == 'mmseg':
                if _names_only_images(dataset):
                    yield self.report_at(dataset.at('data_prefix'), dataset.config['data_prefix'], words)
                continue
            if step.config.get('with_seg') is True and _has_no_maps(dataset):
                yield self.report_at(step.at('with_seg'), True, words)
            if step.config.get('with_mask') is True and dataset.is_a(*_ONLY_BOXES):
                yield self.report_at(step.at('with_mask'), True, words, self.title_masks)


def _names_only_images(dataset: Part) -> bool:
    """Return True if a ``data_prefix`` names no maps. Without one, they are looked for in ``data_root``."""
    prefix = dataset.config.get('data_prefix')
    lists = getattr(getattr(dataset.cls, 'load_data_list', None), '__qualname__', '')  # a class of one's own may differ
    known = lists.startswith('BaseSegDataset.')
    return known and isinstance(prefix, dict) and 'img_path' in prefix and prefix.get('seg_map_path') is None


def _has_no_maps(dataset: Part) -> bool:
    if dataset.is_a(*_ONLY_BOXES):
        return True
    prefix = dataset.config.get('data_prefix')
    folder = prefix.get('seg') or prefix.get('seg_map_path') if isinstance(prefix, dict) else None
    return dataset.is_a('CocoDataset') and not folder
