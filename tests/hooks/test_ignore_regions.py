from __future__ import annotations

from typing import Any

import pytest
from mmdet.registry import MODELS
from mmdet.utils import register_all_modules
from small_det_runs import load, load_stock, shrink_model
from torch import nn

from mmguard.hooks.ignore_regions import assigners_of, ignored_as_background


def model_of(config: Any) -> nn.Module:
    register_all_modules()
    return MODELS.build(shrink_model(config).model)


@pytest.mark.parametrize('family', ['retinanet', 'faster_rcnn'])
def test_stock_assigners_train_ignored_regions_as_background(family: str) -> None:
    warning = ignored_as_background(model_of(load_stock(family)))
    assert warning is not None
    assert all(named in warning for named in ('MaxIoUAssigner', 'ignore_iof_thr=-1', 'ignore_iof_thr=0.5'))


@pytest.mark.parametrize('family', ['retinanet', 'faster_rcnn', 'mask_rcnn', 'panoptic_fpn'])
def test_the_shipped_configs_heed_them(family: str) -> None:
    model = model_of(load(family))
    assert list(assigners_of(model))
    assert ignored_as_background(model) is None


def test_a_single_assigner_that_does_not_is_found() -> None:
    config = load('faster_rcnn')
    config.model.train_cfg.rcnn.assigner.ignore_iof_thr = -1
    assert 'MaxIoUAssigner' in (ignored_as_background(model_of(config)) or '')


def test_detr_like_heads_know_no_ignored_instances() -> None:
    warning = ignored_as_background(model_of(load('dino')))
    assert warning is not None
    assert all(named in warning for named in ('HungarianAssigner', "on_invalid='drop'"))


def test_a_model_without_assigners_is_no_offence() -> None:
    assert ignored_as_background(nn.Linear(2, 2)) is None
