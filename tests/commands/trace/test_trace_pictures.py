"""The page of ``mmguard trace --pictures``: what is drawn is what the files hold and the pipeline delivers."""

from __future__ import annotations

import base64
import io
import re
from html import unescape
from pathlib import Path
from typing import Any, Dict, List, NamedTuple, Tuple

import numpy as np
import pytest
from PIL import Image
from put_file import put_config
from small_det_data import SIZE as BOX_SIZE
from small_det_data import coco_dataset, make_coco, things
from small_runs import LOAD, PACK, dataset_config, label_map, make_cityscapes, seg_config, write_pair

from mmguard.cli import main
from mmguard.commands.page.pictures import IGNORED, LONGEST, LOUD, MOST_BYTES, build_palette, format_css
from mmguard.commands.trace.pictures import MOST_SAMPLES, NAMED

FLIP = dict(type='RandomFlip', prob=1.0)


class Figure(NamedTuple):
    """One picture: its name, its pixels and bytes, and its legend."""

    name: str
    pixels: np.ndarray
    size: int
    keys: Dict[str, str]


def figures(page: str) -> List[List[Any]]:
    """The pictures of each sample, or the text in place of one."""
    found = []
    for article in page.split('<article')[1:]:
        parts: List[Any] = []
        for figure in article.split('<figure>')[1:]:
            data = re.search(r'base64,([^"]+)"', figure)
            if data is None:
                parts.append(unescape(re.sub('<[^>]+>', '', figure)).strip())
                continue
            raw = base64.b64decode(data[1])
            caption = figure.split('<figcaption>')[1].split('</figcaption>')[0]
            keys = re.findall(r'background:([^"]+)"></i>([^\n]*?)(?:, )?\n', caption)
            with Image.open(io.BytesIO(raw)) as image:
                pixels = np.asarray(image.convert('RGB')).astype(int)
            name = caption.split('\n')[0].strip()
            parts.append(Figure(name, pixels, len(raw), {unescape(text): color for color, text in keys}))
        found.append(parts)
    return found


def traced(folder: Path, dataset: Dict[str, Any], model: Dict[str, Any], scope: str, *args: str) -> Tuple[int, str]:
    page, loader = folder / 'page.html', dict(dataset=dataset)
    config = put_config(folder / 'config.py', default_scope=scope, model=model, train_dataloader=loader)
    code = main(['trace', str(config), '--html', str(page), *args])
    return code, page.read_text(encoding='utf-8') if page.exists() else ''


def seg(folder: Path, root: str, steps: List[Dict[str, Any]], *args: str, **more: Any) -> Tuple[int, str]:
    dataset = {**dataset_config(root, 'train', steps), **more}
    return traced(folder, dataset, dict(decode_head=dict(type='FCNHead', num_classes=19)), 'mmseg', *args)


def close(pixels: np.ndarray, color: Tuple[int, ...]) -> np.ndarray:
    """Return the places of a picture, a JPEG, that have a color."""
    return np.abs(pixels - np.array(color)).sum(-1) < 60


def test_label_maps_before_and_after(cityscapes: str, tmp_path: Path) -> None:
    code, page = seg(tmp_path, cityscapes, [*LOAD, FLIP, PACK], '--pictures', '8')
    assert code == 1
    samples = figures(page)
    assert len(samples) == 8
    # The samples with mistakes come first; number 2 has a block of 200.
    names = re.findall(r'<h4 class="mono">(\d)', page)
    before, after = samples[names.index('2')]
    stored = label_map(2, (200,))
    assert [before.name, after.name] == ['before:', 'after:']
    assert after.keys[f'200 ({(stored == 200).sum()} px)'] == format_css(LOUD)
    assert after.keys['255 (36 px)'] == format_css(IGNORED)
    road = next(text for text in after.keys if text.startswith('0 '))
    assert road == f'0 road ({(stored == 0).sum()} px)'
    assert after.keys[road] == format_css(build_palette()[0].tolist())
    assert sum(int(re.findall(r'\((\d+) px', text)[0]) for text in after.keys) == stored.size
    seen = close(after.pixels, LOUD)
    assert seen[:, ::-1][stored == 200].mean() > 0.9  # flipped
    assert seen[:, ::-1][stored < 19].mean() < 0.1
    assert not close(before.pixels, LOUD).any()  # a stored value may be mapped later
    assert names[-1] in '147'  # without an invalid value


def test_boxes_before_and_after(tmp_path: Path) -> None:
    steps = [LOAD[0], dict(type='LoadAnnotations', with_bbox=True), FLIP, dict(type='PackDetInputs')]
    dataset = coco_dataset(make_coco(str(tmp_path / 'coco')), steps)
    model = dict(bbox_head=dict(type='BBoxHead', num_classes=80))
    code, page = traced(tmp_path, dataset, model, 'mmdet', '--sample', '3')
    assert code == 1
    ((before, after),) = figures(page)
    objects = things(3, 80, 82)
    assert before.pixels.shape == after.pixels.shape == (BOX_SIZE, BOX_SIZE, 3)
    for one in objects:
        name, color = f'{one.label} class {one.label} (1 box)', tuple(build_palette()[one.label].tolist())
        assert before.keys[f'{one.label} (1 box)'] == format_css(color)
        shown = color if one.label < 80 else LOUD
        assert after.keys[name] == format_css(shown)
        x1, y1, _, y2 = one.box
        left = np.zeros((BOX_SIZE, BOX_SIZE), bool)
        left[y1 + 16 : y2 - 3, x1] = True
        assert close(before.pixels, color)[left].mean() > 0.5
        assert close(after.pixels, shown)[:, ::-1][left].mean() > 0.5


def test_a_failing_pipeline_is_named_in_place_of_its_picture(cityscapes: str, tmp_path: Path) -> None:
    crop = dict(type='RandomCrop', crop_size=(8, 8), cat_max_ratio='much')
    code, page = seg(tmp_path, cityscapes, [*LOAD, crop, PACK], '--pictures', '1')
    assert code == 2
    ((before, after),) = figures(page)
    assert before.name == 'before:'
    assert after.startswith('No picture of the loaded image')


def test_hostile_names_and_large_files(tmp_path: Path) -> None:
    """File and class names are text, and a picture of noise is bounded."""
    image = tmp_path / 'leftImg8bit/train/<img src=x onerror=alert(1)>_leftImg8bit.png'
    label = tmp_path / 'gtFine/train/<img src=x onerror=alert(1)>_gtFine_labelTrainIds.png'
    noise = np.random.default_rng(0).integers(0, 40, (1600, 2000), dtype=np.uint8)
    write_pair(str(image), str(label), noise, 0)
    classes = ('<script>alert(2)</script>', *(f'{n}' * 4000 for n in range(39)))
    base = dict(type='BaseSegDataset', img_suffix='_leftImg8bit.png', seg_map_suffix='_gtFine_labelTrainIds.png')
    code, page = seg(
        tmp_path,
        str(tmp_path),
        [*LOAD, PACK],
        '--num-classes',
        '40',
        '--pictures',
        '3',
        **base,
        metainfo=dict(classes=classes),
    )
    assert code == 0
    assert len(figures(page)) == 3
    assert '<script>alert' not in page
    assert '<img' not in page
    for pictures in figures(page):
        for figure in pictures:
            assert max(figure.pixels.shape) <= LONGEST
            assert figure.size <= MOST_BYTES
            assert len(figure.keys) == NAMED
    assert len(page) < 3 * 2 * MOST_BYTES * 4 / 3 + 60_000


@pytest.mark.parametrize('args', [('--pictures', str(MOST_SAMPLES + 1)), ('--samples', '5000')])
def test_a_page_is_bounded(args: Tuple[str, ...], cityscapes: str, tmp_path: Path) -> None:
    assert seg(tmp_path, cityscapes, [*LOAD, PACK], *args) == (2, '')


def test_no_file_is_replaced_but_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = make_cityscapes(str(tmp_path / 'data'), planted={})
    monkeypatch.chdir(tmp_path)
    seg_config(tmp_path, root, [*LOAD, PACK])
    Path('trace.html').write_text('my notes')
    assert main(['trace', 'config.py', '--pictures', '1']) == 2
    assert Path('trace.html').read_text() == 'my notes'
    Path('trace.html').unlink()
    assert [main(['trace', 'config.py', '--pictures', str(n)]) for n in (1, 2)] == [0, 0]
    assert len(figures(Path('trace.html').read_text())) == 2
