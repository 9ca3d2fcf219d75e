"""Class weights below the table of a scan, in its JSON and of its result, without void and invalid pixels."""

from __future__ import annotations

import ast
import json
from pathlib import Path
from typing import Any, Dict, List

import numpy as np
import pytest
from label_files import write

import mmguard
from mmguard.cli import main

Image = pytest.importorskip('PIL.Image')
pytest.importorskip('rich')

CLASSES, VOID, ABSENT = 6, 255, 4
FORMULAS = ('enet', 'median_frequency')


def reference(labels: List[np.ndarray]) -> Dict[str, np.ndarray]:
    """Both formulas, of all pixels in 0..CLASSES-1."""
    counts = np.stack([np.bincount(label[label < CLASSES].astype(int), minlength=CLASSES) for label in labels])
    pixels, whole = counts.sum(0), ((counts > 0) * counts.sum(1, keepdims=True)).sum(0)
    shares = pixels / np.maximum(whole, 1)
    weights = [1 / np.log(1.02 + pixels / pixels.sum()), np.median(shares[shares > 0]) / np.maximum(shares, 1e-9)]
    return {name: np.where(pixels > 0, weight, 1) for name, weight in zip(FORMULAS, weights)}


@pytest.fixture(scope='module')
def labels() -> List[np.ndarray]:
    """Maps of different sizes and classes; some have void and invalid pixels, one has nothing else, none has ABSENT."""
    random = np.random.default_rng(0)
    found = []
    for number in range(30):
        values = random.choice([0, 1, 2, 3, 5], size=1 + number % 4, replace=False).tolist()
        values += [VOID] * (number % 3 == 0) + [9, 200] * (number % 5 == 0)
        found.append(random.choice(values, size=(8 + number, 16)).astype(np.uint8))
    return [*found, np.full((9, 9), VOID, np.uint8)]


@pytest.fixture(scope='module')
def folder(labels: List[np.ndarray], tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp('weights') / 'labels'
    for number, label in enumerate(labels):
        write(root / f'{number}.png', label)
    return root


@pytest.mark.parametrize('processes', [1, 2])
def test_weights_equal_the_reference(labels: List[np.ndarray], folder: Path, processes: int) -> None:
    found = mmguard.scan(folder, num_classes=CLASSES, processes=processes)
    for formula, expected in reference(labels).items():
        np.testing.assert_allclose(found.class_weight(formula), expected, rtol=1e-12)
    assert found.class_weight() == found.class_weight('enet')
    assert found.class_weight()[ABSENT] == 1


def test_the_line_to_paste_and_the_json_have_the_same_weights(
    labels: List[np.ndarray], folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    main(['scan', str(folder), '--num-classes', str(CLASSES), '--processes', '1', '--json', str(tmp_path / 'o.json')])
    lines = [line for line in capsys.readouterr().out.splitlines() if line.startswith('class_weight=')]
    written = json.loads((tmp_path / 'o.json').read_text())['datasets'][0]['class_weight']
    assert len(lines) == len(written) == len(FORMULAS)
    for line, (formula, expected) in zip(lines, reference(labels).items()):
        pasted = ast.parse(f'dict({line.partition("#")[0]})', mode='eval').body
        assert isinstance(pasted, ast.Call)
        np.testing.assert_allclose(ast.literal_eval(pasted.keywords[0].value), expected, rtol=1e-3)
        np.testing.assert_allclose(written[formula], expected, rtol=1e-12)


def test_ignored_class_has_no_share(labels: List[np.ndarray], folder: Path) -> None:
    weights = mmguard.scan(folder, num_classes=CLASSES, ignore_index=0, processes=1).class_weight()
    kept = [np.where(label == 0, VOID, label) for label in labels]
    np.testing.assert_allclose(weights, reference(kept)['enet'], rtol=1e-12)


@pytest.mark.parametrize(
    'options',
    [dict(), dict(num_classes=CLASSES, label_map=dict.fromkeys(range(CLASSES), VOID))],
    ids=['unknown classes', 'no valid pixel'],
)
def test_no_weights_without_classes(folder: Path, options: Dict[str, Any], capsys: pytest.CaptureFixture) -> None:
    found = mmguard.scan(folder, processes=1, **options)
    assert 'class_weight=' not in found.text
    assert found.record['datasets'][0]['class_weight'] == {}
    with pytest.raises(ValueError, match='none'):
        found.class_weight()


def test_unknown_formula_and_data_set(folder: Path) -> None:
    found = mmguard.scan(folder, num_classes=CLASSES, processes=1)
    assert found.class_weight(dataset=found.record['datasets'][0]['name']) == found.class_weight()
    with pytest.raises(ValueError, match='median_frequency'):
        found.class_weight('inverse')
    with pytest.raises(ValueError, match='labels'):
        found.class_weight(dataset='other')
