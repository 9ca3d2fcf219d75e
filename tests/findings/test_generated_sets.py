"""Data sets drawn for one cause each, and clean ones of every kind: files in, the right code first, no wrong one."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Callable, Dict, List, Set, Tuple

import numpy as np
import pytest
from PIL import Image
from report_files import (
    SIZE,
    blocks,
    coco_dataset,
    scanned,
    write_coco,
    write_det_config,
    write_labels,
    write_seg_config,
)

from mmguard.findings import Finding

Make = Callable[[Path], List[Finding]]
VOID = 255


def folder(*labels: np.ndarray, n: int, **options: Any) -> Make:
    files = {key: options.pop(key) for key in ('mode', 'ending', 'stem') if key in options}

    def make(root: Path) -> List[Finding]:
        return scanned(write_labels(root / 'labels', *labels, **files), num_classes=n, **options)

    return make


def many(*rare: np.ndarray, files: int = 120) -> List[np.ndarray]:
    """Many clean files of two classes, and some others."""
    return [blocks(0, 1)] * (files - len(rare)) + list(rare)


def speck(value: int) -> np.ndarray:
    label = blocks(0, 1)
    label[3, 3:6] = value
    return label


def blurred(low: int, high: int) -> np.ndarray:
    """Two labels, resized with averaging."""
    small = Image.fromarray(np.where(blocks(0, 1) > 0, high, low).astype(np.uint8))
    return np.asarray(small.resize((SIZE + 13, SIZE + 13), Image.BILINEAR))


def with_images(root: Path, label: np.ndarray, image_size: Tuple[int, int], names: Tuple[str, ...] = ('0000',)) -> Any:
    write_labels(root / 'labels', label)
    (root / 'images').mkdir()
    for name in names:
        Image.new('RGB', image_size).save(root / 'images' / f'{name}.jpg')
    return scanned(root / 'labels', num_classes=2, images=str(root / 'images'))


def swapped(root: Path) -> List[Finding]:
    write_labels(root / 'labels', blocks(0, 1), blocks(0, 1))
    (root / 'images').mkdir()
    for number in range(2):
        photo = np.random.default_rng(number).integers(0, 256, (SIZE, SIZE, 3)).astype(np.uint8)
        Image.fromarray(photo).save(root / 'images' / f'{number:04}.jpg')
    return scanned(root / 'images', num_classes=2, images=str(root / 'labels'))


def truncated(root: Path) -> List[Finding]:
    path = write_labels(root / 'labels', blocks(0, 1), blocks(0, 1)) / '0001.png'
    path.write_bytes(path.read_bytes()[:70])
    return scanned(root / 'labels', num_classes=2)


NEVER = (12, 26, 29, 30, 45, 66, 68, 69, 71, 83)
COCO_IDS = [i for i in range(1, 91) if i not in NEVER]
RGB = np.stack([blocks(0, 128), blocks(0, 0), blocks(0, 0)], -1)

SETS: Dict[str, Tuple[str, Make]] = {
    'labelIds': ('MG101', folder(blocks(*range(34)), n=19)),
    'one class more': ('MG102', folder(blocks(*range(12)), n=11)),
    '0 and 255, ignored': ('MG103', folder(blocks(0, VOID), n=2)),
    '0 and 255, not ignored': ('MG103', folder(blocks(0, VOID), n=2, ignore_index=-100)),
    '0 and 255, reduced': ('MG103', folder(blocks(0, VOID), n=2, reduce_zero_label=True)),
    'void under another ignore_index': ('MG104', folder(blocks(0, 1, 2, VOID), n=3, ignore_index=0)),
    'noise': ('MG106', folder(np.random.default_rng(0).integers(0, 256, (SIZE, SIZE)).astype(np.uint8), n=2)),
    'one value of nobody': ('MG107', folder(blocks(0, 1, 2, 77), n=3)),
    'counts from 1': ('MG115', folder(blocks(1, 2, 3, 4), n=4)),
    'gap': ('MG116', folder(blocks(0, 1, 3, 4), n=4)),
    'coco ids': ('MG117', folder(blocks(*COCO_IDS, size=96), n=80)),
    'brats': ('MG118', folder(blocks(0, 1, 2, 4), n=4)),
    'brats, three': ('MG118', folder(blocks(0, 1, 2, 4), n=3)),
    'ade': ('MG119', folder(blocks(*range(151), size=128), n=150)),
    'colours': ('MG120', folder(RGB, n=2)),
    'alpha': ('MG120', folder(blocks(0, 1), n=2, mode='LA')),
    '16 bits': ('MG122', folder(blocks(0, 1, 261, dtype=np.uint16), n=6)),
    'fractions': ('MG123', folder((blocks(0, 1, 2) / 255).astype(np.float32), n=3, ending='.tiff')),
    'reduced, 0 is a class': ('MG124', folder(blocks(0, 1, 2), n=3, reduce_zero_label=True)),
    'gray levels': ('MG125', folder(blocks(0, 85, 170, VOID), n=4)),
    'a slip': ('MG127', folder(*many(speck(77)), n=2)),
    'a slip next to the classes': ('MG127', folder(*many(speck(2), files=200), n=2)),
    'void files': ('MG128', folder(blocks(0, 1), np.full((SIZE, SIZE), VOID, np.uint8), n=2)),
    'no label file': ('MG129', lambda root: with_images(root, blocks(0, 1), (SIZE, SIZE), ('0000', '0001'))),
    'other size': ('MG130', lambda root: with_images(root, blocks(0, 1), (96, 96))),
    'swapped': ('MG131', swapped),
    'truncated': ('MG132', truncated),
    'void minus 1': ('MG133', folder(blocks(0, 1, 2, 254), n=5)),
    'one class only': ('MG135', folder(*[blocks(0)] * 8, n=3)),
    'jpeg': ('MG136', folder(blocks(0, VOID)[:, 3:], n=2, ending='.jpg')),
    'averaged': ('MG136', folder(blurred(0, VOID), n=2)),
    'averaged with void': ('MG136', folder(blurred(0, VOID), blurred(0, 1), n=2)),
}


@pytest.mark.parametrize('name', sorted(SETS))
def test_its_code_comes_first(name: str, tmp_path: Path) -> None:
    code, make = SETS[name]
    findings = make(tmp_path)
    assert findings[0].code == code, [str(finding) for finding in findings]


CLEAN: Dict[str, Make] = {
    'gray': folder(*[blocks(*range(19), VOID)] * 3, n=19),
    'gray, 100 files of 2 classes': folder(*many(), n=2),
    'palette': folder(blocks(0, 1, 2, 3, VOID), n=4, mode='P'),
    '1 bit': folder(blocks(0, 1).astype(bool), n=2),
    'some classes': folder(blocks(0, 7, 12), blocks(3, 4), n=19),
    'camvid': folder(blocks(*range(12)), n=11, ignore_index=11),
    'reduced': folder(blocks(*range(151), size=128), n=150, reduce_zero_label=True),
    'mapped': folder(blocks(7, 8), n=2, label_map=((7, 0), (8, 1))),
    'with images': lambda root: with_images(root, blocks(0, 1), (SIZE, SIZE)),
    'config': lambda root: scanned(write_seg_config(root, [blocks(0, 1, 2, VOID)] * 2, 'abc', {}), splits=('train',)),
    'config, palette': lambda root: scanned(
        write_seg_config(root, [blocks(0, 1, 2)] * 2, 'abc', {}, mode='P'), splits=('train',)
    ),
    'json': lambda root: scanned(write_coco(root / 'a.json', {0: 'a', 1: 'b'}), num_classes=2),
    'json of any ids': lambda root: scanned(write_coco(root / 'a.json', {3: 'a', 9: 'b'}), framework='mmdet'),
    'detection config': lambda root: _detection(root, ['a', 'b'], 2),
    'detection config, one of its classes': lambda root: _detection(root, ['b'], 1),
}


def _detection(root: Path, classes: List[str], heads: int) -> List[Finding]:
    file = write_coco(root / 'a.json', {3: 'a', 9: 'b'})
    model = dict(type='RetinaNet', bbox_head=dict(type='RetinaHead', num_classes=heads))
    return scanned(write_det_config(root, model, coco_dataset(root, file, classes)), splits=('train',))


#: True of them, though nobody need act on it.
REMARKS: Dict[str, Set[str]] = {'detection config, one of its classes': {'MG154'}}


@pytest.mark.parametrize('name', sorted(CLEAN))
def test_a_clean_set_gets_the_verdict_alone(name: str, tmp_path: Path) -> None:
    findings = CLEAN[name](tmp_path)
    codes = {finding.code for finding in findings}
    assert codes == {'MG100'} | REMARKS.get(name, set()), [str(finding) for finding in findings]
