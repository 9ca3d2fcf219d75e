"""Every loss that takes an ignored label, run in each of its modes: which of them trains on the ignored pixels."""

from __future__ import annotations

import inspect
from typing import Any, Dict, Tuple

import pytest
import torch
import torch.nn.functional as F
from this_stack import IS_ONEDL

from mmguard.findings.rules.config.ignored_labels import TRAINS_ON

pytestmark = pytest.mark.skipif(IS_ONEDL, reason='needs mmdet beside mmseg')

VOID = 255
SIGMOID, BINARY = dict(use_sigmoid=True), dict(loss_type='binary', reduction='none')
#: Scope and loss -> its modes: arguments, and channels of the scores.
MODES: Dict[Tuple[str, str], Tuple[Tuple[Dict[str, Any], int], ...]] = {
    ('mmseg', 'CrossEntropyLoss'): (({}, 4), (SIGMOID, 4), (SIGMOID, 1), (dict(avg_non_ignore=True), 4)),
    ('mmseg', 'DiceLoss'): (({}, 4), (dict(use_sigmoid=False), 4), (dict(naive_dice=True), 4), ({}, 1)),
    ('mmseg', 'LovaszLoss'): ((dict(per_image=True), 4), (dict(reduction='none'), 4), (BINARY, 1)),
    ('mmseg', 'TverskyLoss'): (({}, 4),),
    ('mmseg', 'HuasdorffDisstanceLoss'): (({}, 4),),
    ('mmseg', 'OhemCrossEntropy'): ((dict(ignore_label=VOID, min_kept=10), 4),),
    ('mmdet', 'CrossEntropyLoss'): ((dict(ignore_index=VOID), 4), (dict(SIGMOID, ignore_index=VOID), 4)),
    ('mmdet', 'CrossEntropyCustomLoss'): ((dict(ignore_index=VOID, num_classes=4), 4),),
}
#: Whose kernel wants a GPU where labels are class numbers.
ON_CUDA = {('mmseg', 'FocalLoss')}


def taught_by_ignored(scope: str, loss: Any, channels: int) -> bool:
    """Whether the scores of ignored pixels get a gradient."""
    generator = torch.Generator().manual_seed(0)
    scores = torch.randn(2, channels, 12, 12, generator=generator, requires_grad=True)
    label = torch.randint(0, max(channels, 2), (2, 12, 12), generator=generator)
    label[:, :, :5] = VOID
    takes = 'ignore_index' in inspect.signature(loss.forward).parameters
    if scope == 'mmdet':  # a list of scores, as its heads give them
        flat = scores.permute(0, 2, 3, 1).reshape(-1, channels)
        loss(flat, label.flatten()).backward()
    else:
        loss(scores, label, **(dict(ignore_index=VOID) if takes else {})).sum().backward()
    assert scores.grad is not None
    assert bool(scores.grad[..., 5:].abs().sum())
    return bool(scores.grad[..., :5].abs().sum())


@pytest.mark.parametrize(('scope', 'name'), list(MODES))
def test_who_trains_on_ignored_pixels(scope: str, name: str) -> None:
    from mmseg.registry import MODELS as SEG

    for settings, channels in MODES[scope, name]:
        loss = SEG.build(dict(type=f'{scope}.{name}', **settings))
        expected = scope == 'mmseg' and name in TRAINS_ON
        assert taught_by_ignored(scope, loss, channels) is expected, (settings, channels)
        if expected and name == 'DiceLoss':
            import mmguard  # noqa: F401  registers it

            # Transparent for valid and ignored labels: no remedy. The loss that is advised is one.
            inner = dict(type='DiceLoss', **settings)
            guarded = SEG.build(dict(type='GuardedLoss', ignore_index=VOID, loss=inner))
            assert taught_by_ignored(scope, guarded, channels), settings


def test_the_loss_that_is_advised_is_dice_without_the_ignored_pixels() -> None:
    from mmseg.models.losses import DiceLoss, TverskyLoss

    scores, label = torch.randn(2, 4, 12, 12), torch.randint(0, 4, (2, 12, 12))
    tversky = TverskyLoss(alpha=0.5, beta=0.5, smooth=0.0)
    parts = scores.softmax(1), F.one_hot(label, 4).permute(0, 3, 1, 2)
    overlap, sums = (parts[0] * parts[1]).flatten(2).sum(2), sum(part.flatten(2).sum(2) for part in parts)
    assert torch.allclose(tversky(scores, label), (1 - 2 * overlap / sums).mean(), atol=1e-5)
    assert not taught_by_ignored('mmseg', tversky, 4)
    assert taught_by_ignored('mmseg', DiceLoss(use_sigmoid=False, naive_dice=True), 4)


def test_every_loss_that_takes_an_ignored_label_is_looked_at() -> None:
    import mmdet.models.losses
    import mmseg.models.losses

    for scope, module in (('mmseg', mmseg.models.losses), ('mmdet', mmdet.models.losses)):
        for name in module.__all__:
            cls = getattr(module, name)
            if not inspect.isclass(cls) or name == 'Accuracy':
                continue
            taken = {*inspect.signature(cls).parameters, *inspect.signature(cls.forward).parameters}
            if taken & {'ignore_index', 'ignore_label'}:
                assert (scope, name) in {*MODES, *ON_CUDA}, name
