"""Which labels are valid, from each of its sources; and that the losses of the frameworks see it so."""

from __future__ import annotations

from typing import Any, Dict, Optional, Tuple

import pytest
import torch
from torch import nn

import mmguard
from mmguard.compat.stack import find_config_file
from mmguard.config.parts import from_config
from mmguard.config.read import ReadConfig
from mmguard.labels.spaces import LabelSpaces, from_loss, from_model, from_options, from_record


class Head(nn.Module):
    def __init__(self, num_classes: Optional[int] = None, **more: Any) -> None:
        super().__init__()
        for name, value in dict(more, num_classes=num_classes).items():
            setattr(self, name, value)


class RPNHead(Head):
    pass


class STDCHead(Head):
    pass


class GroundingDINOHead(Head):
    pass


def model_of(**parts: nn.Module) -> nn.Module:
    model = nn.Module()
    for name, part in parts.items():
        setattr(model, name, part)
    return model


def config_of(scope: str = 'mmseg', **model: Any) -> ReadConfig:
    return ReadConfig(dict(default_scope=scope, model=dict(type='Model', **model)))


def pixels_of(spaces: LabelSpaces) -> Optional[Tuple[int, Optional[int], str]]:
    space = spaces.pixels
    return None if space is None else (space.num_classes, space.ignore_index, space.place)


# ---- from a model


def test_the_rpn_knows_no_classes_and_a_cascade_is_as_wide_as_its_narrowest() -> None:
    model = model_of(rpn_head=Head(1), roi_head=model_of(bbox_head=nn.ModuleList([Head(20), Head(19)])))
    spaces = from_model(model)
    assert list(spaces.to_dict()) == ['instances']
    assert (spaces.instances.num_classes, spaces.instances.place) == (19, 'roi_head.bbox_head.1.num_classes')
    assert [space.num_classes for space in spaces.find_disagreeing('instances')] == [20, 19]


def test_the_ignored_label_is_the_heads() -> None:
    model = model_of(
        decode_head=Head(7, ignore_index=7, loss_decode=nn.CrossEntropyLoss()), auxiliary_head=Head(2, ignore_index=255)
    )
    assert pixels_of(from_model(model)) == (7, 7, 'decode_head.num_classes')
    assert from_model(nn.Linear(1, 1)).to_dict() == {}


def test_where_no_head_tells_classes_apart_the_data_set_does() -> None:
    for head in (RPNHead(1), GroundingDINOHead(256)):
        assert from_model(model_of(bbox_head=head)).instances is None
        space = from_model(model_of(bbox_head=head), ['cat', 'dog', 'bird']).instances
        assert space.num_classes == 3
    # A depth head has no classes, and the scenes of its data set are none of its labels.
    assert from_model(model_of(decode_head=Head()), ['kitchen', 'hall']).instances is None


def test_one_sigmoid_channel_tells_two_labels_apart() -> None:
    for arguments in (dict(num_classes=1), dict(num_classes=2, out_channels=1)):
        assert pixels_of(from_model(model_of(decode_head=Head(**arguments))))[:2] == (2, 255)  # type: ignore[index,arg-type]
        assert pixels_of(from_config(config_of(decode_head=dict(type='FCNHead', **arguments))))[:2] == (2, 255)  # type: ignore[index]
    assert pixels_of(from_config(config_of(decode_head=dict(type='MaskFormerHead', num_classes=1))))[0] == 1  # type: ignore[index]


def test_what_is_ignored_is_said_by_the_head_or_its_loss() -> None:
    for name, arguments, expected in (
        ('decode_head', dict(ignore_index=7), 7),
        ('decode_head', dict(loss_decode=dict(ignore_index=8)), 8),
        ('decode_head', dict(loss_decode=[dict(ignore_index=9), dict(ignore_index=1)]), 9),
        ('decode_head', dict(loss_decode=dict()), 255),
        ('decode_head', dict(loss_decode=nn.CrossEntropyLoss()), -100),
        ('decode_head', dict(), 255),
        ('semantic_head', dict(ignore_index=7, ignore_label=6), 6),
        ('semantic_head', dict(ignore_label=0, loss_seg=nn.CrossEntropyLoss(ignore_index=5)), 5),
        ('semantic_head', dict(criterion=nn.CrossEntropyLoss(ignore_index=4)), 4),
        ('semantic_head', dict(loss_seg=dict()), -100),
        ('panoptic_head', dict(ignore_index=7, num_things_classes=1, num_stuff_classes=2), 255),
    ):
        pixels = from_model(model_of(**{name: Head(3, **arguments)})).pixels
        assert pixels.ignore_index == expected, (name, arguments)


def test_what_is_no_number_of_classes_is_none() -> None:
    for number in (True, '19', 19.0, None):
        assert from_model(model_of(decode_head=Head(number))).to_dict() == {}  # type: ignore[arg-type]
    panoptic = model_of(panoptic_head=Head(5))  # no things and stuff: of instances alone
    assert list(from_model(panoptic).to_dict()) == ['instances']
    assert pixels_of(from_model(model_of(decode_head=Head(2, out_channels=1)))) == (2, 255, 'decode_head.num_classes')
    assert pixels_of(from_model(model_of(semantic_head=Head(1)))) == (1, 255, 'semantic_head.num_classes')


# ---- of a loss


@pytest.mark.parametrize(
    ('head', 'own', 'expected'),
    [
        (dict(num_classes=19, ignore_index=255), {}, (19, 255)),
        (dict(num_classes=19, ignore_index=254), dict(num_classes=7, ignore_index=3), (7, 254)),
        (dict(num_classes=19), dict(ignore_index=3), (19, 3)),
        (dict(num_classes=19), {}, (19, 255)),  # TverskyLoss's own
    ],
)
@pytest.mark.parametrize('name', ['decode_head', 'my_module'])
def test_of_a_wrapped_loss(name: str, head: Dict[str, Any], own: Dict[str, Any], expected: Tuple[int, int]) -> None:
    pytest.importorskip('mmseg')
    loss = mmguard.GuardedLoss(dict(type='mmseg.TverskyLoss'), **own)
    spaces = from_loss(model_of(**{name: Head(**head, loss_decode=nn.ModuleList([loss]))}), f'{name}.loss_decode.0')
    assert (spaces['pixels'].num_classes, spaces['pixels'].ignore_index) == expected
    # Of a head with another name nobody knows what it trains on.
    assert list(spaces) == ['pixels', 'instances'][: 1 + (name == 'my_module')]
    assert [space.kind for space in spaces.values()] == list(spaces)
    loss_name = f'{name}.loss_decode.0'
    if name == 'my_module':
        assert {space.place for space in spaces.values()} == {loss_name}
    else:
        assert spaces['pixels'].place == (
            f'{loss_name}.num_classes' if 'num_classes' in own else 'decode_head.num_classes'
        )


def test_of_ohem_whose_ignored_label_has_another_name() -> None:
    pytest.importorskip('mmseg')
    loss = mmguard.GuardedLoss(dict(type='mmseg.OhemCrossEntropy', ignore_label=200))
    space = from_loss(model_of(decode_head=Head(4, loss_decode=loss)), 'decode_head.loss_decode')['pixels']
    assert (space.num_classes, space.ignore_index) == (4, 200)


def test_of_a_loss_whose_labels_are_none_of_the_files() -> None:
    loss = nn.CrossEntropyLoss()
    for head in (RPNHead(1, loss_cls=loss), STDCHead(2, loss_cls=loss), Head(loss_cls=loss)):
        assert from_loss(model_of(some_head=head), 'some_head.loss_cls') == {}


def test_of_the_loss_of_a_panoptic_head_in_the_labels_of_its_maps() -> None:
    loss = nn.CrossEntropyLoss(ignore_index=255)
    semantic = Head(54, num_things_classes=80, num_stuff_classes=53, loss_seg=loss)
    spaces = from_loss(model_of(semantic_head=semantic), 'semantic_head.loss_seg')
    assert (list(spaces), spaces['pixels'].num_classes) == (['pixels'], 133)
    queries = Head(133, num_things_classes=80, num_stuff_classes=53, loss_cls=loss)
    spaces = from_loss(model_of(panoptic_head=queries), 'panoptic_head.loss_cls')
    assert {kind: space.num_classes for kind, space in spaces.items()} == {'pixels': 133, 'instances': 80}


# ---- from a config


def test_a_guard_goes_before_the_heads_in_its_split_alone() -> None:
    config = config_of(decode_head=dict(type='FCNHead', num_classes=19))
    guard = dict(type='mmguard.GuardSegLabels', num_classes=5, ignore_index=9, label_map={'11': 9})
    config.data['train_dataloader'] = dict(dataset=dict(type='D', metainfo=dict(classes=['a', 'b']), pipeline=[guard]))
    spaces = from_config(config, 'train')
    assert pixels_of(spaces) == (5, 9, 'train_dataloader.dataset.pipeline[0].num_classes')
    assert (spaces.pixels and spaces.pixels.label_map, spaces.names) == ({11: 9}, ('a', 'b'))
    for split in (None, 'val'):
        assert pixels_of(from_config(config, split)) == (19, 255, 'model.decode_head.num_classes')


def test_what_a_config_leaves_out_its_classes_say() -> None:
    pytest.importorskip('mmdet')
    config = config_of('mmdet', semantic_head=dict(type='PanopticFPNHead'))
    place = 'model.semantic_head.num_things_classes + num_stuff_classes'
    assert pixels_of(from_config(config)) == (133, -1, place)  # its default of loss_seg
    config.data['model']['semantic_head']['loss_seg'] = dict(type='CrossEntropyLoss')
    assert pixels_of(from_config(config)) == (133, -100, place)  # mmdet's cross entropy ignores what PyTorch's does


def test_the_names_are_counted_where_there_is_no_other_number() -> None:
    config = config_of('mmdet', rpn_head=dict(type='RPNHead', num_classes=1))
    config.data['train_dataloader'] = dict(dataset=dict(type='D', metainfo=dict(classes=['a', 'b'])))
    space = from_config(config).instances
    assert (space.num_classes, space.place) == (2, 'train_dataloader.dataset.metainfo.classes')


# ---- from a record, from options


def test_of_a_record() -> None:
    guard = dict(kind='instances', num_classes=5, ignore_index=None, min_label=1, label_map={'7': 2})
    losses = {'a.loss': [dict(kind='pixels', num_classes=19, ignore_index=255)], 'b.loss': dict(num_classes=3)}
    said = dict(guards=[guard], losses=losses, classes=['a'])
    spaces = from_record(said, ['a.loss'])
    assert pixels_of(spaces) == (19, 255, 'a.loss')
    assert (spaces.instances.num_classes, spaces.instances.min_label, spaces.instances.label_map) == (5, 1, {7: 2})
    assert [label for label in range(6) if spaces.instances.is_valid(label)] == [1, 2, 3, 4]
    assert pixels_of(from_record(said)) is None
    unknown = from_record(said, ['b.loss'])
    assert pixels_of(unknown) == (3, None, 'b.loss')
    assert spaces.names == ('a',)
    for found in (spaces, unknown):
        assert {kind: space.kind for kind, space in found.to_dict().items()} == {k: k for k in ('pixels', 'instances')}
    # A record may hold anything.
    assert (
        from_record(dict(guards=[7, dict(num_classes='5'), dict(num_classes=5, kind='x')], losses=3)) == LabelSpaces()
    )
    odd = from_record(dict(guards=[dict(num_classes=5, kind='pixels', ignore_index='a', min_label='b')])).pixels
    assert (odd.ignore_index, odd.min_label, odd.label_map) == (None, 0, {})


def test_what_the_user_says_goes_first() -> None:
    heads = from_config(config_of(decode_head=dict(type='FCNHead', num_classes=19, ignore_index=7)))
    assert pixels_of(from_options(None, None, heads)) == (19, 7, 'model.decode_head.num_classes')
    assert pixels_of(from_options(5, None, heads)) == (5, 7, '--num-classes')
    assert pixels_of(from_options(None, 9, heads)) == (19, 9, 'model.decode_head.num_classes')
    assert pixels_of(from_options(None, 9)) is None
    both = from_options(5)
    assert both.pixels is not None
    assert (both.pixels.is_valid(255), both.instances.is_valid(255)) == (True, False)


# ---- the losses themselves


def labels_that_train(loss: Any, labels: range) -> list:
    """Those that a loss takes without an error."""
    found = []
    for label in labels:
        try:
            loss(label)
        except IndexError:
            continue
        found.append(label)
    return found


def test_panoptic_fpn_trains_on_things_and_stuff() -> None:
    mmdet = pytest.importorskip('mmdet.models.seg_heads')
    criterion = dict(type='mmdet.CrossEntropyLoss', ignore_index=9)
    head = mmdet.PanopticFPNHead(
        num_things_classes=3, num_stuff_classes=2, in_channels=4, inner_channels=32, loss_seg=criterion
    )

    def loss(label: int) -> Any:
        target = head._set_things_to_void(torch.full((1, 2, 2), label)).reshape(-1).long()
        return head.loss_seg(torch.zeros(4, head.num_classes), target)

    space = from_model(model_of(semantic_head=head)).pixels
    assert labels_that_train(loss, range(12)) == [label for label in range(12) if space.is_valid(label)]


def test_htc_trains_on_the_classes_of_stuff_maps() -> None:
    mmdet = pytest.importorskip('mmdet.models.roi_heads.mask_heads')
    head = mmdet.FusedSemanticHead(num_ins=2, fusion_level=0, num_classes=5, in_channels=4, conv_out_channels=4)
    space = from_model(model_of(roi_head=model_of(semantic_head=head))).pixels
    assert space.ignore_index == 255

    def loss(label: int) -> Any:
        return head.criterion(torch.zeros(1, 5, 2, 2), torch.full((1, 2, 2), label))

    assert labels_that_train(loss, range(256)) == [label for label in range(256) if space.is_valid(label)]


def test_maskformer_takes_stuff_from_maps_and_leaves_the_rest_out() -> None:
    mmdet = pytest.importorskip('mmdet.models.utils')
    masks = pytest.importorskip('mmdet.structures.mask').BitmapMasks([torch.ones(1, 3).numpy()], 1, 3)
    maps = torch.tensor([[[0, 4, 255]]])
    labels, _ = mmdet.preprocess_panoptic_gt(torch.tensor([2]), masks, maps, num_things=3, num_stuff=2)
    assert labels.tolist() == [2, 4]
    panoptic = Head(5, num_things_classes=3, num_stuff_classes=2)
    spaces = from_model(model_of(panoptic_head=panoptic))
    assert pixels_of(spaces) == (5, 255, 'panoptic_head.num_things_classes + num_stuff_classes')
    assert spaces.instances.num_classes == 3
    instances = from_model(model_of(panoptic_head=Head(3, num_things_classes=3, num_stuff_classes=0)))
    assert instances.pixels is None  # it is given no maps


def test_an_rpn_sees_no_label() -> None:
    pytest.importorskip('mmdet')
    from mmdet.structures import DetDataSample
    from mmdet.utils import register_all_modules
    from mmengine.config import Config
    from mmengine.registry import MODELS
    from mmengine.structures import InstanceData

    register_all_modules()
    config = Config.fromfile(find_config_file('mmdet::rpn/rpn_r50_fpn_1x_coco.py')).model
    config.backbone, config.neck.in_channels = dict(type='mmdet.ResNet', depth=18), [64, 128, 256, 512]
    model = MODELS.build(config)
    losses = []
    for labels in ([0, 0], [7, 91]):
        torch.manual_seed(0)
        instances = InstanceData(labels=torch.tensor(labels), bboxes=torch.tensor([[0.0, 0, 32, 32], [8, 8, 40, 60]]))
        sample = DetDataSample(gt_instances=instances, metainfo=dict(img_shape=(64, 64), pad_shape=(64, 64)))
        losses.append(model.loss(torch.ones(1, 3, 64, 64), [sample])['loss_rpn_cls'])
    assert all(torch.equal(one, other) for one, other in zip(*losses))
    assert from_model(model).instances is None
