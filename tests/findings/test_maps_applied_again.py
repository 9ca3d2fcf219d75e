"""A label_map of a loader of the user's own whose targets are values that it maps, too."""

from __future__ import annotations

from typing import Any, Dict, List

import numpy as np
import pytest
from mmengine.config import Config
from mmguard.findings.rules.config.label_map_range import _map_in_place
from this_stack import IS_ONEDL

from mmguard.config.read import from_mmengine
from mmguard.findings import diagnose
from mmguard.findings.catalogue import find_rule

pytestmark = pytest.mark.skipif(IS_ONEDL, reason='registers a transform of mmdet and a data set of mmseg')


def own_parts() -> Any:
    from mmdet.registry import TRANSFORMS
    from mmseg.datasets import BaseSegDataset
    from mmseg.registry import DATASETS

    @TRANSFORMS.register_module(force=True)
    class MapBoxes:
        def __init__(self, label_map: Dict[int, int]) -> None:
            self.label_map = label_map

    @DATASETS.register_module(force=True)
    class MappedMasks(BaseSegDataset):
        def __init__(self, label_map: Any = None, **more: Any) -> None:
            super().__init__(**more)

    return MapBoxes, MappedMasks


def find_again(scope: str, label_map: Any, guard: bool = False) -> List[Any]:
    own_parts()
    if scope == 'mmseg':
        dataset = dict(type='MappedMasks', label_map=label_map, metainfo=dict(classes=list('abcdefghijkl')))
    else:
        step = dict(type='GuardInstanceLabels' if guard else 'MapBoxes', label_map=label_map)
        step.update(dict(num_classes=12) if guard else {})
        dataset = dict(type='CocoDataset', metainfo=dict(classes=list('abcdefghijkl')), pipeline=[step])
    config = from_mmengine(Config(dict(default_scope=scope, train_dataloader=dict(dataset=dataset))))
    return diagnose(config=config, rules=[find_rule('MG212')])


@pytest.mark.parametrize(
    ('scope', 'label_map', 'again'),
    [
        ('mmseg', {6: 9, 9: 7}, True),
        ('mmseg', {1: 2, 2: 1}, True),  # swapped
        ('mmdet', {0: 4, 4: 3, 3: 8}, True),
        ('mmseg', {9: 7, 6: 9}, False),
        ('mmdet', {1: 0, 2: 1, 3: 2}, False),
        ('mmdet', {5: 5, 7: 5}, False),
    ],
)
def test_a_map_in_place_that_maps_what_it_wrote(scope: str, label_map: Dict[int, int], again: bool) -> None:
    found = find_again(scope, label_map)
    assert [one.severity for one in found] == ['warning'] * again
    assert all(place.endswith('label_map') for one in found for place in one.places)
    raw = np.arange(10)
    for old, new in label_map.items():
        raw[raw == old] = new
    assert {old: int(raw[old]) for old in label_map} == _map_in_place(label_map)


def test_a_guard_reads_from_a_copy() -> None:
    assert find_again('mmdet', {0: 4, 4: 3}, guard=True) == []
