"""Augmentation and outputs of nnU-Net: the stock trainer passes, planted faults are named."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from nnunetv2.training.nnUNetTrainer.nnUNetTrainer import nnUNetTrainer
from small_nnunet import trainer

from mmguard.nnunet.testing import assert_nnunet


class Moved:
    """Transforms of a trainer, and something that happens to the image only."""

    def __init__(self, transforms: Any, change: Any) -> None:
        self.transforms, self.change = transforms, change

    def __call__(self, **sample: Any) -> Any:
        found = self.transforms(**sample)
        return {**found, 'image': self.change(found['image'])}


class FlipsImage(nnUNetTrainer):
    @staticmethod
    def get_training_transforms(*args: Any, **kwargs: Any) -> Any:
        return Moved(nnUNetTrainer.get_training_transforms(*args, **kwargs), lambda image: image.flip(-1))


class ShiftsImage(nnUNetTrainer):
    @staticmethod
    def get_training_transforms(*args: Any, **kwargs: Any) -> Any:
        return Moved(nnUNetTrainer.get_training_transforms(*args, **kwargs), lambda image: image.roll(5, -2))


class ShiftsLabels(nnUNetTrainer):
    def _build_loss(self) -> Any:
        inner = super()._build_loss()
        return lambda found, targets: inner(found, [(one - 1).clamp(min=0) for one in targets])


class SwapsRegions(nnUNetTrainer):
    def _build_loss(self) -> Any:
        inner = super()._build_loss()
        return lambda found, targets: inner(found, [one.flip(1) for one in targets])


def initialized(which: type, data: Any, configuration: str) -> Any:
    torch.manual_seed(0)
    made = trainer(which, data, configuration)
    made.initialize()
    return made


@pytest.mark.parametrize('configuration', ['2d', '3d_fullres'])
@pytest.mark.parametrize('data', ['plain', 'ignoring', 'regions'])
def test_stock_trainers_pass(preprocessed, data, configuration):
    assert_nnunet(initialized(nnUNetTrainer, preprocessed[data], configuration), tries=3)


@pytest.mark.parametrize(
    ('which', 'data', 'configuration', 'words'),
    [
        (FlipsImage, 'plain', '2d', 'left-right'),
        (FlipsImage, 'regions', '3d_fullres', 'left-right'),
        (ShiftsImage, 'ignoring', '2d', 'against its mask'),
        (ShiftsLabels, 'plain', '2d', 'trains output'),
        (ShiftsLabels, 'ignoring', '3d_fullres', 'trains output'),
        (SwapsRegions, 'regions', '2d', 'trains output'),
    ],
)
def test_planted_faults_are_named(preprocessed, which, data, configuration, words):
    with pytest.raises(AssertionError, match=words):
        assert_nnunet(initialized(which, preprocessed[data], configuration), tries=3)
