"""One selection of losses: ``guard=True`` guards those of a built model that ``mmguard apply`` guards in its config."""

from __future__ import annotations

from typing import Any, Dict, Iterator

import pytest

pytest.importorskip('mmseg')
pytest.importorskip('mmdet')

import mmseg.models  # noqa: F401 - they register the heads
from mmengine.registry import MODELS, init_default_scope
from mmseg.registry import MODELS as MMSEG_MODELS
from test_spaces_official import ON_CPU, Official, build, family, load, not_built, one_of_each_folder
from torch import nn

from mmguard.config.guards import guard_tree
from mmguard.config.read import ReadConfig
from mmguard.hooks.guard_run import guard_model
from mmguard.nn.counting import CountsLabels


def guarded_in(model: nn.Module) -> Dict[str, str]:
    """Path -> the loss that is guarded there."""
    guards = ((path, one) for path, one in model.named_modules() if isinstance(one, CountsLabels))
    return {path: type(vars(one).get('loss', one)).__name__ for path, one in guards}


def check_selection(official: Official, two: nn.Module, monkeypatch: pytest.MonkeyPatch) -> None:
    """Compare a model with guards in its config with one that is guarded once it is built."""
    try:
        guard_model(two)
    except NotImplementedError:  # the loss reads its class weights, which a meta tensor does not have
        monkeypatch.setattr('test_spaces_official.ON_CPU', (*ON_CPU, official.name))
        two = build(official, monkeypatch)
        guard_model(two)
    written = build(official._replace(read=ReadConfig(guard_tree(official.read.written).tree)), monkeypatch)
    assert guarded_in(two) == guarded_in(written), official.name


def each_family(configs: Iterator[Official]) -> Iterator[Official]:
    """Yield one config of each family that can be built here."""
    families = set()
    for official in configs:
        kind = family(official.read)
        if kind not in families and not_built(official) is None:
            families.add(kind)
            yield official


#: One folder for each way of the frameworks to write or build a loss; every_official_config.py takes all families.
FOLDERS = ('autoassign', 'ddq', 'free_anchor', 'htc', 'knet', 'mask2former', 'pidnet', 'point_rend', 'retinanet', 'ssd')


def test_a_config_of_some_folders(monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = [one for one in one_of_each_folder() if one[1].parent.name in FOLDERS]
    chosen = list(each_family(load(wanted)))
    assert len(chosen) >= len(FOLDERS)
    for official in chosen:
        check_selection(official, build(official, monkeypatch), monkeypatch)


@MMSEG_MODELS.register_module()
class OwnSum(nn.Module):
    """A loss that builds others, and that no guard can be put around."""

    def __init__(self, losses: Any) -> None:
        super().__init__()
        self.losses = nn.ModuleList(map(MMSEG_MODELS.build, losses))
        self.margin_loss = nn.MarginRankingLoss()

    def forward(self, pred: Any, label: Any) -> Any:
        return sum(loss(pred, label) for loss in self.losses)


HEAD = dict(type='FCNHead', in_channels=4, channels=4, num_classes=3, norm_cfg=dict(type='BN'))
MODELS_OF = {
    'losses of an own loss': (
        'mmseg',
        dict(
            HEAD,
            loss_decode=dict(type='OwnSum', losses=[dict(type='CrossEntropyLoss'), dict(type='FocalLoss')]),
        ),
        {'loss_decode.losses.0', 'loss_decode.losses.1'},
    ),
    'identities': (
        'mmdet',
        dict(
            type='LinearReIDHead',
            num_fcs=1,
            in_channels=4,
            fc_channels=4,
            out_channels=4,
            num_classes=3,
            loss_cls=dict(type='CrossEntropyLoss'),
            loss_triplet=dict(type='TripletLoss'),
        ),
        set(),
    ),
    'a stage without classes': (
        'mmdet',
        dict(
            type='StageCascadeRPNHead', in_channels=4, feat_channels=4, with_cls=False, loss_bbox=dict(type='IoULoss')
        ),
        set(),
    ),
    'a head that never calls its loss': (
        'mmdet',
        dict(type='FreeAnchorRetinaHead', num_classes=3, in_channels=4, loss_cls=dict(type='FocalLoss')),
        set(),
    ),
}


@pytest.mark.parametrize('name', MODELS_OF)
def test_a_model(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    scope, head, expected = MODELS_OF[name]
    monkeypatch.setattr('mmdet.models.reid.linear_reid_head.mmpretrain', True)  # it is only asked if that is there
    init_default_scope(scope)
    tree = dict(default_scope=scope, model=dict(type='EncoderDecoder', decode_head=head))
    two = MODELS.build(head)
    _, left = guard_model(two)
    guarded = guard_tree(tree)
    written = MODELS.build(guarded.tree['model']['decode_head'])
    assert set(guarded_in(two)) == set(guarded_in(written)) == expected
    assert len(left) == len(guarded.left)
