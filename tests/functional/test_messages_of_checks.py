"""Mistakes of the caller are reported in words: both shapes, the dtype and the way out."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from mmguard.functional import sigmoid_cross_entropy, softmax_cross_entropy

SCORES = torch.zeros(2, 3, 4, 5)
LABEL = torch.zeros(2, 4, 5, dtype=torch.long)


@pytest.mark.parametrize(
    ('label', 'advice'),
    [
        (torch.zeros(2, 3, 4, 5), r'label\.argmax\(dim=1\)'),
        (torch.zeros(2, 1, 4, 5, dtype=torch.long), r'label\.squeeze\(1\)'),
        (torch.zeros(2, 4, 5, 3, dtype=torch.uint8), 'colour channels'),
        (torch.zeros(2, 8, 10, dtype=torch.long), r'resize the scores to the label \(bilinear\) or the label'),
        (torch.zeros(2, dtype=torch.long), 'one class index per element'),
        (torch.zeros(3, 4, 5, dtype=torch.long), 'one class index per element'),
    ],
)
def test_shapes_of_labels(label: torch.Tensor, advice: str) -> None:
    with pytest.raises(ValueError, match=advice) as caught:
        softmax_cross_entropy(SCORES, label)
    shape = ', '.join(map(str, label.shape))
    assert f'label has shape ({shape}) ({label.dtype}), cls_score (2, 3, 4, 5)' in str(caught.value)
    assert 'wanted is label of shape (2, 4, 5)' in str(caught.value)


@pytest.mark.parametrize('function', [softmax_cross_entropy, sigmoid_cross_entropy])
def test_floating_labels(function: Any) -> None:
    with pytest.raises(TypeError, match=r'torch\.float32.*bilinearly.*label\.long\(\)'):
        function(SCORES, LABEL.float())


@pytest.mark.parametrize('function', [softmax_cross_entropy, sigmoid_cross_entropy])
def test_integer_scores(function: Any) -> None:
    with pytest.raises(
        TypeError, match=r'torch\.int64 of shape \(2, 3, 4, 5\): are score and label in the wrong order'
    ):
        function(SCORES.long(), LABEL)


def test_scores_without_channels() -> None:
    with pytest.raises(ValueError, match=r'cls_score must have shape \(N, C\)'):
        softmax_cross_entropy(torch.zeros(3), torch.zeros(3, dtype=torch.long))


def test_dense_targets_of_another_shape() -> None:
    with pytest.raises(
        ValueError, match=r'\(2, 1, 4, 5\) .* cls_score \(2, 3, 4, 5\).*class indices of shape \(2, 4, 5\)'
    ):
        sigmoid_cross_entropy(SCORES, torch.zeros(2, 1, 4, 5))


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
