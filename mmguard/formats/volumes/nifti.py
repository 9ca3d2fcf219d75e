"""Reader of NIfTI files: nibabel reads the header, nnU-Net's reader the geometry, and mmguard the voxels.

nibabel's ``dataobj`` is not used: it allocates a slice before it reads it (858 MiB for a file of 62 bytes whose header
claims 30,000 x 30,000 voxels), skips gzip's checksum, and does not report how many voxels are missing.
"""

from __future__ import annotations

import importlib
import os
import struct
import warnings
from contextlib import ExitStack
from functools import partial
from typing import IO, Any, Dict, Iterator, List, Optional, Tuple

import numpy as np

from mmguard.files.images import open_image
from mmguard.files.regular import check_regular, open_regular
from mmguard.formats.faults import TOO_LARGE, describe_fault
from mmguard.formats.volumes import (
    CannotRead,
    Content,
    Geometry,
    Volume,
    count_rows_per_block,
    split_into_blocks,
)

_NIFTI_1, _NIFTI_2 = 348, 540
#: Size of a NIfTI header -> offset and type of the twelve numbers of its axes.
_AXES = {_NIFTI_1: (280, 'f4'), _NIFTI_2: (400, 'f8')}


def read_itk_header(path: str) -> Tuple[Tuple[int, ...], int, Geometry]:
    """Read the header of a volume with SimpleITK: shape (channels, z, y, x), number of axes, and geometry.

    Raises:
        CannotRead: SimpleITK, and therefore nnU-Net, refuses the file.
    """
    import SimpleITK

    SimpleITK.ProcessObject.GlobalWarningDisplayOff()
    header = SimpleITK.ImageFileReader()
    if not path.isprintable() and any('\ud800' <= char <= '\udfff' for char in path):
        # Such a name crashes the process.
        raise CannotRead('refused by SimpleITK', 'its name is not UTF-8: rename it')
    check_regular(path)
    _check_axes(path)
    header.SetFileName(path)
    try:
        header.ReadImageInformation()
    except RuntimeError as error:
        said = next((line.strip() for line in reversed(str(error).splitlines()) if line.strip()), str(error))
        if 'orthonormal' in said:
            raise CannotRead('axes not orthonormal', f'SimpleITK: {said[:200]}') from error
        raise CannotRead('refused by SimpleITK', said[:200]) from error
    size, dimension = header.GetSize()[::-1], header.GetDimension()
    if not np.linalg.det(np.reshape(header.GetDirection(), (dimension, -1))):
        # SimpleITK only reports this when reading the voxels.
        raise CannotRead('refused by SimpleITK', 'the axes in the header lie in one plane: their determinant is 0')
    spacing = [abs(length) for length in header.GetSpacing()[::-1]]
    if dimension == 2:
        # Same as nnU-Net: a single slice, with a large spacing along z.
        size, spacing = (1, *size), [max(spacing) * 999, *spacing]
    elif dimension > 3:
        spacing = spacing[1:]
    shape = size if dimension > 3 else (1, *size)
    return tuple(shape), dimension, Geometry(spacing, list(header.GetOrigin()), list(header.GetDirection()))


def _check_axes(path: str) -> None:
    """Raise :class:`CannotRead` if NIfTI axes are not finite: SimpleITK may hang when it computes their rotation."""
    try:
        with open_regular(path) as file:
            head = Content(path, file).read_head(max(_AXES))
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


#: A slice with more voxels is read line by line.
LARGE_SLICE = 1 << 24


def open_nifti(path: str, file: IO[bytes], reader: str) -> Volume:
    """Open a ``.nii`` or ``.nii.gz``. The file must stay open until the voxels are read.

    Raises:
        CannotRead: The file is damaged, or nnU-Net's ``reader`` refuses it.
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
    header = _parse(content.read_head(_NIFTI_2))
    if nibabels:
        _ask_nibabel(path, header)
    try:
        dtype = np.dtype(header.get_data_dtype())
        shape = tuple(int(length) for length in header.get_data_shape())
        slope, inter = _get_scaling(header, nibabels)
        zooms = [float(zoom) for zoom in header.get_zooms()]
        begin = int(header.get_data_offset())
        affine = np.asarray(header.get_best_affine(), dtype=np.float64)
    except Exception as error:  # nibabel raises many types for a damaged header
        raise CannotRead('damaged', f'header: {error}') from error
    if not shape or min(shape) < 1 or dtype.itemsize < 1 or begin < _NIFTI_1:
        raise CannotRead('damaged', f'header: shape {shape}, type {dtype}, voxels from byte {begin} on')
    kind = 'colors' if dtype.names or dtype.kind == 'V' else f'of type {dtype}'
    form = '' if dtype.kind in 'iuf' and dtype.names is None else f'voxels are {kind}'
    refusal = None
    seen, dimension = (*(shape[3:] or (1,)), *(*shape, 1, 1)[2::-1]), len(shape)
    geometry = Geometry(spacing=zooms[:3][::-1], affine=affine.ravel().tolist())
    if nibabels:
        if dimension != 3:
            form = form or f'{dimension}-D: {reader} reads only 3-D files'
    else:
        try:
            seen, dimension, geometry = read_itk_header(path)
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


def _get_scaling(header: Any, nibabels: bool) -> Tuple[float, float]:
    slope, inter = header.get_slope_inter()
    slope, inter = 1.0 if slope is None else float(slope), 0.0 if inter is None else float(inter)
    tiny = float(np.finfo(np.float64).eps)
    if not nibabels and (abs(slope) <= tiny or (abs(slope - 1) <= tiny and abs(inter) <= tiny)):
        return 1.0, 0.0  # ITK does not scale in this case
    return slope, inter


def _read_blocks(content: Content, begin: int, length: int, dtype: np.dtype, voxels: int) -> Iterator[np.ndarray]:
    for piece in content.read_blocks(begin, length, voxels * dtype.itemsize * count_rows_per_block(voxels)):
        yield np.frombuffer(piece, dtype).reshape(-1, voxels)


#: Spacing reported by NaturalImage2DIO, whose files have none.
_SPACING = (999.0, 1.0, 1.0)


def open_flat(path: str) -> Volume:
    """Open a 2-D image: gray, RGB or RGBA.

    A palette is converted to its colors, as in skimage.

    Raises:
        CannotRead: The file is damaged, or is neither gray, RGB nor RGBA.
    """
    array = _read_pixels(path)
    if array.ndim == 3 and array.shape[-1] in (3, 4):
        array = np.moveaxis(array, -1, 0)[:, None]
    elif array.ndim == 2:
        array = array[None, None]
    else:
        raise CannotRead('neither gray nor RGB', f'an array of shape {array.shape}')
    return Volume(array.dtype, array.shape, 2, Geometry(list(_SPACING)), split_into_blocks(np.ascontiguousarray(array)))


def _read_pixels(path: str) -> np.ndarray:
    head = b''
    try:
        with warnings.catch_warnings(), open_regular(path) as file:
            warnings.simplefilter('ignore')  # of large or odd files
            head = file.read(16)
            if not head:
                raise CannotRead('empty', 'the file is empty')
            with open_image(file, decodes=True, formats=('PNG', 'BMP', 'JPEG')) as image:
                array = np.asarray(image.convert('RGB') if image.mode == 'P' else image)  # same as skimage
    except CannotRead:
        raise
    except Exception as error:  # decoders raise many types for a damaged file
        raise CannotRead(describe_fault(error, head), str(error)[:200]) from error
    # Cast instead of a view: pillow stores True as a byte of 255.
    return array.astype(np.uint8) if array.dtype == np.bool_ else array


#: nnU-Net's readers in the order of its registry -> file extensions.
READERS: Dict[str, Tuple[str, ...]] = {
    'NaturalImage2DIO': ('.png', '.bmp', '.tif'),
    'SimpleITKIO': ('.nii.gz', '.nrrd', '.mha', '.gipl'),
    'Tiff3DIO': ('.tif', '.tiff'),
    'NibabelIO': ('.nii', '.nii.gz'),
}
NIFTI = ('.nii', '.nii.gz')
#: Extensions of NaturalImage2DIO that are read here.
FLAT = ('.png', '.bmp')


def choose_reader(declared: Optional[str], ending: str, first_image: Optional[str]) -> Tuple[str, List[str]]:
    """Return the name of nnU-Net's reader for a data set (empty if none reads the extension), and notes for the user.

    Args:
        declared (str, optional): ``overwrite_image_reader_writer`` of dataset.json.
        ending (str): File extension.
        first_image (str, optional): Path of the first image.
    """
    notes: List[str] = []
    if declared in READERS:
        return str(declared), notes
    fitting = [name for name, endings in READERS.items() if ending.lower() in endings]
    chosen = next((name for name in fitting if _can_read(name, first_image)), fitting[0] if fitting else '')
    if declared:
        notes.append(f'mmguard does not know the reader {declared}. Reader used instead: {chosen or "none"}')
    return chosen, notes


def _can_read(name: str, first_image: Optional[str]) -> bool:
    if name != 'SimpleITKIO' or first_image is None or not first_image.lower().endswith(NIFTI):
        return True
    try:
        read_itk_header(first_image)
    except CannotRead as error:
        return 'orthonormal' not in error.fault  # a damaged file is damaged for every reader
    except ImportError:  # reported when the files are read
        return True
    return True


def open_volume(path: str, reader: str, stack: ExitStack) -> Volume:
    """Open a volume as nnU-Net's ``reader`` does. The file stays open until the caller closes ``stack``.

    Raises:
        CannotRead: The file is damaged.
        OSError: The file cannot be opened.
    """
    if reader == 'NaturalImage2DIO':
        return open_flat(path)
    return open_nifti(path, stack.enter_context(open_regular(path)), reader)


def explain_unread(reader: str, ending: str) -> str:
    """Return the reason why files with this ending cannot be read (format, missing package), or '' if they can."""
    if reader and ending.lower() not in (FLAT if reader == 'NaturalImage2DIO' else NIFTI):
        return (
            f'{ending} files are not read: convert them to .nii.gz, for example with '
            f"SimpleITK.WriteImage(SimpleITK.ReadImage('a{ending}'), 'a.nii.gz'), and set file_ending to .nii.gz"
        )
    needed = ['pillow'] if reader == 'NaturalImage2DIO' else ['nibabel']
    needed += ['SimpleITK'] if reader.startswith('SimpleITK') else []
    missing = [package for package in needed if not is_installed('PIL' if package == 'pillow' else package)]
    if reader and missing:
        return f'{ending} files are read with {" and ".join(needed)}: pip install {" ".join(missing)}'
    return ''


def is_installed(name: str) -> bool:
    """True if a package can be imported."""
    try:
        importlib.import_module(name)
    except ImportError:
        return False
    return True
