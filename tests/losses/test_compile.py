"""torch.compile without a graph break: same loss, same gradient, same counts."""

from __future__ import annotations

from typing import Any, Dict, Iterator

import pytest
import torch
import torch.nn.functional as F
from detection_cases import CASES, batch
from gradients import value_and_grad
from loss_cases import CROSS_ENTROPY, assert_equal, scores_and_labels
from this_torch import skip_where_one_hot_waits, skip_where_torch_fails

MODES: Dict[str, Dict[str, Any]] = {
    'softmax': {'class_weight': [0.5, 1.0, 2.0, 1.0]},
    'sigmoid': {'use_sigmoid': True, 'class_weight': [0.5, 1.0, 2.0, 1.0], 'avg_non_ignore': True},
    'clip': {'on_invalid': 'clip'},
    'mask': {'use_mask': True},
}


@pytest.fixture(autouse=True)
def _fresh() -> Iterator[None]:
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


def compare(scope: str, mode: str, backend: str) -> None:
    scores, label = scores_and_labels((2, 4, 6, 5))
    label[:, 0], label[0, 1, :3] = 255, 19
    args: tuple = (label, None, None, None, 255)
    if mode == 'mask':
        args = (torch.ones(2, 6, 5), torch.tensor([1, 19]))
    eager, guarded = (CROSS_ENTROPY[scope][1](**MODES[mode]) for _ in range(2))
    compiled = torch.compile(guarded, fullgraph=True, backend=backend)
    for seed in range(3):
        scores = torch.randn(scores.shape, generator=torch.Generator().manual_seed(seed))
        assert_equal(value_and_grad(compiled, scores, *args), value_and_grad(eager, scores, *args))
    counts = guarded.take_counts().tolist()
    assert counts == eager.take_counts().tolist()
    assert sum(counts[1:]) == 3 * (1 if mode == 'mask' else 3)
    # Taken counts start again from nothing.
    value_and_grad(compiled, scores, *args)
    assert [3 * number for number in guarded.take_counts().tolist()] == counts


@pytest.mark.parametrize('backend', ['eager', 'aot_eager'])
@pytest.mark.parametrize('mode', MODES)
def test_full_graph(mode: str, backend: str) -> None:
    compare('mmseg', mode, backend)


@pytest.mark.parametrize('mode', ['softmax', 'sigmoid'])
def test_full_graph_in_mmdet(mode: str) -> None:
    compare('mmdet', mode, 'aot_eager')


@pytest.mark.parametrize('name', ['focal', 'focal, activated', 'focal, custom', 'custom CE', 'custom CE, sigmoid'])
@pytest.mark.parametrize('backend', ['eager', 'aot_eager'])
def test_wrapped_losses_of_mmdet(name: str, backend: str) -> None:
    if name.startswith('focal'):
        skip_where_one_hot_waits()
    case = CASES[name]
    given = batch(case, weight='rows')
    given.label[:5] = 19
    eager, guarded = case.guard(), case.guard()
    compiled = torch.compile(guarded, fullgraph=True, backend=backend)
    for avg_factor in (None, 5.0):
        expected = value_and_grad(eager, given.scores, given.target(case), given.weight, avg_factor=avg_factor)
        actual = value_and_grad(compiled, given.scores, given.target(case), given.weight, avg_factor=avg_factor)
        assert_equal(actual, expected)
    assert guarded.take_counts().tolist() == eager.take_counts().tolist() == [48, 10, 0]


@pytest.mark.slow
@pytest.mark.parametrize('mode', ['softmax', 'sigmoid'])
def test_full_graph_with_inductor(mode: str) -> None:
    try:
        compare('mmseg', mode, 'inductor')
    except torch._dynamo.exc.BackendCompilerFailed:
        # As torch 2.1 and 2.2 do of losses of 2-D labels, where a decomposition of it was registered before.
        stock = torch.compile(lambda scores, label: F.cross_entropy(scores, label) + scores.sigmoid().mean())
        skip_where_torch_fails(lambda: value_and_grad(stock, torch.randn(2, 4, 6, 5), torch.ones(2, 6, 5).long()))
        raise
