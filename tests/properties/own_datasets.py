"""Data sets of a user's own that pass an argument on themselves, and a step that needs a missing package."""

from __future__ import annotations

from mmdet.datasets import CocoDataset
from mmdet.registry import DATASETS as DET_DATASETS
from mmdet.registry import TRANSFORMS
from mmseg.datasets import BaseSegDataset
from mmseg.registry import DATASETS


@DATASETS.register_module()
class SetsReduceZero(BaseSegDataset):
    def __init__(self, **kwargs):
        super().__init__(reduce_zero_label=True, **kwargs)


@DATASETS.register_module()
class TakesNoStep(SetsReduceZero):
    """Fails where a step is added to its pipeline."""

    def __init__(self, pipeline, steps, **kwargs):
        if len(pipeline) != steps:
            raise ValueError(f'{len(pipeline)} steps')
        super().__init__(pipeline=pipeline, **kwargs)


@DET_DATASETS.register_module()
class SetsFilter(CocoDataset):
    def __init__(self, **kwargs):
        super().__init__(filter_cfg=dict(filter_empty_gt=True), **kwargs)


@DET_DATASETS.register_module()
class SetsSeed(CocoDataset):
    def __init__(self, **kwargs):
        super().__init__(serialize_data=True, **kwargs)


@TRANSFORMS.register_module()
class NeedsPackage:
    def __init__(self):
        import package_that_is_missing  # noqa: F401
