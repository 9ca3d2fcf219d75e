"""Edits of files before they are written: what is counted for one is what a scan of written files counts."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any, Dict

import numpy as np
import pytest
from coco_cases import ann, coco, write
from PIL import Image

from mmguard.commands.fix.copies import write_copies
from mmguard.formats.coco import Coco
from mmguard.formats.files import FILES
from mmguard.formats.format import NotTried
from mmguard.formats.maps.forms import predict_counts
from mmguard.formats.maps.sources import FolderSource, correct_maps, scan_maps
from mmguard.formats.maps.summary import MapSummary
from mmguard.formats.options import FixOptions, MapSettings, ScanOptions
from mmguard.scanning.run import correct_files

LABEL = np.arange(48, dtype=np.uint8).reshape(6, 8) % 3
COLORS = np.array([(0, 0, 0), (250, 50, 83), (51, 221, 255)], np.uint8)
TABLE = {tuple(color): label for label, color in enumerate(COLORS.tolist())}
SETTINGS = MapSettings(num_classes=3)


def summary_of(folder: Path) -> MapSummary:
    return scan_maps(FolderSource(str(folder), SETTINGS).items(), SETTINGS)


def palette(label: np.ndarray) -> Image.Image:
    image = Image.fromarray(label)
    image.putpalette([17, 80, 200] * 256)
    return image


FOLDERS: Dict[str, Any] = {
    'gray': ([Image.fromarray(LABEL * 100)], dict(label_map={100: 1, 200: 2})),
    'colors': ([Image.fromarray(COLORS[LABEL]), Image.fromarray(COLORS[LABEL[::-1]])], dict(colors=TABLE)),
    'colors and indices': ([Image.fromarray(COLORS[LABEL]), palette(LABEL)], dict(colors=TABLE)),
    'three equal channels': ([Image.fromarray(np.dstack([LABEL] * 3))], {}),
    'gray in colors': ([Image.fromarray(np.dstack([LABEL] * 3))], dict(colors={(v, v, v): 2 - v for v in range(3)})),
    '16 bits': ([Image.fromarray(LABEL.astype(np.uint16) * 300)], dict(label_map={300: 1, 600: 2})),
    'negative': ([Image.fromarray(LABEL.astype(np.int32) - 1)], dict(label_map={-1: 255})),
    'fractions of 255': ([Image.fromarray(LABEL / np.float32(255))], dict(scale=255.0)),
    'threshold': ([Image.fromarray(LABEL * 120), palette(LABEL * 120)], dict(threshold=127)),
}


def written(folder: Path, images: Any, ending: str = '.png') -> Path:
    folder.mkdir()
    for number, image in enumerate(images):
        kept = '.tif' if image.mode[0] in 'IF' and ending == '.png' else ending
        image.save(folder / f'{number}{kept}')
    return folder


@pytest.mark.parametrize('name', list(FOLDERS))
def test_the_counts_are_those_of_the_written_files(name: str, tmp_path: Path) -> None:
    images, given = FOLDERS[name]
    options = FixOptions(num_classes=3, **given)
    folder = written(tmp_path / 'labels', images)
    reported = predict_counts(summary_of(folder), options)
    assert not write_copies(folder, tmp_path / 'out', options).left_out
    seen = summary_of(tmp_path / 'out')
    again = reported.relabel(SETTINGS)
    assert (again.raw, again.trained, again.forms, again.changes) == (seen.raw, seen.trained, seen.forms, seen.changes)


@pytest.mark.parametrize(
    ('images', 'ending', 'given'),
    [
        ([Image.fromarray(COLORS[LABEL])], '.png', {}),
        ([Image.fromarray(COLORS[LABEL])], '.png', dict(colors={(0, 0, 0): 0})),
        ([Image.fromarray(LABEL * 100)], '.jpg', {}),
        ([Image.fromarray(LABEL.astype(np.float32) / 255)], '.tiff', {}),
        ([Image.fromarray(COLORS[LABEL])], '.jpg', dict(colors=TABLE)),
    ],
    ids=['colors', 'a color that is not listed', 'JPEG', 'fractions', 'colors as JPEG'],
)
def test_what_is_left_out_is_not_known(images: Any, ending: str, given: Dict[str, Any], tmp_path: Path) -> None:
    options = FixOptions(num_classes=3, **given)
    folder = written(tmp_path / 'labels', images, ending)
    assert predict_counts(summary_of(folder), options) is None
    assert write_copies(folder, tmp_path / 'out', options).left_out


def test_a_value_that_no_option_maps_stays_to_be_seen(tmp_path: Path) -> None:
    reported = predict_counts(summary_of(written(tmp_path / 'labels', [Image.fromarray(LABEL * 100)])), FixOptions(3))
    assert set(reported.relabel(SETTINGS).trained) == {0, 100, 200}


def test_palettes_that_opencv_reads_as_colors_are_right_for_pillow(tmp_path: Path) -> None:
    pytest.importorskip('cv2')
    folder = written(tmp_path / 'labels', [palette(LABEL)])
    by_opencv = MapSettings(num_classes=3, backend='cv2')
    summary = scan_maps(FolderSource(str(folder), by_opencv).items(), by_opencv)
    assert set(summary.trained) == {17, 80, 200}
    assert summary.relabel(SETTINGS).trained == summary_of(folder).trained
    assert not summary.relabel(SETTINGS).changes


COCO = Coco()
RECORD = coco([ann(1)], 1, ['cat'])


def test_a_file_is_corrected_in_memory(tmp_path: Path) -> None:
    pytest.importorskip('msgspec')
    path = write(tmp_path, RECORD)
    contents = correct_files({path: {'renumber': 0}}, COCO)
    assert json.loads(contents[path])['categories'] == [dict(id=0, name='cat')]
    with FILES.replaced(contents):
        assert list(COCO.read(path, ScanOptions()).annotations.categories) == [0]
    assert list(COCO.read(path, ScanOptions()).annotations.categories) == [1]


def test_what_is_left_out_is_not_tried(tmp_path: Path) -> None:
    path = write(tmp_path, {**RECORD, 'categories': 5})
    with pytest.raises(NotTried):
        correct_files({path: {}}, COCO)


def test_a_fault_of_the_writer_is_raised(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def raise_it(*_: Any) -> None:
        raise KeyError('x')

    monkeypatch.setattr('mmguard.formats.coco.write._parse_numbers', raise_it)
    with pytest.raises(KeyError):
        correct_files({write(tmp_path, RECORD): {}}, COCO)


def test_a_few_label_maps_are_tried_as_copies(tmp_path: Path) -> None:
    paths = [str(tmp_path / f'{name}.bmp') for name in ('labels', 'cut', 'colors')]
    Image.fromarray(np.array([[0, 255], [255, 0]], np.uint8)).save(paths[0])
    Path(paths[1]).write_bytes(Path(paths[0]).read_bytes()[:40])
    Image.fromarray(np.eye(3, dtype=np.uint8)[None]).save(paths[2])
    options = FixOptions(num_classes=2, label_map={255: 1})
    contents = correct_maps(paths[:2], options)  # that one is cut off is no fault of the edit
    assert list(contents) == [str(tmp_path / 'labels.png')]
    with Image.open(io.BytesIO(contents[str(tmp_path / 'labels.png')])) as image:
        assert np.asarray(image).tolist() == [[0, 1], [1, 0]]
    with pytest.raises(NotTried):
        correct_maps(paths, options)
