"""Where class weights may come from, and what is refused."""

from __future__ import annotations

import json
import pickle
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from loss_cases import CLASS_WEIGHT, CROSS_ENTROPY, scores_and_labels

from mmguard.losses import GuardedCrossEntropyLoss
from mmguard.losses.class_weight import load_class_weight


@pytest.mark.parametrize(
    'weights',
    [
        CLASS_WEIGHT,
        tuple(CLASS_WEIGHT),
        np.array(CLASS_WEIGHT),
        torch.tensor(CLASS_WEIGHT, dtype=torch.float64),
        [np.float64(w) for w in CLASS_WEIGHT],
    ],
    ids=['list', 'tuple', 'array', 'tensor', 'list of numpy numbers'],
)
def test_values(weights: Any) -> None:
    assert load_class_weight(weights) == CLASS_WEIGHT


def test_numbers_of_other_types() -> None:
    assert load_class_weight([1, np.int64(2), np.float32(0.5)]) == [1.0, 2.0, 0.5]
    assert load_class_weight(torch.tensor([1, 2])) == [1.0, 2.0]
    assert load_class_weight(None) is None


@pytest.mark.parametrize('as_path', [False, True])
@pytest.mark.parametrize('suffix', ['.npy', '.json', '.yaml', '.yml', '.JSON'])
def test_files(tmp_path: Path, suffix: str, as_path: bool) -> None:
    path = tmp_path / f'weights{suffix}'
    if suffix == '.npy':
        np.save(path, np.array(CLASS_WEIGHT))
    else:
        path.write_text(json.dumps(CLASS_WEIGHT))
    guarded = GuardedCrossEntropyLoss(class_weight=path if as_path else str(path))
    assert guarded.class_weight == CLASS_WEIGHT
    scores, label = scores_and_labels((12, 4))
    expected = CROSS_ENTROPY['mmseg'][0](class_weight=CLASS_WEIGHT)(scores, label)
    torch.testing.assert_close(guarded(scores, label), expected)


class Trap:
    """Would write a file if it were read."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return Path.touch, (self.path,)


@pytest.mark.parametrize('name', ['weights.pkl', 'weights.pickle', 'weights.npy', 'weights.json', 'weights.yaml'])
def test_a_pickle_is_never_read(tmp_path: Path, name: str) -> None:
    trap = tmp_path / 'sprung'
    (tmp_path / name).write_bytes(pickle.dumps(Trap(trap)))
    with pytest.raises(ValueError, match=re.escape(name)):
        GuardedCrossEntropyLoss(class_weight=str(tmp_path / name))
    assert not trap.exists()


def test_an_array_of_objects_is_refused(tmp_path: Path) -> None:
    path = tmp_path / 'weights.npy'
    np.save(path, np.array([Trap(tmp_path / 'sprung'), None]), allow_pickle=True)
    with pytest.raises(ValueError, match=r'weights\.npy'):
        load_class_weight(str(path))
    assert not (tmp_path / 'sprung').exists()


@pytest.mark.parametrize(
    'text', ['!!python/object/apply:os.mkdir [sprung]', '!!python/tuple [1.0, 2.0]', '- [', '!!python/name:os.mkdir']
)
def test_yaml_is_read_without_objects(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / 'weights.yaml').write_text(text)
    with pytest.raises(ValueError, match=r'weights\.yaml'):
        load_class_weight('weights.yaml')
    assert not (tmp_path / 'sprung').exists()


@pytest.mark.parametrize(
    ('name', 'content'), [('a.npy', b''), ('a.npy', b'\x93NUMPY'), ('a.json', b'{'), ('a.json', b'')]
)
def test_broken_files_are_named(tmp_path: Path, name: str, content: bytes) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ValueError, match=name):
        load_class_weight(str(tmp_path / name))


def test_other_files(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"'\.txt'"):
        load_class_weight('weights.txt')
    with pytest.raises(FileNotFoundError):
        load_class_weight(str(tmp_path / 'missing.json'))
    (tmp_path / 'a.json').write_text('{"road": 1.0}')
    with pytest.raises(TypeError, match=r'a\.json.*\bdict'):
        load_class_weight(str(tmp_path / 'a.json'))


@pytest.mark.parametrize('weights', [1.0, 3, {0: 1.0}, torch.tensor(2.0)])
def test_something_else_than_a_list(weights: Any) -> None:
    with pytest.raises(TypeError, match='class_weight'):
        GuardedCrossEntropyLoss(class_weight=weights)


@pytest.mark.parametrize(
    ('weights', 'wrong'),
    [
        ([1.0, float('nan')], r'\{1: nan\}'),
        ([float('inf')], r'\{0: inf\}'),
        ([1.0, None, 'a'], r"\{1: None, 2: 'a'\}"),
        ([True, 1.0], r'\{0: True\}'),
        ([[1.0, 2.0]], r'\{0: \[1\.0, 2\.0\]\}'),
        (np.ones((1, 2)), r'\{0: \[1\.0, 1\.0\]\}'),
    ],
)
def test_numbers_that_cannot_weigh(weights: Any, wrong: str) -> None:
    with pytest.raises(ValueError, match=wrong):
        GuardedCrossEntropyLoss(class_weight=weights)


@pytest.mark.parametrize('scope', CROSS_ENTROPY)
@pytest.mark.parametrize('mode', [{}, {'use_sigmoid': True}])
def test_wrong_length(scope: str, mode: dict) -> None:
    scores, label = scores_and_labels((12, 4))
    with pytest.raises(ValueError, match=r'class_weight.*\(3\).*\b4\b'):
        CROSS_ENTROPY[scope][1](class_weight=[1.0, 2.0, 3.0], **mode)(scores, label)
