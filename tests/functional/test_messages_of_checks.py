"""Mistakes of the caller are reported in words: both shapes, the dtype and the way out."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from mmguard.functional import sigmoid_cross_entropy, softmax_cross_entropy

SCORES = torch.zeros(2, 3, 4, 5)
LABEL = torch.zeros(2, 4, 5, dtype=torch.long)


@pytest.mark.parametrize('function', [softmax_cross_entropy, sigmoid_cross_entropy])
def test_integer_scores(function: Any) -> None:
    with pytest.raises(
        TypeError, match=r'torch\.int64 of shape \(2, 3, 4, 5\): are score and label in the wrong order'
    ):
        function(SCORES.long(), LABEL)


@pytest.mark.parametrize('function', [softmax_cross_entropy, sigmoid_cross_entropy])
@pytest.mark.parametrize('shape', [(2,), (2, 4), (2, 3, 4, 5), (2, 5, 4), (3, 4, 5)])
def test_weights(function: Any, shape: tuple) -> None:
    with pytest.raises(ValueError, match='one weight per label element') as caught:
        function(SCORES, LABEL, torch.ones(shape))
    assert f'weight has shape ({", ".join(map(str, shape))}), label (2, 4, 5)' in str(caught.value)


@pytest.mark.parametrize('shape', [(4,), (2, 4), (2, 3, 5, 4)])
def test_weights_of_dense_targets(shape: tuple) -> None:
    with pytest.raises(ValueError, match='can be broadcast') as caught:
        sigmoid_cross_entropy(SCORES, torch.ones(SCORES.shape), torch.ones(shape))
    assert f'weight has shape ({", ".join(map(str, shape))}), label (2, 3, 4, 5)' in str(caught.value)


@pytest.mark.parametrize('function', [softmax_cross_entropy, sigmoid_cross_entropy])
@pytest.mark.parametrize('shape', [(2,), (4,), (3, 1), (5,)])
def test_class_weights(function: Any, shape: tuple) -> None:
    with pytest.raises(ValueError, match=r'3 channels.*background or no-object class'):
        function(SCORES, LABEL, class_weight=torch.ones(shape))
    if function is sigmoid_cross_entropy:
        with pytest.raises(ValueError, match='3 channels'):
            function(SCORES, torch.zeros_like(SCORES), class_weight=torch.ones(shape))
