"""Wrong types in a config are found, named and left out; two edits of one config are one where they can be."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from mmguard.config.changes import Conflict, change_config, merge
from mmguard.config.read import ReadConfig
from mmguard.config.tree import MOST_CLASSES, separate_wrong_types
from mmguard.errors import CannotRun


def model(**head: Any) -> Any:
    return dict(model=dict(type='EncoderDecoder', decode_head=dict(type='FCNHead', **head)))


def data(**dataset: Any) -> Any:
    return dict(train_dataloader=dict(dataset=dict(type='CityscapesDataset', **dataset)))


HEAD, DATASET = 'model.decode_head', 'train_dataloader.dataset'


@pytest.mark.parametrize(
    ('path', 'tree'),
    [
        ('train_dataloader', dict(train_dataloader=5)),
        ('custom_hooks', dict(custom_hooks=1e308)),
        ('default_scope', dict(default_scope=['mmseg'])),
        ('model', dict(model='PSPNet')),
        ('val_evaluator', dict(val_evaluator=3)),
        ('custom_imports', dict(custom_imports=['a'])),
        ('custom_imports.imports', dict(custom_imports=dict(imports=[5]))),
        (f'{DATASET}.pipeline', data(pipeline=dict(type='A'))),
        (f'{DATASET}.metainfo', data(metainfo=3)),
        (f'{DATASET}.metainfo.classes', data(metainfo=dict(classes=3))),
        (f'{DATASET}.pipeline[0].type', data(pipeline=[dict(type=5)])),
        (f'{HEAD}.num_classes', model(num_classes='19')),
        (f'{HEAD}.num_classes', model(num_classes=10**9)),
        (f'{HEAD}.num_classes', model(num_classes=10**6000)),
        (f'{DATASET}.pipeline', data(pipeline=[10**6000])),
        (f'{HEAD}.ignore_index', model(ignore_index=255.5)),
        (f'{HEAD}.loss_decode', model(loss_decode=5)),
        (f'{HEAD}.loss_decode.class_weight', model(loss_decode=dict(type='A', class_weight=[1, 'x']))),
        (
            'model.train_cfg.assigner.ignore_iof_thr',
            dict(model=dict(train_cfg=dict(assigner=dict(type='A', ignore_iof_thr={})))),
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else '',
)
def test_the_key_is_named(path: str, tree: Any) -> None:
    read = ReadConfig(tree)
    (one,) = read.wrong_types
    assert one.path == path
    assert len(str(one)) < 300
    assert read.written is tree, 'the config as it was given is kept'


def test_an_empty_type_is_none() -> None:
    tree = dict(train_dataloader=dict(dataset=dict(type='')))
    assert ReadConfig(tree).data == dict(train_dataloader=dict(dataset={}))
    assert [one.path for one in ReadConfig(tree).wrong_types] == [f'{DATASET}.type']


def test_what_is_right_is_left_as_it_is() -> None:
    class Built:
        """A hook, a transform or a data set that is built already."""

    built = Built()
    tree = dict(
        default_scope=None,
        custom_hooks=[built, dict(type='A')],
        train_dataloader=[dict(dataset=[dict(type=Built, pipeline=[built], metainfo=None)])],
        model=dict(type='M', decode_head=[dict(type='AHead', num_classes=None, loss_decode=[dict(type='B')])]),
        anything=dict(type=5, num_classes='many', x={1j}, y=frozenset([3]), z=(1, None)),
    )
    copy, found = separate_wrong_types(tree)
    assert found == []
    assert copy == tree


def test_positions_stay() -> None:
    copy, found = separate_wrong_types(data(pipeline=[dict(type='A'), dict(type=3, k=1), dict(type='B')]))
    assert copy['train_dataloader']['dataset']['pipeline'] == [dict(type='A'), dict(k=1), dict(type='B')]
    assert [one.path for one in found] == [f'{DATASET}.pipeline[1].type']


def test_numpy_becomes_plain() -> None:
    read = ReadConfig(model(num_classes=np.int64(19), loss_decode=dict(type='A', class_weight=np.ones(3))))
    head = read.data['model']['decode_head']
    assert type(head['num_classes']) is int
    assert head['loss_decode']['class_weight'] == [1.0, 1.0, 1.0]
    assert read.wrong_types == []


def test_a_change_keeps_what_else_is_wrong() -> None:
    read = ReadConfig({**model(num_classes='19'), 'custom_hooks': 5})
    after = change_config(read, [(f'{HEAD}.num_classes', 19)])
    assert [one.path for one in after.wrong_types] == ['custom_hooks']


def test_a_tree_of_a_thousand_floors_is_refused() -> None:
    tree: Any = {}
    for _ in range(1000):
        tree = dict(a=tree)
    with pytest.raises(CannotRun, match='100'):
        ReadConfig(tree)


def test_the_largest_number_of_classes_is_taken() -> None:
    assert ReadConfig(model(num_classes=MOST_CLASSES)).wrong_types == []


LOAD, PACK = dict(type='Load', backend='cv2'), dict(type='Pack')
GUARD, MAP = dict(type='Guard'), dict(type='Guard', label_map={255: 1})


@pytest.mark.parametrize(
    ('base', 'one', 'other', 'both'),
    [
        ([LOAD, PACK], [LOAD, MAP, PACK], [LOAD, PACK, GUARD], [LOAD, MAP, PACK, GUARD]),
        ([LOAD, PACK], [LOAD, PACK, GUARD], [LOAD, PACK, GUARD], [LOAD, PACK, GUARD]),
        ([LOAD, PACK], [dict(type='Load'), PACK], [LOAD, PACK, GUARD], [dict(type='Load'), PACK, GUARD]),
        (
            [LOAD],
            [{**LOAD, 'backend': 'pillow'}],
            [{**LOAD, 'reduce': True}],
            [dict(LOAD, backend='pillow', reduce=True)],
        ),
        ((LOAD, PACK), (PACK,), (LOAD, PACK, GUARD), (PACK, GUARD)),
        ({'a': 1, 'b': 2}, {'a': 1}, {'a': 1, 'b': 2, 'c': {}}, {'a': 1, 'c': {}}),
        ({}, {'imports': {'a': 1}}, {'imports': {'b': 2}}, {'imports': {'a': 1, 'b': 2}}),
    ],
)
def test_what_either_changed_is_changed(base: Any, one: Any, other: Any, both: Any) -> None:
    assert merge(base, one, other) == both
    assert merge(base, other, one) == both
    assert type(merge(base, one, other)) is type(base)


@pytest.mark.parametrize(
    ('base', 'one', 'other', 'path'),
    [
        ({'head': {'n': 1}}, {'head': {'n': 2}}, {'head': {'n': 3}}, 'head.n'),
        ({'steps': [LOAD]}, {'steps': [{**LOAD, 'backend': 'pillow'}]}, {'steps': []}, 'steps[0]'),
        ({}, {'imports': ['a']}, {'imports': ['b']}, 'imports'),
    ],
)
def test_a_contradiction_names_its_place(base: Any, one: Any, other: Any, path: str) -> None:
    with pytest.raises(Conflict) as raised:
        merge(base, one, other)
    assert str(raised.value) == path
