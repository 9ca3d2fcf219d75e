"""What is read of a file against what mmseg's own loader returns for it."""

from __future__ import annotations

import zlib
from pathlib import Path
from typing import Any, Dict, List, Tuple

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays
from label_files import BLOCKS, write
from mmseg.datasets.transforms import LoadAnnotations
from pictures import png
from PIL import Image

from mmguard.formats.maps import read
from mmguard.formats.maps.read import read_map
from mmguard.formats.maps.summary import MapItem, MapRecord, MapSummary
from mmguard.formats.options import MapSettings, as_pairs
from mmguard.labels.rules import count_values

ANY = MapSettings(num_classes=256)


def record_of(path: str, labels: MapSettings = ANY) -> MapRecord:
    return read_map(MapItem(path), labels, np.array(labels.find_invalid_values()))


def stock(path: str, labels: MapSettings) -> np.ndarray:
    """What mmseg trains on."""
    results: Dict[str, Any] = dict(
        seg_map_path=path,
        seg_fields=[],
        reduce_zero_label=labels.reduce_zero_label,
        label_map=dict(labels.label_map) or None,
    )
    return LoadAnnotations(imdecode_backend=labels.backend)(results)['gt_seg_map']


def trained(path: str, labels: MapSettings) -> Dict[int, int]:
    summary = MapSummary(labels)
    summary.add(record_of(path, labels))
    return dict(sorted(summary.trained.items()))


def gray_png(path: Path, bits: int) -> str:
    """A gray PNG of 2 or 4 bits holding 0..3, which pillow reads but does not write."""
    row = np.array([0, 1, 2, 3, 3, 2, 1, 3])
    packed = bytes(
        int(sum(int(v) << (8 - bits - bits * i) for i, v in enumerate(part))) for part in row.reshape(-1, 8 // bits)
    )
    path.write_bytes(png(8, 2, zlib.compress(2 * (b'\0' + packed)), bits))
    return str(path)


def every_form(folder: Path) -> Dict[str, Tuple[str, str]]:
    """Name -> file, the form that should be reported."""
    wide = BLOCKS.astype(np.uint16) * 87
    floats = BLOCKS.astype(np.float32) + np.where(BLOCKS == 2, 0.5, 0).astype(np.float32)
    colors = np.stack([BLOCKS * 50, BLOCKS, 255 - BLOCKS], axis=2)
    made = {
        'gray8': (write(folder / 'a.png', BLOCKS), 'gray8'),
        'palette8': (write(folder / 'b.png', BLOCKS, 'P'), 'palette8'),
        'palette4': (write(folder / 'b4.png', BLOCKS, 'P', bits=4), 'palette8'),
        'bool': (write(folder / 'c.png', BLOCKS > 2), 'bool'),
        'gray16': (write(folder / 'd.png', wide), 'gray16'),
        'gray16 tiff': (write(folder / 'd.tif', wide), 'gray16'),
        'gray32': (write(folder / 'e.tif', BLOCKS.astype(np.int32) * 1000 - 7), 'gray32'),
        'float': (write(folder / 'f.tif', floats), 'float'),
        'rgb': (write(folder / 'g.png', colors), 'rgb'),
        'gray in rgb': (write(folder / 'h.png', np.stack([BLOCKS] * 3, axis=2)), 'rgb'),
        'rgba': (write(folder / 'i.png', colors, 'RGBA'), 'rgba'),
        'gray_alpha': (write(folder / 'j.png', BLOCKS, 'LA'), 'gray_alpha'),
        'jpeg': (write(folder / 'k.jpg', BLOCKS * 60, quality=50), 'gray8'),
        'bmp': (write(folder / 'l.bmp', BLOCKS), 'gray8'),
        'gif': (write(folder / 'm.gif', BLOCKS), 'palette8'),
    }
    made['gray2'] = (gray_png(folder / 'n.png', 2), 'gray2')
    made['gray4'] = (gray_png(folder / 'o.png', 4), 'gray4')
    return made


@pytest.mark.parametrize('shift', [False, True], ids=['', 'reduce_zero_label'])
@pytest.mark.parametrize('label_map', [{}, {1: 3, 3: 255, 255: 0}], ids=['', 'label_map'])
def test_every_form_is_counted_as_mmseg_loads_it(tmp_path: Path, shift: bool, label_map: Dict[int, int]) -> None:
    labels = MapSettings(5, reduce_zero_label=shift, label_map=as_pairs(label_map))
    forms = every_form(tmp_path)
    assert len(forms) > 10
    for name, (path, form) in forms.items():
        assert record_of(path).form == form, name
        assert trained(path, labels) == count_values(stock(path, labels)), name


def test_opencv_as_the_loaders_backend(tmp_path: Path) -> None:
    labels = MapSettings(5, backend='cv2')
    forms = every_form(tmp_path)
    names = ['gray8', 'palette8', 'palette4', 'bool', 'gray16', 'gray2', 'gray4', 'rgb', 'rgba', 'bmp']
    for name in (*names, 'gray in rgb'):
        path, _form = forms[name]
        assert trained(path, labels) == count_values(stock(path, labels)), name
    record = record_of(forms['palette8'][0], labels)
    assert record.raw == count_values(BLOCKS), 'what is stored are indices, whoever reads them'
    assert record.changes == ['colors']
    assert record_of(forms['palette8'][0]).changes == [], 'pillow keeps the indices'


def test_what_is_stored_and_what_the_loader_changes(tmp_path: Path) -> None:
    forms = every_form(tmp_path)
    wide = record_of(forms['gray16'][0])
    assert sorted(wide.raw) == [0, 87, 174, 261, 348]
    assert sorted(wide.as_loaded) == [0, 5, 87, 92, 174], 'F9: 261 becomes 5 and 348 becomes 92'
    assert wide.changes == ['wrapped']
    small = write(tmp_path / 'small16.png', BLOCKS.astype(np.uint16))
    assert record_of(small).changes == [], '16 bits alone are no fault'
    stretched = record_of(forms['gray4'][0])
    assert sorted(stretched.raw) == [0, 1, 2, 3]
    assert sorted(stretched.as_loaded) == [0, 17, 34, 51]
    assert [stretched.decode(value) for value in (0, 3)] == [0, 51]
    assert record_of(forms['float'][0]).fractions == {'2.5': int((BLOCKS == 2).sum())}
    gray = record_of(forms['gray in rgb'][0])
    assert gray.raw == count_values(BLOCKS)
    assert record_of(forms['rgb'][0]).raw == {}
    assert record_of(forms['rgb'][0]).colors['50,1,254'] == int((BLOCKS == 1).sum())
    assert [name for name, (path, _) in forms.items() if record_of(path).lossy] == ['jpeg']


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    label=arrays(np.uint8, array_shapes(min_dims=2, max_dims=2, min_side=2, max_side=9)),
    shift=st.booleans(),
    label_map=st.dictionaries(st.integers(0, 255), st.integers(0, 255), max_size=5),
    num_classes=st.integers(1, 255),
    wide=st.booleans(),
)
def test_any_map_under_any_settings(
    tmp_path: Path, label: np.ndarray, shift: bool, label_map: Dict[int, int], num_classes: int, wide: bool
) -> None:
    labels = MapSettings(num_classes, reduce_zero_label=shift, label_map=as_pairs(label_map))
    path = write(tmp_path / 'any.png', label.astype(np.uint16) * 3 if wide else label)
    summary = MapSummary(labels)
    summary.add(record_of(path, labels))
    seen = stock(path, labels)
    assert dict(sorted(summary.trained.items())) == count_values(seen)
    invalid = (seen >= num_classes) & (seen != 255)
    facts = summary.to_facts()
    assert facts.values == count_values(seen[invalid])
    assert facts.offending_files == bool(invalid.any())
    assert bool(facts.maps.all_void) == bool((seen == 255).all())


@given(
    arrays(np.uint8, array_shapes(min_dims=2, max_dims=2, min_side=2, max_side=40)),
    st.booleans(),
    st.sampled_from([1 << 26, 16]),
)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_bytes_are_counted_whatever_the_size(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, label: np.ndarray, with_palette: bool, most: int
) -> None:
    image = Image.fromarray(label)
    if with_palette:
        image.putpalette(bytes(range(256)) * 3)
    image.save(tmp_path / 'a.png')
    monkeypatch.setattr('mmguard.formats.maps.read._MOST_PACKED', most)
    any_value = MapSettings(256)
    record = read_map(MapItem(str(tmp_path / 'a.png')), any_value, any_value.find_invalid_values())
    assert record.form == ('palette8' if with_palette else 'gray8')
    assert record.raw == count_values(label)


def test_interpolated_values_lie_between_their_neighbours(tmp_path: Path) -> None:
    binary = np.where(BLOCKS > 2, 100, 0).astype(np.uint8)
    blurred = np.asarray(Image.fromarray(binary).resize((77, 77), Image.BILINEAR))
    labels = MapSettings(1, label_map=((100, 0),))
    summary = MapSummary(labels)
    summary.add(record_of(write(tmp_path / 'blurred.png', blurred), labels))
    facts = summary.to_facts()
    assert facts.maps.at_edges > 0.9
    slip = BLOCKS.copy()
    slip[3:20, 3:20] = 77
    summary = MapSummary(MapSettings(5))
    summary.add(record_of(write(tmp_path / 'slip.png', slip), MapSettings(5)))
    facts = summary.to_facts()
    assert facts.maps.at_edges == 0


def test_the_image_is_measured_as_it_is_shown(tmp_path: Path) -> None:
    label = write(tmp_path / 'a.png', BLOCKS[:, :20])
    exif = Image.Exif()
    exif[0x0112] = 6
    image = write(tmp_path / 'a.jpg', np.zeros((20, 32, 3), np.uint8), exif=exif)
    record = read_map(MapItem(label, image), ANY, np.array(ANY.find_invalid_values()))
    assert record.shape == record.image_shape == (32, 20), 'stored lying, shown upright: as OpenCV loads it'
    upright = write(tmp_path / 'b.jpg', np.zeros((20, 32, 3), np.uint8))
    summary = MapSummary(ANY)
    summary.add(read_map(MapItem(label, upright), ANY, np.array(ANY.find_invalid_values())))
    facts = summary.to_facts(root=str(tmp_path))
    assert facts.maps.size_mismatches == [('a.png', (32, 20), (20, 32))]


@given(
    arrays(np.uint8, array_shapes(min_dims=2, max_dims=2, min_side=2, max_side=12), elements=st.integers(0, 4)),
    st.sampled_from([1, 5, 17]),
)
def test_a_map_is_counted_in_parts_as_in_one_piece(label: np.ndarray, size: int) -> None:
    invalid = np.arange(256) % 2 == 1
    wide = [label.astype(kind) for kind in (np.int32, np.uint16, np.int64)]
    floats = [label / np.float32(1 + label.size % 3), np.where(label == 3, np.nan, label).astype(np.float64)]

    def count() -> List[Any]:
        records = [MapRecord('a', form='gray32') for _ in wide] + [MapRecord('a', form='float') for _ in floats]
        for record, stored in zip(records, (*wide, *floats)):
            read._store_wide(record, stored)
        return [read.count_between(label, invalid), count_values(label), [vars(record) for record in records]]

    whole = count()
    with pytest.MonkeyPatch.context() as patch:
        for module in ('mmguard.formats.maps.read', 'mmguard.labels.rules'):
            patch.setattr(f'{module}._AT_ONCE', size)
        assert count() == whole


def test_of_very_many_values_the_most_frequent_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(read, '_AT_ONCE', 10_000)
    monkeypatch.setattr(read, '_MOST_COUNTED', 15_000)
    stored = np.arange(60_000, dtype=np.int32).reshape(300, 200) * 7
    stored[::2, 0] = -5
    record = MapRecord('a', form='gray32')
    read._store_wide(record, stored)
    assert len(record.raw) == read.MAX_VALUES
    assert record.raw[-5] == 150
    assert record.changes == ['wrapped']
