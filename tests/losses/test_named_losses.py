"""``GuardedX`` for every loss X of mmseg and mmdet."""

from __future__ import annotations

import importlib
import inspect
import pickle
from typing import Any, Dict, List, Tuple

import mmseg.models.losses as seg_stock
import pytest
import torch
import wrapped_cases
from detection_cases import CASES, assert_same, batch, outcome
from mmengine.registry import Registry

from mmguard.losses import mmdet as det_losses
from mmguard.losses import mmseg as seg_losses
from mmguard.losses.counting import CountsLabels
from mmguard.losses.guards import GUARD_BY_NAME, REASONS

MODULES = {'mmseg': seg_losses, 'mmdet': det_losses}


def registry_of(scope: str) -> Registry:
    importlib.import_module(f'{scope}.models')
    return importlib.import_module(f'{scope}.registry').MODELS


def stock_losses() -> List[Tuple[str, str]]:
    """Every class below ``models.losses`` that the registry of a framework knows."""
    found = []
    for scope in MODULES:
        for name, cls in sorted(registry_of(scope).module_dict.items()):
            if inspect.isclass(cls) and cls.__module__.startswith(f'{scope}.models.losses'):
                found.append((scope, name))
    return found


@pytest.mark.parametrize(('scope', 'stock'), stock_losses())
def test_every_loss_of_the_registry_has_its_guarded_name(scope: str, stock: str) -> None:
    if not {f'{scope}.{stock}'} & {*GUARD_BY_NAME, *REASONS}:
        pytest.skip('of a newer framework: GuardedLoss(loss=...) decides when it is built')
    registry, name = registry_of(scope), f'Guarded{stock}'
    cls = registry.get(name)
    assert inspect.isclass(cls)
    assert cls is getattr(MODULES[scope], name)
    if issubclass(cls, CountsLabels):
        return
    with pytest.raises(TypeError) as caught:
        registry.build(dict(type=name))
    assert str(caught.value) == f'{name}: {REASONS[f"{scope}.{stock}"]}'


@pytest.mark.parametrize('name', CASES)
def test_a_loss_of_mmdet(name: str) -> None:
    case = CASES[name]
    stock, given = case.build(), batch(case)
    guarded = registry_of('mmdet').build(dict(type=f'Guarded{case.loss}', **case.arguments))
    assert type(guarded) is getattr(det_losses, f'Guarded{case.loss}')
    assert isinstance(guarded, type(stock))
    assert_same(outcome(guarded, case, given), outcome(stock, case, given), name)
    assert guarded.take_counts().tolist() == [len(given.label), 0, 0]


@pytest.mark.parametrize('name', wrapped_cases.ALL)
def test_a_loss_of_mmseg(name: str) -> None:
    stock_class, arguments = wrapped_cases.ALL[name]
    scores, label = wrapped_cases.batch(name)
    guarded = registry_of('mmseg').build(dict(type=f'Guarded{stock_class.__name__}', **arguments))
    for loss in (guarded, pickle.loads(pickle.dumps(guarded))):
        # Off CUDA the stock focal loss takes one-hot targets only.
        target = wrapped_cases.one_hot(label) if name in wrapped_cases.FOCAL else label
        torch.testing.assert_close(loss(scores, label), wrapped_cases.build(name)(scores, target))
    assert guarded.take_counts().tolist() == [label.numel(), 0, 0]


def test_arguments_of_the_guard_stand_beside_those_of_the_loss() -> None:
    loss = registry_of('mmseg').build(
        dict(type='GuardedOhemCrossEntropy', thres=0.6, min_kept=4, ignore_index=9, on_invalid='clip')
    )
    assert (loss.on_invalid, loss.ignore_index, loss.thresh) == ('clip', 9, 0.6)
    assert isinstance(loss, seg_stock.OhemCrossEntropy)


@pytest.mark.parametrize(
    'config',
    [
        dict(type='GuardedFocalLoss', gama=2.0),
        dict(type='GuardedFocalLoss', use_sigmoid=False),
        dict(type='GuardedFocalLoss', on_invalid='skip'),
        dict(type='GuardedSeesawLoss', use_sigmoid=True),
    ],
)
def test_an_error_names_the_type_that_was_written(config: Dict[str, Any]) -> None:
    stock = {key: value for key, value in config.items() if key != 'on_invalid'}
    with pytest.raises((TypeError, ValueError, AssertionError)) as caught:
        registry_of('mmdet').build(config)
    assert str(config['type']) in str(caught.value)
    if 'on_invalid' not in config:  # with the exception of the stock loss
        with pytest.raises(caught.type):
            registry_of('mmdet').build(dict(stock, type=config['type'][len('Guarded') :]))
