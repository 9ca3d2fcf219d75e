"""What is read of a volume, against the readers of nnU-Net itself."""

from __future__ import annotations

import gzip
import itertools
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Dict, Tuple

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from nnunet_sets import affine_of, organ, picture, their_reader

from mmguard.formats.volumes import CannotRead, Volume
from mmguard.formats.volumes.nifti import open_volume
from mmguard.formats.volumes.record import FileRecord, count_labels, count_not_finite

nibabel = pytest.importorskip('nibabel')
pytest.importorskip('SimpleITK')
Image = pytest.importorskip('PIL.Image')

_NUMBER = itertools.count()


def read(path: Path, reader: str, expected: Tuple[int, ...] = ()) -> Tuple[Volume, FileRecord]:
    record = FileRecord(str(path))
    with ExitStack() as stack:
        volume = open_volume(str(path), reader, stack)
        record.shape = list(volume.shape)
        count_labels(volume, record, expected)
        if volume.refusal or volume.form:
            raise volume.refusal or CannotRead(volume.form)
    return volume, record


def counted(array: np.ndarray) -> Dict[str, int]:
    """Values of nnU-Net's array as the record has them."""
    finite = array[np.isfinite(array)]
    values, counts = np.unique(finite, return_counts=True)
    return {str(int(v)) if v == np.rint(v) else str(v): int(n) for v, n in zip(values, counts)}


DTYPES = st.sampled_from(['u1', 'i1', 'i2', 'u2', 'i4', 'u4', 'f4', 'f8', '>i2', '>f4', 'i8'])
AFFINES = st.builds(
    lambda spacing, signs, axes, origin: affine_of(np.array(spacing) * signs, origin)[:, [*axes, 3]],
    st.tuples(*[st.floats(0.1, 9)] * 3),
    st.tuples(*[st.sampled_from([-1, 1])] * 3),
    st.permutations([0, 1, 2]),
    st.tuples(*[st.floats(-300, 300)] * 3),
)

#: Where readings were, or could be, wrong: looked at in every run.
DOUBTFUL: Dict[str, Any] = dict(
    shape=(4, 3, 2), affine=affine_of(), reader='SimpleITKIO', slope=None, ending='.nii.gz', seed=0
)


@pytest.mark.usefixtures('nnunet')
@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    shape=st.lists(st.integers(1, 6), min_size=2, max_size=3).map(tuple),
    dtype=DTYPES,
    affine=AFFINES,
    reader=st.sampled_from(['SimpleITKIO', 'NibabelIO']),
    slope=st.sampled_from([None, None, (2.0, 0.0), (0.5, 1.0)]),
    ending=st.sampled_from(['.nii.gz', '.nii']),
    seed=st.integers(0, 99),
    fraction=st.booleans(),
)
@example(**DOUBTFUL, dtype='f4', fraction=True)
@example(**{**DOUBTFUL, 'reader': 'NibabelIO', 'slope': (0.5, 1.0), 'ending': '.nii'}, dtype='f8', fraction=True)
@example(**{**DOUBTFUL, 'slope': (0.5, 1.0)}, dtype='i2', fraction=False)
@example(**{**DOUBTFUL, 'shape': (4, 3)}, dtype='u1', fraction=False)
@example(**{**DOUBTFUL, 'shape': (4, 3), 'affine': affine_of()[:, [0, 2, 1, 3]]}, dtype='u1', fraction=False)
@example(**{**DOUBTFUL, 'shape': (4, 3), 'reader': 'NibabelIO'}, dtype='u1', fraction=False)
def test_nifti_is_seen_as_nnunet_sees_it(
    shape: Any, dtype: str, affine: Any, reader: str, slope: Any, ending: str, seed: int, fraction: bool, tmp_path: Path
) -> None:
    stored = np.random.default_rng(seed).integers(0, 5, shape).astype(dtype)
    if stored.dtype.kind == 'f' and fraction:
        stored.flat[0] = 0.9998
    image = nibabel.Nifti1Image(stored, affine, dtype=stored.dtype)
    if slope:
        image.header.set_slope_inter(*slope)
    path = tmp_path / f'{next(_NUMBER)}{ending}'
    nibabel.save(image, str(path))
    if slope:
        write_slope(path, *slope)
    try:
        array, properties = their_reader(reader).read_seg(str(path))
    except Exception:
        with pytest.raises(CannotRead):
            read(path, reader)
        return
    volume, record = read(path, reader)
    assert volume.shape == array.shape
    np.testing.assert_allclose(volume.geometry.spacing, properties['spacing'], rtol=1e-6)
    if reader == 'SimpleITKIO':
        np.testing.assert_allclose(volume.geometry.origin, properties['sitk_stuff']['origin'])
        np.testing.assert_allclose(volume.geometry.direction, properties['sitk_stuff']['direction'])
    else:
        theirs = np.ravel(properties['nibabel_stuff']['original_affine'])
        np.testing.assert_allclose(volume.geometry.affine, theirs)
    assert record.values == counted(array)


def write_slope(path: Path, slope: float, inter: float) -> None:
    """nibabel writes no slope of its own: the bytes of the header are changed, those of the voxels stay."""
    content = path.read_bytes()
    packed = path.suffix == '.gz'
    content = bytearray(gzip.decompress(content) if packed else content)
    order = '<' if int.from_bytes(content[:4], 'little') == 348 else '>'
    content[112:120] = np.array([slope, inter], f'{order}f4').tobytes()
    path.write_bytes(gzip.compress(bytes(content)) if packed else bytes(content))


@pytest.mark.usefixtures('nnunet')
@pytest.mark.parametrize('name', ['gray.png', 'rgb.png', 'palette.png', 'bool.png', 'wide.png', 'gray.bmp'])
def test_flat_images_are_seen_as_nnunet_sees_them(name: str, tmp_path: Path) -> None:
    label = organ()[:, :, 2].copy()
    forms = {
        'rgb': Image.fromarray(np.stack([label, label * 2, label], axis=-1)),
        'bool': Image.fromarray(label > 0),
        'wide': Image.fromarray(label.astype(np.uint16) * 300),
    }
    image = forms.get(name.split('.')[0], Image.fromarray(label))
    if name == 'palette.png':
        image = image.convert('P')
        image.putpalette([0, 0, 0, 128, 0, 0, 0, 128, 0])
    image.save(tmp_path / name)
    array, properties = their_reader('NaturalImage2DIO').read_seg(str(tmp_path / name))
    volume, record = read(tmp_path / name, 'NaturalImage2DIO')
    assert volume.shape == array.shape
    assert record.values == counted(array)
    assert tuple(volume.geometry.spacing) == properties['spacing']


@pytest.mark.parametrize('dtype', [np.uint8, np.int16, np.int64, np.uint64, np.float32, np.float64])
@settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))
@given(seed=st.integers(0, 10**6), block=st.sampled_from([1, 7, 1 << 16]))
def test_slices_are_those_of_the_array(dtype: Any, seed: int, block: int) -> None:
    """Unexpected values, fractions, NaN and inf, counted in any block size, lie where numpy finds them."""
    rng = np.random.default_rng(seed)
    array = rng.integers(0, 6, (7, 3, 4)).astype(dtype)
    if array.dtype.kind == 'f':
        array[rng.random(array.shape) < 0.05] = np.nan
        array[rng.random(array.shape) < 0.05] = -np.inf
        array[rng.random(array.shape) < 0.05] = 1.25
    flat = array.reshape(7, -1)

    def blocks() -> Any:
        step = max(1, block // flat.shape[1])
        return (flat[begin : begin + step] for begin in range(0, len(flat), step))

    volume = Volume(array.dtype, (1, 7, 3, 4), 3, None, blocks)  # type: ignore[arg-type]
    record = FileRecord('x')
    count_labels(volume, record, (0, 1, 2))
    wrong = {str(v): flat == v for v in (3, 4, 5)}
    wrong.update(nan=np.isnan(flat), inf=np.isinf(flat), fractions=flat == 1.25)
    slices = {name: {z: int(n) for z, n in enumerate(where.sum(axis=1)) if n} for name, where in wrong.items()}
    assert record.slices == {name: counts for name, counts in slices.items() if counts}
    assert record.values == counted(array)
    assert (record.nan, record.inf) == (int(np.isnan(flat).sum()), int(np.isinf(flat).sum()))
    assert record.fractions == int((flat == 1.25).sum())
    image = FileRecord('x')
    count_not_finite(volume, image)
    assert (image.nan, image.inf) == (record.nan, record.inf)


def test_axes_that_simpleitk_refuses_are_reported_and_nibabel_reads_them(tmp_path: Path) -> None:
    affine = affine_of()
    affine[0, 1] = 0.2
    image = nibabel.Nifti1Image(picture(0), affine)
    image.set_qform(None, 0)
    nibabel.save(image, str(tmp_path / 'a.nii.gz'))
    with pytest.raises(CannotRead):
        read(tmp_path / 'a.nii.gz', 'SimpleITKIO')
    assert read(tmp_path / 'a.nii.gz', 'NibabelIO')[0].shape == (1, 8, 10, 12)


@pytest.mark.parametrize('kind', [nibabel.Nifti1Header, nibabel.Nifti2Header])
@pytest.mark.parametrize('endianness', ['<', '>'])
@pytest.mark.parametrize('name', ['a.nii', 'a.nii.gz'])
def test_axes_that_are_not_finite_do_not_reach_simpleitk(kind: Any, endianness: str, name: str, tmp_path: Path) -> None:
    """It never comes back from some of them; a fuzzer met this one."""
    header = kind(endianness=endianness)
    header.set_data_shape((6, 5, 4))
    header.set_data_dtype(np.int16)
    header['sform_code'], header['srow_x'], header['srow_y'] = 1, (1, 0, 0, 0), (352, np.inf, 0, 0)
    header['magic'] = b'n+1' if kind is nibabel.Nifti1Header else b'n+2'
    header['vox_offset'] = 352 if kind is nibabel.Nifti1Header else 544
    content = header.binaryblock + bytes(4 + 6 * 5 * 4 * 2)
    (tmp_path / name).write_bytes(gzip.compress(content) if name.endswith('.gz') else content)
    with pytest.raises(CannotRead):
        read(tmp_path / name, 'SimpleITKIO')
