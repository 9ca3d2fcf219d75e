"""Pictures of boxes: outlines and wrong edges at their places, in every format, and no file can stop the page."""

from __future__ import annotations

import base64
import io
import json
import re
from pathlib import Path
from typing import Any, Callable, Dict, List, Sequence, Tuple

import coco_cases
import numpy as np
import pytest
from coco_cases import ann, write
from PIL import Image
from put_file import put
from voc_cases import SIZE, obj, xml

import mmguard
from mmguard.cli import main
from mmguard.commands.page.pictures import EDGE, LONGEST, LOUD, MOST_BYTES, OUTSIDE, SOUND, Picture, draw_boxes_panel
from mmguard.facts.labels import BoxedImage, DrawnBox

Box = Tuple[float, float, float, float]
GRAY = 100


class Drawn:
    """A picture of the page, asked at places of the image.

    Args:
        margins: What is shown left of the image, above, right and below, in pixels of the image.
    """

    def __init__(self, picture: Picture, width: int, height: int, margins: Sequence[float] = (0, 0, 0, 0)) -> None:
        with Image.open(io.BytesIO(base64.b64decode(picture.data.partition(',')[2]))) as image:
            self.pixels = np.asarray(image.convert('RGB')).astype(int)
        self.left, self.top, right, bottom = margins
        whole = self.left + width + right, self.top + height + bottom
        self.scale = min(LONGEST / max(whole), 8)
        assert self.pixels.shape[:2] == (round(whole[1] * self.scale), round(whole[0] * self.scale))

    def has(self, color: Sequence[int], x: float, y: float, within: int = 2) -> bool:
        """Return True if a color is at most ``within`` pixels of the picture away from a place."""
        row, column = round((y + self.top) * self.scale), round((x + self.left) * self.scale)
        near = self.pixels[max(row - within, 0) : row + within + 1, max(column - within, 0) : column + within + 1]
        return bool((np.abs(near - np.array(color)).max(axis=2) < 60).any())


def shown(page: str) -> List[Picture]:
    return [Picture(data, 0, 0) for data in re.findall(r'<image href="(data:image/[^"]+)"', page)]


def photo(path: Path, width: int, height: int) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new('RGB', (width, height), (GRAY, GRAY, GRAY)).save(path)


def coco(root: Path, width: int, height: int, images: Sequence[Sequence[Box]]) -> Tuple[Path, Dict[str, Any]]:
    """Write corners as x, y, width, height."""
    annotations: List[Any] = []
    for number, boxes in enumerate(images):
        photo(root / 'images' / f'{number}.png', width, height)
        for left, top, right, bottom in boxes:
            box = left, top, right - left, bottom - top
            annotations.append(ann(len(annotations), number, box=box, area=9))
    record = coco_cases.coco(annotations, len(images), ['ship'], size=(width, height), ending='png')
    return Path(write(root, record)), dict(images=str(root / 'images'))


def voc(root: Path, width: int, height: int, images: Sequence[Sequence[Box]]) -> Tuple[Path, Dict[str, Any]]:
    """Write corners that count from 1."""
    for number, boxes in enumerate(images):
        photo(root / 'JPEGImages' / f'{number}.jpg', width, height)
        objects = (obj('ship', [corner + 1 for corner in box]) for box in boxes)
        put(root / 'Annotations' / f'{number}.xml', xml(*objects, size=SIZE.format(width, height)))
    return root, {}


def yolo(root: Path, width: int, height: int, images: Sequence[Sequence[Box]]) -> Tuple[Path, Dict[str, Any]]:
    """Write centres and sizes as fractions."""
    for number, boxes in enumerate(images):
        photo(root / 'images' / f'{number}.png', width, height)
        rows = [
            f'0 {(left + right) / 2 / width} {(top + bottom) / 2 / height} {(right - left) / width} '
            f'{(bottom - top) / height}\n'
            for left, top, right, bottom in boxes
        ]
        put(root / 'labels' / f'{number}.txt', ''.join(rows))
    return put(root / 'data.yaml', 'train: images\nval: images\nnames: [ship]\n'), {}


Write = Callable[..., Tuple[Path, Dict[str, Any]]]


def draw(
    write: Write, root: Path, width: int, height: int, images: Sequence[Sequence[Box]], number: int
) -> List[Picture]:
    target, options = write(root, width, height, images)
    return shown(mmguard.scan(target, processes=1, **options).show(number))


@pytest.mark.parametrize('write', [coco, voc, yolo])
def test_a_box_over_the_edge(write: Write, tmp_path: Path) -> None:
    images = [[(10, 10, 50, 40)], [(12, 20, 40, 60), (100, 30, 180, 70)], [(20, 20, 60, 60)]]
    (picture,) = draw(write, tmp_path / 'data', 160, 120, images, 5)
    drawn = Drawn(picture, 160, 120, (0, 0, 20 + 0.06 * 160, 0))
    assert drawn.has(EDGE, 180, 50)  # the right edge is outside
    assert not drawn.has(EDGE, 100, 50, within=5)
    assert drawn.has(LOUD, 100, 50)
    assert drawn.has(LOUD, 140, 30)
    assert drawn.has(SOUND, 12, 40)
    assert not drawn.has(LOUD, 12, 40)
    assert drawn.has(OUTSIDE, 186, 10)
    assert drawn.has((GRAY, GRAY, GRAY), 75, 100)  # the image itself, a fifth darker


@pytest.mark.parametrize('write', [coco, voc, yolo])
def test_a_box_without_width(write: Write, tmp_path: Path) -> None:
    images = [[(10, 10, 50, 40)], [(70, 20, 70, 60), (5, 5, 30, 40)], [(20, 20, 60, 60)]]
    (picture,) = draw(write, tmp_path / 'data', 90, 90, images, 5)
    drawn = Drawn(picture, 90, 90)
    assert drawn.has(EDGE, 70, 40)
    assert drawn.has(SOUND, 5, 20)
    assert not drawn.has(EDGE, 5, 20, within=5)


@pytest.mark.parametrize('write', [coco, voc])
def test_a_box_whose_top_is_below_its_bottom(write: Write, tmp_path: Path) -> None:
    images = [[(40, 10, 150, 60)], [(40, 150, 120, 30)], [(20, 20, 60, 60)]]
    (picture,) = draw(write, tmp_path / 'data', 200, 200, images, 5)
    drawn = Drawn(picture, 200, 200)
    assert drawn.has(EDGE, 80, 30)
    assert drawn.has(EDGE, 80, 150)
    assert drawn.has(LOUD, 40, 90)
    assert not drawn.has(EDGE, 120, 90, within=5)


@pytest.mark.parametrize('write', [coco, voc])
def test_a_box_outside(write: Write, tmp_path: Path) -> None:
    images = [[(10, 10, 50, 40)] * 3, [(-60, -45, -20, -25), (10, 10, 60, 60)]]
    (picture,) = draw(write, tmp_path / 'data', 300, 100, images, 5)
    drawn = Drawn(picture, 300, 100, (60 + 18, 0.4 * 100 + 6, 0, 0))
    assert drawn.has(EDGE, -60, -35)
    assert drawn.has(EDGE, -40, -25)
    assert drawn.has(SOUND, 10, 30)


def test_an_invalid_label_has_no_wrong_edge(tmp_path: Path) -> None:
    target, _ = yolo(tmp_path, 96, 96, [[(10, 10, 60, 40)]] * 9)
    (tmp_path / 'labels' / '5.txt').write_text('4 0.5 0.5 0.5 0.25\n')
    (picture,) = shown(mmguard.scan(target, processes=1).show(2))
    drawn = Drawn(picture, 96, 96)
    assert drawn.has(LOUD, 24, 48)
    assert not any(drawn.has(EDGE, x, y, 5) for x, y in ((24, 48), (72, 48), (48, 36), (48, 60)))


def test_the_command_draws_the_worst_and_says_of_how_many(tmp_path: Path) -> None:
    faulty = [[(5, 5, 5, 30)] * (1 + number % 3) for number in range(30)]
    target, options = coco(tmp_path, 64, 64, [*faulty, *[[(5, 5, 30, 30)]] * 9])
    page = tmp_path / 'page.html'
    words = ['--images', options['images'], '--html', str(page), '--json', str(tmp_path / 'out.json')]
    assert main(['scan', str(target), '--processes', '1', *words]) == 1
    html = page.read_text(encoding='utf-8')
    assert len(shown(html)) == 12
    assert re.search(r'20 of 30 files', html)
    links, places = set(re.findall(r'href="#(file-[\d-]+)"', html)), set(re.findall(r'id="(file-[\d-]+)"', html))
    assert len(links) == 12
    assert links == places
    assert len(json.loads((tmp_path / 'out.json').read_text())['datasets'][0]['facts']['offending']) == 30


def test_clean_boxes_are_not_drawn(tmp_path: Path) -> None:
    target, options = coco(tmp_path, 64, 64, [[(5, 5, 30, 30)]] * 9)
    assert shown(mmguard.scan(target, processes=1, **options).show(9)) == []


# ---- images and numbers that cannot be trusted


@pytest.mark.parametrize('content', [None, b'not an image'], ids=['missing', 'text'])
def test_without_its_image_boxes_are_drawn_on_the_stated_size(content: Any, tmp_path: Path) -> None:
    path = tmp_path / 'a.png'
    if content is not None:
        path.write_bytes(content)
    box = DrawnBox((10, 10, 10, 60), 'box_no_area')
    panel = draw_boxes_panel(BoxedImage('a.png', str(path), (80, 120), (box,), 1, (('box_no_area', 1),)))
    assert panel.picture is not None
    drawn = Drawn(panel.picture, 120, 80)
    assert drawn.has(EDGE, 10, 30)
    assert drawn.has((250, 250, 250), 60, 40)
    assert panel.keys[-1][1].startswith('without the image: ')
    unknown = draw_boxes_panel(BoxedImage('a.png', str(path), (float('-inf'), float('-inf')), (box,), 1, ()))
    assert unknown.picture is None
    assert unknown.why


def test_an_image_of_another_size_than_stated_shows_the_boxes_in_its_pixels(tmp_path: Path) -> None:
    photo(tmp_path / 'a.png', 100, 50)
    box = DrawnBox((60, 10, 140, 40), 'over_edge')
    panel = draw_boxes_panel(BoxedImage('a.png', str(tmp_path / 'a.png'), (100, 200), (box,), 1, (('over_edge', 1),)))
    assert panel.picture is not None
    drawn = Drawn(panel.picture, 100, 50, (0, 0, 46, 0))
    assert drawn.has(EDGE, 140, 25)
    assert re.search(r'100 x 50\b.*\b200 x 100\b', panel.keys[-1][1])


def test_an_image_is_turned_as_its_tag_says(tmp_path: Path) -> None:
    half = Image.new('RGB', (120, 60), (250, 10, 10))
    half.paste((10, 10, 250), (0, 0, 60, 60))
    tag = Image.Exif()
    tag[0x0112] = 6  # a quarter to the right: what is left comes to the top
    half.save(tmp_path / 'a.jpg', exif=tag, quality=95)
    panel = draw_boxes_panel(
        BoxedImage('a.jpg', str(tmp_path / 'a.jpg'), (120, 60), (DrawnBox((5, 5, 5, 9), 'x'),), 1, ())
    )
    assert panel.picture is not None
    drawn = Drawn(panel.picture, 60, 120)
    assert drawn.has((28, 28, 220), 30, 30)
    assert drawn.has((220, 28, 28), 30, 90)


@pytest.mark.parametrize('name', ['../secret.png', '/etc/secret.png', 'file:///secret.png'])
def test_a_name_that_leads_out_of_the_folder_is_not_read(name: str, tmp_path: Path) -> None:
    target, options = coco(tmp_path / 'data', 64, 48, [[(5, 5, 5, 9)]])
    photo(tmp_path / 'data' / 'secret.png', 64, 48)
    record = json.loads(target.read_text())
    record['images'][0]['file_name'] = name
    target.write_text(json.dumps(record))
    (picture,) = shown(mmguard.scan(target, processes=1, **options).show(1))
    assert Drawn(picture, 64, 48).has((250, 250, 250), 40, 30)


@pytest.mark.parametrize(
    'corners',
    [
        (1e308, -1e308, -1e308, 1e308),
        (float('nan'), 0, 1, 1),
        (float('inf'),) * 4,
        (0, 0, 0, 0),
        (-1e-300, 0, 1e300, 5),
    ],
)
@pytest.mark.parametrize('size', [(1, 1), (3, 1 << 24), (1 << 24, 1), (480, 640), (float('nan'), 5), (1e300, 1e300)])
def test_any_number_is_drawn_or_refused(corners: Box, size: Tuple[float, float], tmp_path: Path) -> None:
    photo(tmp_path / 'a.png', 64, 48)
    for path in ('', str(tmp_path / 'a.png')):
        boxes = (DrawnBox(corners, 'box_outside'),) * 200
        panel = draw_boxes_panel(BoxedImage('a.png', path, size, boxes, 1000, (('box_outside', 1000),)))
        assert (panel.picture is None) == bool(panel.why)
        if panel.picture is not None:
            assert max(panel.picture.width, panel.picture.height) <= LONGEST
            assert len(panel.picture.data) <= MOST_BYTES * 4 // 3 + 100
            assert '200 of 1,000 boxes' in dict(map(reversed, panel.keys))
