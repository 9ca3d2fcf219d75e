"""What is said where a file that is named may not be the one that holds the label."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, List

from mmguard.hooks.mixed_images import mixed_images


class Mosaic:
    def __call__(self, results: Any) -> Any:
        return results


class RandomApply:
    def __init__(self, transforms: List[Any]) -> None:
        self.transforms = transforms

    def __call__(self, results: Any) -> Any:
        return results


def data_set(*steps: Any) -> Any:
    return SimpleNamespace(pipeline=SimpleNamespace(transforms=list(steps)))


def test_a_mixing_transform_is_named_wherever_it_stands() -> None:
    wrapped = SimpleNamespace(pipeline=[RandomApply([Mosaic()])], dataset=data_set(RandomApply([])))
    for dataset in (data_set(Mosaic()), wrapped):
        assert 'Mosaic' in (mixed_images(dataset) or '')


def test_nothing_is_said_where_each_sample_is_one_image() -> None:
    assert mixed_images(data_set(RandomApply([]))) is None
    assert mixed_images(SimpleNamespace()) is None
