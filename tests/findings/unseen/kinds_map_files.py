"""More kinds of causes in label maps: forms of files, labels that nobody wants, what is ignored, own scripts."""

from __future__ import annotations

from typing import Any, Dict, List, Sequence

import numpy as np
from drawn_scenes import VOID, scene, scenes
from kinds_maps import FIVE, Kind
from PIL import Image
from situation import Build, masks, seg_config, seg_model, with_options

BLACK = [(0, 0, 0)] * 256
EIGHT = ['sky', 'tree']
MANY = [f'crop{n:02}' for n in range(25)]


def with_alpha(labels: Sequence[np.ndarray]) -> List[Image.Image]:
    return [Image.merge('LA', (Image.fromarray(a), Image.new('L', a.shape[::-1], VOID))) for a in labels]


def of_ade(names: Sequence[str], **settings: Any) -> Build:
    """A config that trains some classes of ADE20K: the data set makes a label map, and shifts."""
    ids = [1, 2, 3, 5, 7, 12, 13, 21, 0, 40, 120]
    drawn = [scene([*ids, 22 + 9 * n], n) for n in range(8)]
    return seg_config(drawn, names, seg_model(len(names)), type='ADE20KDataset', **settings)


FORMS: Dict[str, Kind] = {
    'CompVis/taming-transformers#8': Kind(
        'gray with alpha, 182 ids',
        ('MG120',),
        masks(with_alpha(scenes([0, 3, 40, 90, 181], 6)), 182),
        ('alpha',),
        ('first channel',),
    ),
    'facebookresearch/detectron2#1760': Kind(
        'palette PNGs, right as indices; the reader converts them to gray',
        ('MG121',),
        masks(scenes([*range(4), VOID], 8), 4, files=dict(palette=BLACK)),
        ("convert('L')",),
    ),
    'near: a palette of colours': Kind(
        'right as indices',
        ('MG100',),
        masks(scenes(range(4), 8), 4, files=dict(palette=[(0, 0, 0), (128, 0, 0), (0, 128, 0), (128, 128, 0)])),
        ('cv2.imread', "convert('L')"),
    ),
}

WANTED: Dict[str, Kind] = {
    'open-mmlab/mmsegmentation#566': Kind(
        'eight labels in the files, two classes wanted',
        ('MG107',),
        seg_config(scenes(range(8), 9), EIGHT, seg_model(2)),
        (),
        ('{2: 255, 3: 255, 4: 255, 5: 255, 6: 255, 7: 255}', 'train'),
        ('num_classes=8',),
    ),
    'all others are ignored': Kind(
        'the map says so of all others: nothing is invalid',
        ('MG100',),
        with_options(masks(scenes([7, 8, 11, 12], 8), 2), label_map=((7, 0), (8, 1), ('*', VOID))),
    ),
    'near: labels that go on, all of them named': Kind(
        'eight classes listed, the head has two',
        ('MG202', 'MG201', 'MG108', 'MG107', 'MG215'),
        seg_config(scenes(range(8), 9), [f'c{n}' for n in range(8)], seg_model(2)),
        (),
        ('num_classes=8',),
    ),
}

IGNORED: Dict[str, Kind] = {
    'open-mmlab/mmsegmentation#578': Kind(
        'one file of nine is ignored altogether',
        ('MG128',),
        seg_config([*scenes([*range(4), VOID], 8), np.full((60, 80), VOID, np.uint8)], FIVE[:4], seg_model(4)),
        ('008.png', '1 file of 9'),
        ('loss_decode',),
    ),
}

SCRIPTS: Dict[str, Kind] = {
    'open-mmlab/mmsegmentation#3755': Kind(
        'right labels; a script multiplies them in 8 bits',
        ('MG100',),
        seg_config(scenes(range(25), 9), MANY, seg_model(25)),
        ('uint8', 'int64'),
    ),
}


ORDER: Dict[str, Kind] = {
    'open-mmlab/mmsegmentation#2500': Kind(
        'some classes of ADE20K: which comes first, the shift or the map, depends on the version',
        ('MG100',),
        of_ade(['sky', 'tree', 'person', 'car']),
        ('reduce_zero_label', 'label_map', '1.0.0'),
    ),
}

KINDS: Dict[str, Kind] = {
    f'{row}: {name}': kind
    for row, table in dict(forms=FORMS, wanted=WANTED, ignored=IGNORED, scripts=SCRIPTS, order=ORDER).items()
    for name, kind in table.items()
}
