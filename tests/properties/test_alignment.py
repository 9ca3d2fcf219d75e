from __future__ import annotations

import numpy as np
import pytest

from mmguard.properties.alignment import describe_difference, draw_field

FIGURE = draw_field(np.random.default_rng(0), 120, 160)


def padded(*, left: int = 0, value: float = 0.0) -> np.ndarray:
    beyond = ((0, 8), (left, 27 - left))
    return np.stack([np.pad(FIGURE * 3.0 - 1, beyond, constant_values=value + channel) for channel in range(3)], -1)


@pytest.mark.parametrize('value', [0.0, -2.1, 114.0])
def test_masks_are_padded_in_the_batch_and_maps_are_not(value: float) -> None:
    image = padded(value=value)
    assert describe_difference(image, FIGURE, 'masks', is_map=False) == ''
    assert describe_difference(image, FIGURE, 'map', is_map=True)


@pytest.mark.parametrize(
    'image',
    [
        padded(left=27),
        np.pad(FIGURE, ((0, 8), (0, 27)), mode='reflect'),
        FIGURE[:, :-9],
        np.kron(FIGURE, np.ones((2, 2))),
        np.pad(FIGURE[:, ::-1], ((0, 8), (0, 27))),
    ],
    ids=['padded on the left', 'not padded', 'cropped', 'resized', 'flipped'],
)
def test_other_sizes_of_an_image_differ_from_its_masks(image: np.ndarray) -> None:
    assert describe_difference(image, FIGURE, 'masks', is_map=False)
