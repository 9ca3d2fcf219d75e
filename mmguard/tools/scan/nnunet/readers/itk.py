"""SimpleITK: headers as nnU-Net's reader sees them, and the files that only it reads."""

from __future__ import annotations

import os
import re
import struct
import zlib
from functools import partial
from typing import Any, Optional, Tuple

import numpy as np

from mmguard.files.regular import check_regular, open_regular
from mmguard.tools.scan.faults import TRUNCATED
from mmguard.tools.scan.nnunet.readers.content import Content
from mmguard.tools.scan.nnunet.readers.volume import CannotRead, Geometry, Volume, blocks_of
from mmguard.tools.scan.sizes import can_hold

#: Headers of NRRD and MetaImage begin a file, and may name another one for the voxels.
_HEAD = 1 << 14
_DETACHED = re.compile(rb'^(data ?file:|ElementDataFile\s*=\s*(?!\s|LOCAL))', re.IGNORECASE | re.MULTILINE)
_GZIP = b'\x1f\x8b'
_PACKED = re.compile(rb'^(encoding:\s*(gz|bz)|CompressedData\s*=\s*T)', re.IGNORECASE | re.MULTILINE)
#: Where the packed voxels of a MetaImage or of a NRRD begin, of those forms that SimpleITK writes.
_VOXELS = re.compile(
    rb'^ObjectType.*?^ElementDataFile\s*=\s*LOCAL\s*?\n|^NRRD(?!.*?^(?:line|byte) ?skip).*?\r?\n\r?\n', re.S | re.M
)
#: Of zlib or gzip, whichever it is; both have a checksum.
_ZLIB_OR_GZIP = 47
_PIECE = 1 << 20
#: Size of a NIfTI header -> where its twelve numbers of the axes begin, and their type.
_AXES = {348: (280, 'f4'), 540: (400, 'f8')}


def _simple_itk() -> Optional[Any]:
    try:
        import SimpleITK
    except ImportError:
        return None
    SimpleITK.ProcessObject.GlobalWarningDisplayOff()
    return SimpleITK


def has_simple_itk() -> bool:
    return _simple_itk() is not None


def itk_header(path: str) -> Optional[Tuple[Tuple[int, ...], int, Geometry]]:
    """Shape (channels, z, y, x), axes and geometry by the header alone; ``None`` without SimpleITK.

    Raises:
        CannotRead: SimpleITK refuses the file, and so does nnU-Net.
    """
    itk = _simple_itk()
    if itk is None:
        return None
    reader = _opened(itk, path)
    if not np.linalg.det(np.reshape(reader.GetDirection(), (reader.GetDimension(), -1))):
        # SimpleITK says so only when it reads the voxels.
        raise CannotRead('refused by SimpleITK', 'the axes in the header lie in one plane: their determinant is 0')
    return _read_header(reader)


def _opened(itk: Any, path: str) -> Any:
    reader = itk.ImageFileReader()
    if not path.isprintable() and any('\ud800' <= char <= '\udfff' for char in path):
        # Given such a name it ends the process.
        raise CannotRead('refused by SimpleITK', 'its name is not UTF-8: rename it')
    check_regular(path)
    _check_axes(path)
    reader.SetFileName(path)
    try:
        reader.ReadImageInformation()
    except RuntimeError as error:
        raise _refused(error) from error
    return reader


def _check_axes(path: str) -> None:
    """Refuses axes of a NIfTI that are not finite: SimpleITK may search for their rotation without end."""
    try:
        with open_regular(path) as file:
            head = Content(path, file).head(max(_AXES))
    except (CannotRead, OSError):
        return  # SimpleITK says what is wrong
    for order in '<>':
        (size,) = struct.unpack(f'{order}i', head[:4].ljust(4))
        if size in _AXES and len(head) >= size:
            begin, kind = _AXES[size]
            if not np.isfinite(np.frombuffer(head, f'{order}{kind}', 12, begin)).all():
                raise CannotRead(
                    'refused by SimpleITK', 'its axes (srow_x, srow_y, srow_z in the header) are not finite'
                )


def _check_size(path: str, reader: Any) -> None:
    """Refuses what the file is too small for, before SimpleITK takes memory for it."""
    with open_regular(path) as file:
        head = file.read(_HEAD)
    if _DETACHED.search(head):
        return  # the voxels lie in another file
    stored, numbers = os.path.getsize(path), reader.GetNumberOfComponents()
    for length in reader.GetSize():
        numbers *= int(length)
    packed = head.startswith(_GZIP) or _PACKED.search(head) is not None
    if not can_hold(stored, numbers, packed):
        raise CannotRead(TRUNCATED, f'{stored:,} bytes cannot hold the {numbers:,} numbers that its header promises')


def _inflated(path: str) -> Optional[int]:
    """The bytes of packed voxels; ``None`` where none are packed by zlib. SimpleITK does not look at the checksum, and
    of a MetaImage that it cannot inflate it hands out memory as it is.

    Raises:
        CannotRead: They are damaged, or cut off.
    """
    with open_regular(path) as file:
        head = file.read(_HEAD)
        begin = _VOXELS.match(head)
        if begin is None or _PACKED.search(head, 0, begin.end()) is None:
            return None
        file.seek(begin.end())
        voxels, size = zlib.decompressobj(_ZLIB_OR_GZIP), 0
        try:
            for packed in iter(partial(file.read, _PIECE), b''):
                while packed and not voxels.eof:
                    size += len(voxels.decompress(packed, _PIECE))
                    packed = voxels.unconsumed_tail
        except zlib.error as error:
            raise CannotRead('damaged', f'zlib: {error}') from error
    if not voxels.eof:
        raise CannotRead(TRUNCATED, 'the packed voxels end too early')
    return size


def open_itk(path: str) -> Volume:
    """Opens a file of any kind that SimpleITK reads; its voxels are in memory then.

    Raises:
        CannotRead: SimpleITK refuses it, or is not installed.
    """
    itk = _simple_itk()
    if itk is None:
        ending = os.path.splitext(path)[1]
        raise CannotRead('needs SimpleITK', f'{ending} is read by SimpleITK: pip install SimpleITK')
    reader = _opened(itk, path)
    _check_size(path, reader)
    inflated = _inflated(path)
    try:
        image = reader.Execute()
        array = np.asarray(itk.GetArrayFromImage(image))
    except RuntimeError as error:
        raise _refused(error) from error
    if inflated is not None and inflated < array.nbytes:
        raise CannotRead(TRUNCATED, '', array.nbytes - inflated)
    shape, dimension, geometry = _read_header(image)
    components = image.GetNumberOfComponentsPerPixel()
    form = f'{components} values per voxel: nnU-Net takes one file per channel' if components > 1 else ''
    if components > 1:
        array = np.moveaxis(array, -1, 0)
    return Volume(array.dtype, shape, dimension, geometry, blocks_of(np.ascontiguousarray(array)), form=form)


def _read_header(header: Any) -> Tuple[Tuple[int, ...], int, Geometry]:
    size, dimension = header.GetSize()[::-1], header.GetDimension()
    spacing = [abs(length) for length in header.GetSpacing()[::-1]]
    if dimension == 2:
        # As nnU-Net: one slice, far from its neighbours.
        size, spacing = (1, *size), [max(spacing) * 999, *spacing]
    elif dimension > 3:
        spacing = spacing[1:]
    shape = size if dimension > 3 else (1, *size)
    return tuple(shape), dimension, Geometry(spacing, list(header.GetOrigin()), list(header.GetDirection()))


def _refused(error: RuntimeError) -> CannotRead:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    said = lines[-1] if lines else str(error)
    if 'orthonormal' in said:
        return CannotRead('axes not orthonormal', f'SimpleITK: {said[:200]}')
    return CannotRead('refused by SimpleITK', said[:200])
