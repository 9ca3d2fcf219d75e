"""``GuardedX`` for every loss X of mmseg and mmdet: guarded, passed through or refused as docs/mmdet_losses.md says."""

from __future__ import annotations

import copy
import importlib
import inspect
import io
import pickle
import re
from pathlib import Path
from typing import Any, Dict, List, Tuple

import mmdet.models.losses as stock
import mmdet.registry
import mmengine.registry
import mmseg.models.losses
import mmseg.models.losses as seg_stock
import mmseg.registry
import numpy as np
import pytest
import torch
import wrapped_cases
from detection_cases import CASES, assert_same, batch, outcome
from mmdet.registry import MODELS
from mmengine.config import Config
from mmengine.model import ExponentialMovingAverage
from mmengine.registry import Registry
from torch import nn

import mmguard.losses.mmdet
import mmguard.losses.mmseg
from mmguard.losses import mmdet as det_losses
from mmguard.losses import mmseg as seg_losses
from mmguard.losses.guarded_loss import GuardedLossBase
from mmguard.losses.guards import GUARD_BY_NAME, GUARDS, REASONS
from mmguard.losses.guards.mmdet import DenseGuard
from mmguard.losses.mmdet import GuardedLoss
from mmguard.nn.counting import CountsLabels

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


BUILD = mmdet.registry.MODELS.build


class TestFlatForm:
    def test_type_name(self) -> None:
        built = BUILD({'type': 'GuardedLoss', 'loss': 'FocalLoss', 'use_sigmoid': True, 'gamma': 1.5, 'alpha': 0.5})
        assert type(built) is GuardedLoss
        assert type(built.loss) is stock.FocalLoss
        assert (built.gamma, built.alpha, built.use_sigmoid) == (1.5, 0.5, True)

    def test_class(self) -> None:
        assert GuardedLoss(stock.GHMC, bins=7).loss.bins == 7
        assert GuardedLoss({'type': stock.GHMC, 'bins': 7}).loss.bins == 7

    def test_the_edit_of_a_user(self, tmp_path: Any) -> None:
        """Inheritance merges the edit over the stock config: nothing has to be deleted or repeated."""
        (tmp_path / 'base.py').write_text(
            "model = dict(loss_cls=dict(type='FocalLoss', use_sigmoid=True, gamma=2.5, alpha=0.3, loss_weight=0.5))"
        )
        (tmp_path / 'own.py').write_text(
            "_base_ = 'base.py'\nmodel = dict(loss_cls=dict(type='GuardedLoss', loss='FocalLoss'))"
        )
        config = Config.fromfile(str(tmp_path / 'own.py')).model.loss_cls
        before = copy.deepcopy(config)
        assert config.get('use_sigmoid') is True
        built = BUILD(config)
        assert (built.gamma, built.alpha, built.loss_weight) == (2.5, 0.3, 0.5)
        assert config == before

    def test_in_mmseg_and_the_root(self) -> None:
        built = mmseg.registry.MODELS.build({'type': 'GuardedLoss', 'loss': 'OhemCrossEntropy', 'min_kept': 7})
        assert type(built.loss) is mmseg.models.losses.OhemCrossEntropy
        assert built.min_kept == 7
        built = mmengine.registry.MODELS.build({'type': 'GuardedLoss', 'loss': 'mmdet.FocalLoss', 'gamma': 3.0})
        assert type(built.loss) is stock.FocalLoss

    def test_own_arguments_stay_its_own(self) -> None:
        built = GuardedLoss('FocalLoss', num_classes=4, ignore_index=255, on_invalid='clip', gamma=3.0)
        assert (built.num_classes, built.ignore_index, built.on_invalid) == (4, 255, 'clip')
        assert not hasattr(built.loss, 'num_classes')

    @pytest.mark.parametrize('loss', ['SeesawLoss', 'EQLV2Loss', 'FocalCustomLoss', 'CrossEntropyCustomLoss'])
    def test_num_classes_reaches_a_loss_that_takes_it(self, loss: str) -> None:
        for built in (GuardedLoss(loss, num_classes=7), GuardedLoss({'type': loss}, num_classes=7)):
            assert built.num_classes == built.loss.num_classes == 7
        assert GuardedLoss({'type': loss, 'num_classes': 7}).loss.num_classes == 7

    def test_ignore_index_reaches_a_loss_that_takes_it(self) -> None:
        built = GuardedLoss('CrossEntropyCustomLoss', num_classes=7, ignore_index=255, avg_non_ignore=True)
        assert built.ignore_index == built.loss.ignore_index == 255

    def test_the_nested_form_of_mmseg_is_as_it_was(self) -> None:
        """mmseg's DiceLoss takes an ignore_index for a channel, GuardedLoss for a label."""
        built = mmguard.losses.mmseg.GuardedLoss({'type': 'DiceLoss', 'use_sigmoid': True}, ignore_index=0)
        assert (built.ignore_index, built.loss.ignore_index) == (0, 255)

    def test_arguments_beside_a_nested_dict_are_merged(self) -> None:
        weights = np.array([1.0, 2.0, 3.0])
        nested = {'type': 'CrossEntropyCustomLoss', 'num_classes': 2, 'class_weight': weights}
        built = GuardedLoss(nested, class_weight=weights.copy(), loss_weight=0.5)
        assert built.loss.loss_weight == 0.5
        assert 'loss_weight' not in nested
        with pytest.raises(ValueError, match=r'gamma=2\.0.*gamma=3\.0$'):
            GuardedLoss({'type': 'FocalLoss', 'gamma': 2.0, 'alpha': 0.2}, gamma=3.0, alpha=0.2)

    def test_arguments_for_a_built_loss(self) -> None:
        with pytest.raises(TypeError, match=r'gamma, alpha.*FocalLoss'):
            GuardedLoss(stock.FocalLoss(), gamma=2.0, alpha=0.5)

    def test_use_sigmoid_must_stand_where_heads_read_it(self) -> None:
        nested = {'type': 'FocalLoss', 'use_sigmoid': True, 'gamma': 2.0}
        with pytest.raises(ValueError, match="type='GuardedLoss', loss='FocalLoss', use_sigmoid=True"):
            GuardedLoss(nested)
        assert GuardedLoss(nested, use_sigmoid=True).use_sigmoid
        assert GuardedLoss({'type': 'SeesawLoss', 'use_sigmoid': False}, num_classes=3).use_sigmoid is False
        assert mmguard.losses.mmseg.GuardedLoss({'type': 'FocalLoss', 'use_sigmoid': True}).use_sigmoid

    def test_num_classes_that_are_not_those_of_the_scores(self) -> None:
        """The background is the label after the last channel, so there is no room for fewer classes."""
        case = CASES['focal']
        with pytest.raises(ValueError, match=r'num_classes=3.*\b4\b'):
            outcome(case.guard(num_classes=3), case, batch(case))
        outcome(case.guard(num_classes=4), case, batch(case))


@pytest.mark.parametrize('name', CASES)
class TestPassesForTheLossItWraps:
    def test_isinstance(self, name: str) -> None:
        guarded, bare = CASES[name].guard(), CASES[name].build()
        assert isinstance(guarded, type(bare))
        assert isinstance(guarded, (GuardedLoss, GuardedLossBase))
        assert isinstance(guarded, CountsLabels)
        assert isinstance(guarded, nn.Module)
        assert not isinstance(guarded, (stock.L1Loss, nn.ModuleList))
        assert type(guarded) is GuardedLoss
        assert repr(guarded).startswith('GuardedLoss(')
        assert dict(guarded.named_modules()) == {'': guarded}  # as the stock loss: a loss without modules inside
        assert list(guarded.state_dict()) == list(bare.state_dict())

    def test_copies(self, name: str) -> None:
        case = CASES[name]
        guarded = case.guard(on_invalid='clip')
        expected = outcome(case.guard(on_invalid='clip'), case, batch(case))
        twins = [copy.deepcopy(guarded), ExponentialMovingAverage(nn.Sequential(guarded)).module[0]]
        if name != 'eqlv2':  # stock holds a local function
            saved = io.BytesIO()
            torch.save(nn.Sequential(guarded), saved)
            saved.seek(0)
            twins += [pickle.loads(pickle.dumps(guarded, protocol)) for protocol in (2, pickle.DEFAULT_PROTOCOL)]
            twins += [torch.load(saved, weights_only=False)[0]]
        for twin in twins:
            assert type(twin) is GuardedLoss
            assert twin.loss is not guarded.loss
            assert twin.guard.loss is twin.loss
            assert twin.on_invalid == 'clip'
            assert_same(outcome(twin, case, batch(case)), expected, name)
        assert copy.copy(guarded).loss is guarded.loss


@pytest.mark.parametrize('name', ['ghm', 'ghm, momentum', 'seesaw', 'seesaw, one value', 'eqlv2'])
def test_checkpoints_of_either_model(name: str) -> None:
    """What a loss has added up survives the edit of the config."""
    case = CASES[name]
    bare = nn.ModuleDict({'head': nn.ModuleDict({'loss_cls': case.build()})})
    outcome(bare['head']['loss_cls'], case, batch(case))
    guarded = nn.ModuleDict({'head': nn.ModuleDict({'loss_cls': case.guard()})})
    guarded.load_state_dict(bare.state_dict(), strict=True)
    fresh = case.build().state_dict()
    assert fresh
    for what, buffer in guarded['head']['loss_cls'].loss.state_dict().items():
        assert buffer.equal(bare['head']['loss_cls'].state_dict()[what])
        assert what == 'edges' or not buffer.equal(fresh[what])
    again = nn.ModuleDict({'head': nn.ModuleDict({'loss_cls': case.guard()})})
    again.load_state_dict(guarded.state_dict(), strict=True)
    for what, buffer in again.state_dict().items():
        assert buffer.equal(guarded.state_dict()[what])


def test_before_the_loss_is_there_it_is_itself() -> None:
    blank = GuardedLoss.__new__(GuardedLoss)
    assert blank.__class__ is GuardedLoss


def test_heads_reach_the_methods_of_the_loss() -> None:
    guarded = GuardedLoss('SeesawLoss', num_classes=3)
    scores, label = torch.randn(4, 5), torch.tensor([0, 2, 3, 99])
    assert guarded.custom_cls_channels
    assert guarded.custom_activation
    assert guarded.custom_accuracy
    assert guarded.get_cls_channels(3) == 5
    assert guarded.get_activation(scores).shape == (4, 4)
    assert set(guarded.get_accuracy(scores, label)) == {'acc_objectness', 'acc_classes'}
