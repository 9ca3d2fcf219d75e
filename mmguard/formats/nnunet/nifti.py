"""NIfTI files: header read by nibabel, geometry by nnU-Net's reader, voxels by this module."""

from __future__ import annotations

import os
import struct
from functools import partial
from typing import IO, Any, Iterator, List, Tuple

import numpy as np

from mmguard.files.regular import check_regular, open_regular
from mmguard.formats.faults import TOO_LARGE
from mmguard.formats.nnunet.volume import CannotRead, Content, Geometry, Volume, rows_at_once

#: Size of a NIfTI header -> offset and type of the twelve numbers of its axes.
_AXES = {348: (280, 'f4'), 540: (400, 'f8')}


def itk_header(path: str) -> Tuple[Tuple[int, ...], int, Geometry]:
    """Return shape (channels, z, y, x), number of axes, and geometry of the header.

    Raises:
        CannotRead: SimpleITK, and therefore nnU-Net, refuses the file.
    """
    reader = _open_header(path)
    if not np.linalg.det(np.reshape(reader.GetDirection(), (reader.GetDimension(), -1))):
        # SimpleITK only reports this when reading the voxels.
        raise CannotRead('refused by SimpleITK', 'the axes in the header lie in one plane: their determinant is 0')
    return _read_header(reader)


def _open_header(path: str) -> Any:
    import SimpleITK

    SimpleITK.ProcessObject.GlobalWarningDisplayOff()
    reader = SimpleITK.ImageFileReader()
    if not path.isprintable() and any('\ud800' <= char <= '\udfff' for char in path):
        # Such a name crashes the process.
        raise CannotRead('refused by SimpleITK', 'its name is not UTF-8: rename it')
    check_regular(path)
    _check_axes(path)
    reader.SetFileName(path)
    try:
        reader.ReadImageInformation()
    except RuntimeError as error:
        raise _refuse(error) from error
    return reader


def _check_axes(path: str) -> None:
    """Refuse NIfTI axes that are not finite, because SimpleITK's search for their rotation may never end."""
    try:
        with open_regular(path) as file:
            head = Content(path, file).head(max(_AXES))
    except (CannotRead, OSError):
        return  # SimpleITK reports the reason
    for order in '<>':
        (size,) = struct.unpack(f'{order}i', head[:4].ljust(4))
        if size in _AXES and len(head) >= size:
            begin, kind = _AXES[size]
            if not np.isfinite(np.frombuffer(head, f'{order}{kind}', 12, begin)).all():
                raise CannotRead(
                    'refused by SimpleITK', 'its axes (srow_x, srow_y, srow_z in the header) are not finite'
                )


def _read_header(header: Any) -> Tuple[Tuple[int, ...], int, Geometry]:
    size, dimension = header.GetSize()[::-1], header.GetDimension()
    spacing = [abs(length) for length in header.GetSpacing()[::-1]]
    if dimension == 2:
        # Same as nnU-Net: one slice, far from its neighbors.
        size, spacing = (1, *size), [max(spacing) * 999, *spacing]
    elif dimension > 3:
        spacing = spacing[1:]
    shape = size if dimension > 3 else (1, *size)
    return tuple(shape), dimension, Geometry(spacing, list(header.GetOrigin()), list(header.GetDirection()))


def _refuse(error: RuntimeError) -> CannotRead:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    said = lines[-1] if lines else str(error)
    if 'orthonormal' in said:
        return CannotRead('axes not orthonormal', f'SimpleITK: {said[:200]}')
    return CannotRead('refused by SimpleITK', said[:200])


_NIFTI_1, _NIFTI_2 = 348, 540
#: A slice with more voxels is read line by line.
LARGE_SLICE = 1 << 24


def open_nifti(path: str, file: IO[bytes], reader: str) -> Volume:
    """Open a ``.nii`` or ``.nii.gz``; the file must stay open until the voxels are read.

    Raises:
        CannotRead: The file is damaged, or this reader of nnU-Net refuses its kind.
    """
    content = Content(path, file)
    nibabels = reader.startswith('Nibabel')
    if nibabels and path.lower().endswith('.gz') != content.is_gzipped:
        said = 'gzipped' if content.is_gzipped else 'not gzipped'
        raise CannotRead(said, f'{reader} expects gzip if, and only if, the name ends with .gz')
    unpacked = path[: -len('.gz')]
    if not nibabels and path.lower().endswith('.gz') and os.path.exists(unpacked):
        raise CannotRead(
            'shadowed by another file',
            f'SimpleITK reads {os.path.basename(unpacked)} instead, which is in the same folder',
        )
    header = _parse(content.head(_NIFTI_2))
    if nibabels:
        _ask_nibabel(path, header)
    try:
        dtype = np.dtype(header.get_data_dtype())
        shape = tuple(int(length) for length in header.get_data_shape())
        slope, inter = _scaling(header, nibabels)
        zooms = [float(zoom) for zoom in header.get_zooms()]
        begin = int(header.get_data_offset())
        affine = np.asarray(header.get_best_affine(), dtype=np.float64)
    except Exception as error:  # nibabel raises many types for a damaged header
        raise CannotRead('damaged', f'header: {error}') from error
    if not shape or min(shape) < 1 or dtype.itemsize < 1 or begin < _NIFTI_1:
        raise CannotRead('damaged', f'header: shape {shape}, type {dtype}, voxels from byte {begin} on')
    form = '' if dtype.kind in 'iuf' and dtype.names is None else f'voxels are {_describe_kind(dtype)}'
    refusal = None
    seen, dimension, geometry = _as_nibabel(shape, zooms, affine)
    if nibabels:
        if dimension != 3:
            form = form or f'{dimension}-D: {reader} takes 3-D files only'
    else:
        try:
            seen, dimension, geometry = itk_header(path)
        except CannotRead as error:
            refusal = error
    voxels, lines = shape[0], shape[1] if len(shape) > 1 else 1
    if voxels * lines <= LARGE_SLICE:
        voxels, lines = voxels * lines, 1
    if voxels > LARGE_SLICE:
        raise CannotRead(TOO_LARGE, f'header: shape {shape}')
    length = int(np.prod(shape, dtype=np.float64)) * dtype.itemsize
    return Volume(
        dtype=dtype,
        shape=seen,
        dimension=dimension,
        geometry=geometry,
        blocks=partial(_read_blocks, content, begin, length, dtype, voxels),
        check=partial(content.check, begin, length),
        slope=slope,
        inter=inter,
        lines=lines,
        form=form,
        refusal=refusal,
    )


def _parse(head: bytes) -> Any:
    from nibabel.nifti1 import Nifti1Header
    from nibabel.nifti2 import Nifti2Header

    size = {int.from_bytes(head[:4], 'little'), int.from_bytes(head[:4], 'big')}
    kind = Nifti2Header if _NIFTI_2 in size else Nifti1Header
    length = _NIFTI_2 if _NIFTI_2 in size else _NIFTI_1
    if not size & {_NIFTI_1, _NIFTI_2} or len(head) < length:
        raise CannotRead('not a NIfTI file', 'it does not begin with a NIfTI header')
    return kind(head[:length], check=False)


def _ask_nibabel(path: str, header: Any) -> None:
    """Correct small faults of the header in place, as nibabel does on loading.

    Raises:
        CannotRead: nibabel, and therefore nnU-Net, refuses the file.
    """
    import nibabel
    from nibabel.imageglobals import logger

    silent, logger.disabled = logger.disabled, True
    try:
        nibabel.load(path)
        header.check_fix(logger)
    except Exception as error:  # nibabel raises many types for a damaged header
        said = str(error).replace(path, os.path.basename(path))
        raise CannotRead('refused by nibabel', f'magic number {bytes(header["magic"])!r}: {said[:200]}') from error
    finally:
        logger.disabled = silent


def _scaling(header: Any, nibabels: bool) -> Tuple[float, float]:
    slope, inter = header.get_slope_inter()
    slope, inter = 1.0 if slope is None else float(slope), 0.0 if inter is None else float(inter)
    tiny = float(np.finfo(np.float64).eps)
    if not nibabels and (abs(slope) <= tiny or (abs(slope - 1) <= tiny and abs(inter) <= tiny)):
        return 1.0, 0.0  # ITK does not scale in this case
    return slope, inter


def _describe_kind(dtype: np.dtype) -> str:
    return 'colours' if dtype.names or dtype.kind == 'V' else f'of type {dtype}'


def _read_blocks(content: Content, begin: int, length: int, dtype: np.dtype, voxels: int) -> Iterator[np.ndarray]:
    for piece in content.blocks(begin, length, voxels * dtype.itemsize * rows_at_once(voxels)):
        yield np.frombuffer(piece, dtype).reshape(-1, voxels)


def _as_nibabel(
    shape: Tuple[int, ...], zooms: List[float], affine: np.ndarray
) -> Tuple[Tuple[int, ...], int, Geometry]:
    geometry = Geometry(spacing=zooms[:3][::-1], affine=affine.ravel().tolist())
    return (*shape[3:], *_three(shape)[::-1]) if len(shape) > 3 else (1, *_three(shape)[::-1]), len(shape), geometry


def _three(shape: Tuple[int, ...]) -> Tuple[int, ...]:
    return (*shape, 1, 1)[:3]
