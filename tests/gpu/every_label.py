"""One Triton kernel sanitizes and counts labels as PyTorch's operations do.

``test_label_kernel.py`` runs this file in Triton's interpreter, on the CPU.
"""

from __future__ import annotations

import logging
import random
from typing import Any, Iterator, Tuple

import pytest
import torch
from loss_checks import count_operations, value_and_grad

pytest.importorskip('torch', minversion='2.4')
pytest.importorskip('triton', minversion='3.2')

from mmguard.functional import cross_entropy, format, label_kernel, softmax_cross_entropy
from mmguard.functional.format import sanitize_by_operations, sanitize_class_target
from mmguard.nn import CrossEntropyLoss

RANGES = {
    torch.int64: (-(2**62), 2**62),
    torch.int32: (-(2**31), 2**31 - 1),
    torch.int16: (-(2**15), 2**15 - 1),
    torch.int8: (-128, 128),
    torch.uint8: (0, 256),
    torch.bool: (0, 2),
}
SHAPES = [(), (0,), (1,), (5,), (3, 7), (2, 33, 17), (2, 0, 4), (4, 1024), (1, 1025)]
IGNORED = [-100, 255, 0, 1, -1, -256, -257, 1023, 1024, 5000, 2**31, 2**40, -(2**40)]


@pytest.fixture
def kernel(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(format, 'kernel', None)
    monkeypatch.setattr(label_kernel, '_failed', False)
    label_kernel.enable()
    yield
    assert not label_kernel._failed


def draw(source: random.Random) -> Tuple[torch.Tensor, int, int, str]:
    dtype, shape = source.choice(list(RANGES)), source.choice(SHAPES)
    classes = source.choice([1, 2, 3, 19, 150, 255, 256, 1000, 1023, 1024, 2000])
    ignore_index = source.choice([*IGNORED, classes - 1, classes, classes + 1])
    generator = torch.Generator().manual_seed(source.randrange(10**9))
    low, high = RANGES[dtype]
    label = torch.randint(0, max(1, min(classes, high)), shape, generator=generator)
    others = {
        'one': torch.full(shape, source.choice([255, classes, -1, ignore_index])),
        'few': torch.tensor([-1, classes, 255, ignore_index, 300, -256, 1023])[
            torch.randint(0, 7, shape, generator=generator)
        ],
        'near': torch.randint(-300, 1100, shape, generator=generator),
        'any': torch.randint(low, high, shape, generator=generator),
    }[source.choice(['one', 'few', 'near', 'any'])]
    share = source.choice([0, 0.05, 0.5, 1])
    label = torch.where(torch.rand(shape, generator=generator) < share, others, label)
    label = (label & 1).bool() if dtype == torch.bool else label.to(dtype)
    if source.random() < 0.2 and label.dim() > 1:
        label = label.transpose(0, 1)
    return label, classes, ignore_index, source.choice(['ignore', 'clip'])


@pytest.mark.usefixtures('kernel')
@pytest.mark.parametrize('seed', range(2))
def test_random_draws_equal_the_operations(seed: int) -> None:
    source, invalid = random.Random(seed), 0
    for _ in range(50):
        arguments = draw(source)
        ours, known = sanitize_class_target(*arguments), sanitize_by_operations(*arguments)
        assert ours.counted is not None
        assert torch.equal(ours.target, known.target), arguments[1:]
        assert ours.target.dtype == torch.int64
        assert ours.count_valid() == known.count_valid(), arguments[1:]
        (kept, counts), (known_kept, known_counts) = ours.count_by_value(), known.count_by_value()
        assert kept == known_kept == ours.count_kept()
        assert torch.equal(counts, known_counts), arguments[1:]
        assert torch.equal(ours.find_valid(), known.find_valid())
        invalid += int(counts[1:3].sum()) > 0
    assert invalid > 8


LABEL = torch.tensor([[[0, 7, 255], [2, 1, -1]]])
WEIGHT = torch.tensor([0.5, 1.0, 2.0])


@pytest.mark.parametrize('weight', [None, WEIGHT], ids=['', 'weighted'])
@pytest.mark.parametrize('on_invalid', ['ignore', 'clip', 'raise'])
@pytest.mark.parametrize('ignore_index', [255, 1])
def test_losses_are_equal_bit_for_bit(
    weight: Any, on_invalid: str, ignore_index: int, request: pytest.FixtureRequest
) -> None:
    label = LABEL.clamp(0, 2) if on_invalid == 'raise' else LABEL
    options = {'ignore_index': ignore_index, 'on_invalid': on_invalid}

    def results() -> Any:
        scores = torch.randn(1, 3, 2, 3, generator=torch.Generator().manual_seed(0))
        module = CrossEntropyLoss(weight, **options)
        found = [
            value_and_grad(module, scores, label),
            value_and_grad(lambda x: cross_entropy(x, label, weight, **options), scores),
            value_and_grad(lambda x: softmax_cross_entropy(x, label, class_weight=weight, **options)[0], scores),
        ]
        return [tensor for pair in found for tensor in pair] + [module.counts_by_value]

    known = results()
    request.getfixturevalue('kernel')
    assert all(torch.equal(ours, theirs) for ours, theirs in zip(results(), known))


@pytest.mark.usefixtures('kernel')
def test_few_operations() -> None:
    loss = CrossEntropyLoss()
    found = count_operations(lambda leaf: loss(leaf, LABEL), torch.randn(1, 3, 2, 3))
    assert found['sanitize_labels'] == 1
    # PyTorch's own takes 5; the mean of nothing is 0: a comparison, and a fill in each direction.
    assert sum(found.values()) <= 9, found


@pytest.mark.usefixtures('kernel')
def test_traced_and_transformed() -> None:
    torch.library.opcheck(label_kernel.sanitize_labels, (LABEL, 3, 255, False))
    torch._dynamo.reset()
    scores = torch.randn(1, 3, 2, 3)
    eager, traced = CrossEntropyLoss(WEIGHT), CrossEntropyLoss(WEIGHT)
    compiled = torch.compile(traced, fullgraph=True, backend='aot_eager')
    for _ in range(2):
        expected, found = value_and_grad(eager, scores, LABEL), value_and_grad(compiled, scores, LABEL)
        assert all(torch.equal(ours, theirs) for ours, theirs in zip(found, expected))
    assert traced.tally() == eager.tally()
    rows, labels = torch.randn(6, 3), torch.tensor([0, 7, 2, -1, 1, 1])
    per_sample = torch.func.vmap(torch.func.grad(cross_entropy))(rows, labels)
    for row, label, gradient in zip(rows, labels, per_sample):
        assert torch.equal(gradient, value_and_grad(cross_entropy, row, label)[1])


def test_a_first_call_that_fails_falls_back_once_with_a_line(
    kernel: None, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    calls = []

    def launch(*arguments: Any) -> torch.Tensor:
        calls.append(arguments)
        raise RuntimeError('no compiler')

    with monkeypatch.context() as broken, caplog.at_level(logging.WARNING, 'mmguard'):
        broken.setattr(label_kernel, 'launch', launch)
        for _ in range(2):
            sanitized = sanitize_class_target(LABEL, 3, 255, 'ignore')
            assert torch.equal(sanitized.target, sanitize_by_operations(LABEL, 3, 255, 'ignore').target)
            assert sanitized.count_by_value()[1][:3].tolist() == [6, 2, 0]
    assert len(calls) == 1
    assert [record.name for record in caplog.records] == ['mmguard']
    assert 'no compiler' in caplog.text
    label_kernel._failed = False
