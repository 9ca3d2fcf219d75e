"""Pictures of files: bounded, true to the values, and no file can stop the page."""

from __future__ import annotations

import base64
import io
import struct
import zlib
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from pictures import encode
from PIL import Image

from mmguard.commands.page.html import build_page
from mmguard.commands.page.pictures import (
    FEW,
    IGNORED,
    LONGEST,
    LOUD,
    MOST_BYTES,
    CannotDraw,
    Picture,
    build_palette,
    draw_label,
    draw_marks,
    draw_photo,
    read_label,
    shrink_mask,
)
from mmguard.findings import LabelFacts
from mmguard.scanning.run import SetResult


def pixels(picture: Picture) -> np.ndarray:
    with Image.open(io.BytesIO(base64.b64decode(picture.data.partition(',')[2]))) as image:
        return np.asarray(image.convert('RGB'))


def noise(height: int, width: int, *channels: int) -> np.ndarray:
    return np.random.default_rng(0).integers(0, 256, (height, width, *channels), dtype=np.uint8)


def test_classes_ignored_and_invalid_pixels_have_their_colors() -> None:
    label = np.array([[0, 1, 255, 7]] * 3, dtype=np.uint8)
    painted = pixels(draw_label(label, label == 7, [255]))
    assert painted[0].tolist() == [build_palette()[0].tolist(), build_palette()[1].tolist(), list(IGNORED), list(LOUD)]


def test_no_class_looks_invalid_or_ignored_or_like_its_neighbour() -> None:
    colors = build_palette().astype(int)
    for other in (LOUD, IGNORED):
        assert (np.abs(colors - other).sum(axis=1) > 90).all()
    assert (np.abs(colors[1:] - colors[:-1]).sum(axis=1) > 60).all()
    assert len(np.unique(build_palette()[:64], axis=0)) == 64


@settings(max_examples=25, deadline=None)
@given(st.integers(1, 3000), st.integers(1, 3000), st.data())
def test_a_single_pixel_is_always_shown(height: int, width: int, data: st.DataObject) -> None:
    mask = np.zeros((height, width), dtype=bool)
    row, column = data.draw(st.integers(0, height - 1)), data.draw(st.integers(0, width - 1))
    mask[row, column] = True
    small = shrink_mask(mask)
    step = -(-max(height, width) // max(small.shape))
    assert small[row // step, column // step]
    assert max(small.shape) <= LONGEST
    assert 1 <= small.sum() <= 49


@given(hnp.arrays(bool, st.tuples(st.integers(1, 40), st.integers(1, 40))))
def test_a_small_mask_of_many_is_not_changed(mask: np.ndarray) -> None:
    assert shrink_mask(mask)[mask].all()
    if mask.mean() > FEW:
        assert (shrink_mask(mask) == mask).all()


def test_noise_is_encoded_until_it_fits(tmp_path: Path) -> None:
    path = tmp_path / 'noise.png'
    Image.fromarray(noise(900, 1400, 3)).save(path)
    made = [draw_photo(str(path)), draw_label(noise(900, 1400), noise(900, 1400) > 250, [])]
    for picture in made:
        assert len(base64.b64decode(picture.data.partition(',')[2])) <= MOST_BYTES
        assert max(picture.width, picture.height) <= LONGEST
    facts = LabelFacts({300: 1}, 3, 255, files=1, offending_files=1)
    worst = [dict(file='noise.png', path=str(path), image=str(path), stored={300: 1}, invalid=1)]
    assert made[0].data in build_page('noise', [SetResult(facts, worst, name='train')])  # a page shortens texts only


def test_the_photo_is_marked_where_the_label_is_invalid(tmp_path: Path) -> None:
    path = tmp_path / 'white.png'
    Image.new('RGB', (300, 200), 'white').save(path)
    label = np.zeros((200, 300), dtype=np.uint8)
    label[50:150, 100:200] = 9
    painted = pixels(draw_marks(str(path), label == 9)).astype(int)
    loud = np.abs(painted - LOUD).sum(axis=2) < 60
    assert loud[55:145, 105:195].all()
    assert not loud[:45].any()
    assert not loud[:, 210:].any()


@pytest.mark.parametrize('size', [(300, 200), (40, 70), (1, 1)])
def test_a_photo_of_another_size_is_fitted(tmp_path: Path, size: tuple) -> None:
    path = tmp_path / 'photo.jpg'
    Image.new('RGB', size, 'white').save(path)
    label = np.zeros((200, 300), dtype=np.uint8)
    assert pixels(draw_marks(str(path), label == 9)).shape == (200, 300, 3)


def test_labels_are_read_as_stored(tmp_path: Path) -> None:
    palette_image = Image.fromarray(np.array([[0, 1], [2, 11]], np.uint8), 'P')
    palette_image.putpalette(list(range(255, -1, -1)) * 3)
    palette_image.save(tmp_path / 'p.png')
    assert read_label(str(tmp_path / 'p.png')).tolist() == [[0, 1], [2, 11]]
    Image.fromarray(np.array([[261, 65535]], np.uint16)).save(tmp_path / 'w.png')
    assert read_label(str(tmp_path / 'w.png')).tolist() == [[261, 65535]]
    Image.fromarray(np.array([[True, False]])).save(tmp_path / 'b.png')
    assert read_label(str(tmp_path / 'b.png')).tolist() == [[1, 0]]


def _bomb() -> bytes:
    header = struct.pack('>IIBBBBB', 100_000, 100_000, 8, 0, 0, 0, 0)
    chunk = b'IHDR' + header
    data = struct.pack('>I', 1000) + b'IDAT'
    return b'\x89PNG\r\n\x1a\n' + struct.pack('>I', 13) + chunk + struct.pack('>I', zlib.crc32(chunk)) + data


HOSTILE = {
    'empty': b'',
    'text': b'not an image',
    'bomb': _bomb(),
    'truncated': encode(noise(50, 50))[:900],
    'colors': encode(noise(20, 20, 3)),
    'alpha': encode(noise(20, 20, 4)),
    'deep': encode(np.full((20, 20), 40_000, np.uint16)),
}


@pytest.mark.parametrize('kind', [*HOSTILE, 'missing', 'folder', 'float'])
@pytest.mark.parametrize('role', ['image', 'label'])
def test_no_file_stops_the_page(tmp_path: Path, kind: str, role: str) -> None:
    path, good = tmp_path / 'file.png', tmp_path / 'good.png'
    good.write_bytes(encode(noise(20, 20)))
    if kind == 'folder':
        path.mkdir()
    elif kind == 'float':
        path = tmp_path / 'file.tif'
        Image.fromarray(np.array([[0.5, np.nan], [np.inf, 3.0]], np.float32)).save(path)
    elif kind != 'missing':
        path.write_bytes(HOSTILE[kind])
    label, image = (path, good) if role == 'label' else (good, path)
    worst = dict(file='a.png', path=str(label), image=str(image), stored={3: 1}, invalid=1)
    facts = LabelFacts(values={3: 1}, num_classes=2, ignore_index=255)
    made = build_page('t', [SetResult(facts, [worst], name='train')])
    assert 'a.png' in made
    if kind in ('empty', 'text', 'bomb', 'truncated', 'missing', 'folder'):
        with pytest.raises(CannotDraw):
            (read_label if role == 'label' else draw_photo)(str(path))


@settings(max_examples=60, deadline=None)
@given(st.binary(max_size=60), st.integers(0, 400), st.integers(0, 40))
def test_damage_anywhere_in_a_file_is_survived(
    tmp_path_factory: pytest.TempPathFactory, damage: bytes, place: int, cut: int
) -> None:
    content = bytearray(encode(noise(12, 12)))
    content[place : place + len(damage)] = damage
    path = tmp_path_factory.mktemp('damaged') / 'x.png'
    path.write_bytes(bytes(content[: len(content) - cut]))
    for read in (lambda: draw_photo(str(path)), lambda: read_label(str(path))):
        with suppress(CannotDraw):  # and nothing else
            read()
