"""``GuardedX`` for every loss X of mmseg and mmdet: guarded, passed through or refused as docs/mmdet_losses.md says."""

from __future__ import annotations

import importlib
import inspect
import pickle
import re
from pathlib import Path
from typing import Any, Dict, List, Optional, Tuple

import mmdet.models.losses as stock
import mmseg.models.losses as seg_stock
import pytest
import torch
import wrapped_cases
from detection_cases import BACKGROUND, CASES, assert_same, batch, outcome
from mmdet.registry import MODELS
from mmengine.registry import Registry

from mmguard.losses import mmdet as det_losses
from mmguard.losses import mmseg as seg_losses
from mmguard.losses.counting import CountsLabels
from mmguard.losses.guards import GUARD_BY_NAME, GUARDS, REASONS
from mmguard.losses.guards.mmdet import DenseGuard

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


PAGE = Path(__file__).parents[2] / 'docs' / 'mmdet_losses.md'


def losses_of_mmdet() -> Dict[str, type]:
    registered = {
        name: loss for name, loss in MODELS.module_dict.items() if loss.__module__.startswith('mmdet.models.losses.')
    }
    exported = {name: getattr(stock, name) for name in stock.__all__ if name.endswith('Loss')}
    return {**exported, **registered}


def decisions() -> Dict[str, str]:
    made = {name: 'own class' if name.endswith('CrossEntropyLoss') else 'refused' for name in REASONS}
    for guard in GUARDS:
        made.update(dict.fromkeys(guard.serves, 'passed through' if guard is DenseGuard else 'guarded'))
    return {name.split('.')[1]: decision for name, decision in made.items() if name.startswith('mmdet.')}


def test_no_loss_is_undecided() -> None:
    assert len(losses_of_mmdet()) > 30
    assert set(losses_of_mmdet()) == set(decisions())


def test_no_loss_is_decided_twice() -> None:
    served = [name for guard in GUARDS for name in guard.serves]
    assert len(served) == len(set(served))
    assert not set(served) & set(REASONS)


def test_the_page_says_the_same() -> None:
    rows = re.findall(r'^\| ([A-Z][\w, ]+) \| [^|]* \| ([a-z ]+) \|', PAGE.read_text(), re.MULTILINE)
    reported = {name: decision for names, decision in rows for name in names.split(', ')}
    assert reported == decisions()


@pytest.mark.parametrize(
    ('name', 'above', 'below'),
    [
        ('focal', 'RuntimeError', 'RuntimeError'),
        ('focal, activated', 'RuntimeError', 'RuntimeError'),
        ('focal, custom', 'RuntimeError', 'RuntimeError'),
        ('quality', None, None),
        ('ghm', None, None),
        ('seesaw', 'IndexError', 'RuntimeError'),
        ('eqlv2', 'IndexError', 'a class'),
        ('custom CE', 'IndexError', 'IndexError'),
        ('custom CE, sigmoid', None, 'weight 0'),
    ],
)
def test_stock_today(name: str, above: Optional[str], below: Optional[str]) -> None:
    """What the last column claims; ``None``: trained as background."""
    case = CASES[name]

    def result(label: int, weight: float = 1.0) -> Tuple[float, ...]:
        made = batch(case, weight='rows')
        made.label[2], made.quality[2], made.weight[:] = label, 0.5, 1.0
        made.weight[2] = weight
        return tuple(round(float(part), 4) for part in outcome(case.build(), case, made).parts.values())

    for label, what in ((BACKGROUND + 3, above), (-3, below)):
        if what is None:
            assert result(label) == result(BACKGROUND)
        elif what == 'weight 0':
            assert result(label) == result(BACKGROUND, weight=0.0)
        elif what == 'a class':  # the index counts from the last channel, which is the background
            assert result(label) == result(BACKGROUND + 1 + label) != result(BACKGROUND)
        else:
            with pytest.raises((RuntimeError, IndexError)) as caught:
                result(label)
            assert caught.type.__name__ == what
