"""Choice of nnU-Net's reader for a data set, and of the corresponding reader here."""

from __future__ import annotations

import warnings
from contextlib import ExitStack
from typing import Dict, List, Optional, Tuple

import numpy as np

from mmguard.files.regular import open_regular
from mmguard.formats.faults import fault_of
from mmguard.formats.nnunet.nifti import itk_header, open_nifti
from mmguard.formats.nnunet.volume import CannotRead, Geometry, Volume, blocks_of

#: Spacing reported by NaturalImage2DIO, whose files have none.
_SPACING = (999.0, 1.0, 1.0)


def open_flat(path: str) -> Volume:
    """Open a 2-D image: gray, RGB or RGBA.

    A palette is converted to its colors, as in skimage.

    Raises:
        CannotRead: The file is damaged or has other channels.
    """
    array = _pixels(path)
    if array.ndim == 3 and array.shape[-1] in (3, 4):
        array = np.moveaxis(array, -1, 0)[:, None]
    elif array.ndim == 2:
        array = array[None, None]
    else:
        raise CannotRead('neither gray nor RGB', f'an array of shape {array.shape}')
    return Volume(array.dtype, array.shape, 2, Geometry(list(_SPACING)), blocks_of(np.ascontiguousarray(array)))


def _pixels(path: str) -> np.ndarray:
    from PIL import Image

    head = b''
    try:
        with warnings.catch_warnings(), open_regular(path) as file:
            warnings.simplefilter('ignore')  # of large or odd files
            head = file.read(16)
            if not head:
                raise CannotRead('empty', 'the file is empty')
            file.seek(0)
            with Image.open(file, formats=('PNG', 'BMP', 'JPEG')) as image:
                array = np.asarray(image.convert('RGB') if image.mode == 'P' else image)  # same as skimage
    except CannotRead:
        raise
    except Exception as error:  # decoders raise many types for a damaged file
        raise CannotRead(fault_of(error, head), str(error)[:200]) from error
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


def choose_reader(wanted: Optional[str], ending: str, example: Optional[str]) -> Tuple[str, List[str]]:
    """Return nnU-Net's reader of a data set, empty if it has none for this extension, and notes for the user.

    Args:
        wanted (str, optional): ``overwrite_image_reader_writer`` of dataset.json.
        ending (str): File extension.
        example (str, optional): First image.
    """
    notes: List[str] = []
    if wanted in READERS:
        return str(wanted), notes
    fitting = [name for name, endings in READERS.items() if ending.lower() in endings]
    chosen = next((name for name in fitting if _can_read(name, example)), fitting[0] if fitting else '')
    if wanted:
        notes.append(f'the reader {wanted} is not known here: the files are read as by {chosen or "no reader"}')
    return chosen, notes


def _can_read(name: str, example: Optional[str]) -> bool:
    if name != 'SimpleITKIO' or example is None or not example.lower().endswith(NIFTI):
        return True
    try:
        itk_header(example)
    except CannotRead as error:
        return 'orthonormal' not in error.fault  # a damaged file is damaged for every reader
    except ImportError:  # reported when the files are read
        return True
    return True


def open_volume(path: str, reader: str, stack: ExitStack) -> Volume:
    """Open a volume with nnU-Net's reader; the caller closes ``stack``, and so the file, after reading the voxels.

    Raises:
        CannotRead: The file is damaged.
        OSError: The file cannot be opened.
    """
    if reader == 'NaturalImage2DIO':
        return open_flat(path)
    return open_nifti(path, stack.enter_context(open_regular(path)), reader)
