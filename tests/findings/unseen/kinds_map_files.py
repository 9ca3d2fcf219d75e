"""More kinds of causes in label maps: forms of files, labels that nobody wants, what is ignored, own scripts."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Dict, List, Sequence

import numpy as np
from drawn_scenes import VOID, each, photo, save, scene, scenes
from kinds_maps import FIVE, Kind
from PIL import Image
from situation import Build, masks, seg_config, seg_model, with_options

BLACK = [(0, 0, 0)] * 256
EIGHT = ['sky', 'tree']
MANY = [f'crop{n:02}' for n in range(25)]


def with_alpha(labels: Sequence[np.ndarray]) -> List[Image.Image]:
    return [Image.merge('LA', (Image.fromarray(a), Image.new('L', a.shape[::-1], VOID))) for a in labels]


def sparse(classes: Sequence[int], files: int, part: float) -> List[np.ndarray]:
    """``part`` of each file has labels, the rest is ignored."""
    drawn = []
    for number in range(files):
        label = scene(classes, number)
        label[int(part * label.shape[0]) :] = VOID
        drawn.append(label)
    return drawn


def scribbles(classes: int, files: int) -> List[np.ndarray]:
    """Some lines of each class, all else unlabelled: as people annotate who have little time."""
    drawn = []
    for number in range(files):
        label = np.full((60, 80), VOID, np.uint8)
        for value in range(classes):
            label[(7 * value + number) % 58, 5:50] = value
        drawn.append(label)
    return drawn


def with_photographs(maps: int, photographs: int, ending: str = '.png') -> Build:
    def build(root: Path) -> Any:
        save(root / 'labels', scenes(range(4), maps), stem='label{:03}')
        save(root / 'labels', [photo(n) for n in range(photographs)], stem='photo{:03}', ending=ending)
        return root / 'labels', dict(num_classes=4)

    return build


def intensities(root: Path) -> Any:
    """Slices of a CT, 16 bits, among the label maps."""
    save(root / 'labels', scenes(range(3), 8), stem='seg{:03}')
    random = np.random.default_rng(0)
    slices = [random.normal(1000, 300, (60, 80)).clip(0, 4000).astype(np.uint16) for _ in range(6)]
    save(root / 'labels', slices, stem='ct{:03}')
    return root / 'labels', dict(num_classes=3)


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
    'alpha, nothing said': Kind(
        'gray with alpha', ('MG120',), masks(with_alpha(scenes(range(4), 6)), None), ('alpha',), ('first channel',)
    ),
    'alpha, five classes': Kind(
        'gray with alpha',
        ('MG120',),
        masks(with_alpha(scenes([*range(5), VOID], 6)), 5),
        ('alpha',),
        ('first channel',),
    ),
    'alpha, one class too many': Kind(
        'gray with alpha, and six labels of five', ('MG120',), masks(with_alpha(scenes(range(6), 6)), 5), ('alpha',)
    ),
    'facebookresearch/detectron2#1760': Kind(
        'palette PNGs, right as indices; the reader converts them to gray',
        ('MG121',),
        masks(scenes([*range(4), VOID], 8), 4, files=dict(palette=BLACK)),
        ("convert('L')",),
    ),
    'black palette, nothing said': Kind(
        'a palette in which all is black',
        ('MG121',),
        masks(scenes(range(6), 8), None, files=dict(palette=BLACK)),
        ('black',),
    ),
    'black palette in a config': Kind(
        "mmseg's loader reads the indices: right for it, for others not",
        ('MG121',),
        seg_config(scenes(range(5), 8), FIVE, seg_model(5), files=dict(palette=BLACK)),
        ('black',),
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
    'twenty-one labels, five wanted': Kind(
        'the class list was cut',
        ('MG107',),
        seg_config(scenes(range(21), 12), FIVE, seg_model(5)),
        (),
        ('20: 255',),
        ('num_classes=21',),
    ),
    'eleven labels, three wanted, a folder': Kind(
        'three classes wanted of eleven', ('MG107',), masks(scenes(range(11), 9), 3), ('3', '10')
    ),
    'a label map that lacks values': Kind(
        '7 and 8 are mapped, 11 and 12 are not',
        ('MG107', 'MG212'),
        with_options(masks(scenes([7, 8, 11, 12], 8), 2), label_map=((7, 0), (8, 1))),
        ('11, 12', 'label_map'),
        ('*',),
    ),
    'a label map of many that lacks one': Kind(
        'of nine values eight are mapped',
        ('MG107', 'MG102'),
        with_options(masks(scenes([*range(10, 100, 10)], 8), 8), label_map=tuple((10 * n, n - 1) for n in range(1, 9))),
        ('90', 'label_map'),
        ('*',),
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
    'two of thirty, a folder': Kind(
        'two files are ignored altogether',
        ('MG128',),
        masks([*scenes(range(6), 28), *[np.full((60, 80), VOID, np.uint8)] * 2], 6),
        ('028.png', '029.png', 'divide'),
    ),
    '89 %, 14 of 19 classes gone': Kind(
        'train ids of something else: nearly all is ignored',
        ('MG128',),
        masks(sparse([0, 1, 2, 8, 10], 8, 0.11), 19),
        ('8', '14 of 19'),
    ),
    '92 %, 6 of 8 gone, a config': Kind(
        'two of eight classes are left',
        ('MG128',),
        seg_config(sparse([0, 3], 8, 0.08), [f'c{n}' for n in range(8)], seg_model(8)),
        ('6 of 8',),
    ),
    'a label map that drops nearly all': Kind(
        'a map of two of the values, all others ignored',
        ('MG128',),
        with_options(
            masks([scene([0, 0, 0, 0, 0, 0, 0, 0, 0, 3, 8], n, regions=60) for n in range(8)], 6),
            label_map=((0, VOID), (3, 0), (8, 1)),
        ),
        ('4 of 6',),
    ),
    'near: scribbles': Kind('little is labelled, and every class is there', ('MG100',), masks(scribbles(6, 8), 6)),
    'near: much void, few classes missing': Kind(
        'a third is void', ('MG100',), masks(sparse([0, 1, 2, 3, 4, 5], 8, 0.65), 8)
    ),
}

SCRIPTS: Dict[str, Kind] = {
    'open-mmlab/mmsegmentation#3755': Kind(
        'right labels; a script multiplies them in 8 bits',
        ('MG100',),
        seg_config(scenes(range(25), 9), MANY, seg_model(25)),
        ('uint8', 'int64'),
    ),
    'a folder of 19 classes': Kind(
        'the same', ('MG100',), masks([scene(range(19), n) for n in range(6)], 19), ('int64',)
    ),
    'a folder of 150 classes': Kind(
        'the same', ('MG100',), masks([scene(range(k % 5, 150, 5), k) for k in range(10)], 150), ('int64',)
    ),
    'near: four classes': Kind('4 x 4 fits 8 bits', ('MG100',), masks(scenes(range(4), 6), 4), (), (), ('int64',)),
}

IMAGES: Dict[str, Kind] = {
    'photographs among the maps': Kind(
        'four of sixteen files are photographs', ('MG131',), with_photographs(12, 4), ('photo000.png', '4')
    ),
    'half of them': Kind('images and labels in one folder', ('MG131',), with_photographs(10, 10), ('photo',)),
    'one photograph': Kind('one of thirty', ('MG131',), with_photographs(29, 1), ('photo000.png',)),
    'slices of a CT': Kind('intensities of 16 bits in the label folder', ('MG131',), intensities, ('ct00',)),
    'photographs as JPEG': Kind(
        'beside the maps, reported apart by their ending', ('MG131',), with_photographs(12, 12, '.jpg')
    ),
    'near: colours': Kind(
        'drawn in colours, one of them in gray',
        ('MG120',),
        masks(
            each(
                scenes(range(4), 8), lambda x: np.array([(0, 0, 0), (255, 0, 0), (0, 255, 0), (0, 0, 255)], np.uint8)[x]
            ),
            4,
        ),
    ),
}

ORDER: Dict[str, Kind] = {
    'open-mmlab/mmsegmentation#2500': Kind(
        'some classes of ADE20K: which comes first, the shift or the map, depends on the version',
        ('MG100',),
        of_ade(['sky', 'tree', 'person', 'car']),
        ('reduce_zero_label', 'label_map', '1.0.0'),
    ),
    'two classes, in another order': Kind(
        'the same', ('MG100',), of_ade(['car', 'wall']), ('reduce_zero_label', 'label_map')
    ),
    'near: all classes': Kind(
        'no map is made', ('MG100',), seg_config(scenes(range(1, 6), 8), MANY[:5], seg_model(5), reduce_zero_label=True)
    ),
}

KINDS: Dict[str, Kind] = {
    f'{row}: {name}': kind
    for row, table in dict(
        forms=FORMS, wanted=WANTED, ignored=IGNORED, scripts=SCRIPTS, images=IMAGES, order=ORDER
    ).items()
    for name, kind in table.items()
}
