"""Headers of NIfTI files as SimpleITK, and so nnU-Net's reader, sees them."""

from __future__ import annotations

import struct
from typing import Any, Tuple

import numpy as np

from mmguard.files.regular import check_regular, open_regular
from mmguard.tools.scan.nnunet.readers.content import Content
from mmguard.tools.scan.nnunet.readers.volume import CannotRead, Geometry

#: Size of a NIfTI header -> where its twelve numbers of the axes begin, and their type.
_AXES = {348: (280, 'f4'), 540: (400, 'f8')}


def itk_header(path: str) -> Tuple[Tuple[int, ...], int, Geometry]:
    """Return shape (channels, z, y, x), axes and geometry by the header.

    Raises:
        CannotRead: SimpleITK refuses the file, and so does nnU-Net.
    """
    reader = _opened(path)
    if not np.linalg.det(np.reshape(reader.GetDirection(), (reader.GetDimension(), -1))):
        # SimpleITK says so only when it reads the voxels.
        raise CannotRead('refused by SimpleITK', 'the axes in the header lie in one plane: their determinant is 0')
    return _read_header(reader)


def _opened(path: str) -> Any:
    import SimpleITK

    SimpleITK.ProcessObject.GlobalWarningDisplayOff()
    reader = SimpleITK.ImageFileReader()
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
