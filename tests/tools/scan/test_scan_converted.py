"""What is counted for an edit of files is what a scan of the written files counts."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Dict

import numpy as np
import pytest
from PIL import Image

from mmguard.tools.fix.copies import write_copies
from mmguard.tools.fix.options import FixOptions
from mmguard.tools.scan.converted import converted
from mmguard.tools.scan.engine import scan_maps
from mmguard.tools.scan.settings import MapSettings
from mmguard.tools.scan.sources.folder import FolderSource
from mmguard.tools.scan.summary import MapSummary

LABEL = np.arange(48, dtype=np.uint8).reshape(6, 8) % 3
COLOURS = np.array([(0, 0, 0), (250, 50, 83), (51, 221, 255)], np.uint8)
TABLE = {tuple(colour): label for label, colour in enumerate(COLOURS.tolist())}
SETTINGS = MapSettings(num_classes=3)


def summary_of(folder: Path) -> MapSummary:
    return scan_maps(FolderSource(str(folder), SETTINGS).items(), SETTINGS).summary


def palette(label: np.ndarray) -> Image.Image:
    image = Image.fromarray(label)
    image.putpalette([17, 80, 200] * 256)
    return image


FOLDERS: Dict[str, Any] = {
    'gray': ([Image.fromarray(LABEL * 100)], dict(label_map={100: 1, 200: 2})),
    'colours': ([Image.fromarray(COLOURS[LABEL]), Image.fromarray(COLOURS[LABEL[::-1]])], dict(colours=TABLE)),
    'colours and indices': ([Image.fromarray(COLOURS[LABEL]), palette(LABEL)], dict(colours=TABLE)),
    'three equal channels': ([Image.fromarray(np.dstack([LABEL] * 3))], {}),
    'gray in colours': ([Image.fromarray(np.dstack([LABEL] * 3))], dict(colours={(v, v, v): 2 - v for v in range(3)})),
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
    reported = converted(summary_of(folder), options)
    assert not write_copies(folder, tmp_path / 'out', options).left_out
    seen = summary_of(tmp_path / 'out')
    again = reported.labelled_by(SETTINGS)
    assert (again.raw, again.trained, again.forms, again.changes) == (seen.raw, seen.trained, seen.forms, seen.changes)


@pytest.mark.parametrize(
    ('images', 'ending', 'given'),
    [
        ([Image.fromarray(COLOURS[LABEL])], '.png', {}),
        ([Image.fromarray(COLOURS[LABEL])], '.png', dict(colours={(0, 0, 0): 0})),
        ([Image.fromarray(LABEL * 100)], '.jpg', {}),
        ([Image.fromarray(LABEL.astype(np.float32) / 255)], '.tiff', {}),
        ([Image.fromarray(COLOURS[LABEL])], '.jpg', dict(colours=TABLE)),
    ],
    ids=['colours', 'a colour that is not listed', 'JPEG', 'fractions', 'colours as JPEG'],
)
def test_what_is_left_out_is_not_known(images: Any, ending: str, given: Dict[str, Any], tmp_path: Path) -> None:
    options = FixOptions(num_classes=3, **given)
    folder = written(tmp_path / 'labels', images, ending)
    assert converted(summary_of(folder), options) is None
    assert write_copies(folder, tmp_path / 'out', options).left_out


def test_a_value_that_no_option_maps_stays_to_be_seen(tmp_path: Path) -> None:
    reported = converted(summary_of(written(tmp_path / 'labels', [Image.fromarray(LABEL * 100)])), FixOptions(3))
    assert set(reported.labelled_by(SETTINGS).trained) == {0, 100, 200}


def test_palettes_that_opencv_reads_as_colours_are_right_for_pillow(tmp_path: Path) -> None:
    pytest.importorskip('cv2')
    folder = written(tmp_path / 'labels', [palette(LABEL)])
    by_opencv = MapSettings(num_classes=3, backend='cv2')
    summary = scan_maps(FolderSource(str(folder), by_opencv).items(), by_opencv).summary
    assert set(summary.trained) == {17, 80, 200}
    assert summary.labelled_by(SETTINGS).trained == summary_of(folder).trained
    assert not summary.labelled_by(SETTINGS).changes
