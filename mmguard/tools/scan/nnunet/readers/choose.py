"""Which of nnU-Net's readers a data set gets, and ours for it.

(nnunetv2/imageio/reader_writer_registry.py: the first class whose endings fit and that can read the first image.)
"""

from __future__ import annotations

from contextlib import ExitStack
from typing import Dict, List, Optional, Tuple

from mmguard.files.regular import open_regular
from mmguard.tools.scan.nnunet.readers.flat import open_flat
from mmguard.tools.scan.nnunet.readers.itk import itk_header
from mmguard.tools.scan.nnunet.readers.nifti import open_nifti
from mmguard.tools.scan.nnunet.readers.volume import CannotRead, Volume

#: nnU-Net's readers in the order of its registry -> endings.
READERS: Dict[str, Tuple[str, ...]] = {
    'NaturalImage2DIO': ('.png', '.bmp', '.tif'),
    'SimpleITKIO': ('.nii.gz', '.nrrd', '.mha', '.gipl'),
    'Tiff3DIO': ('.tif', '.tiff'),
    'NibabelIO': ('.nii', '.nii.gz'),
    'NibabelIOWithReorient': ('.nii', '.nii.gz'),
}
NIFTI = ('.nii', '.nii.gz')
#: Of NaturalImage2DIO those that are read here.
FLAT = ('.png', '.bmp')


def choose_reader(wanted: Optional[str], ending: str, example: Optional[str]) -> Tuple[str, List[str]]:
    """nnU-Net's reader of a data set.

    Args:
        wanted (str, optional): ``overwrite_image_reader_writer``.
        ending (str): ``file_ending``.
        example (str, optional): The first image.

    Returns:
        tuple: the name of the class (empty: nnU-Net has none for this ending), and what the user should know.
    """
    notes: List[str] = []
    if wanted == 'SimpleITKIOWithReorient':
        notes.append(f"{wanted} turns volumes before it compares them: origins and directions here are the files' own")
    if wanted in READERS or wanted == 'SimpleITKIOWithReorient':
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
        return 'orthonormal' not in error.fault  # what is damaged is damaged for every reader
    except ImportError:  # said where the files are to be read
        return True
    return True


def open_volume(path: str, reader: str, stack: ExitStack) -> Volume:
    """Opens a volume as nnU-Net's reader would.

    Args:
        path (str): The file.
        reader (str): nnU-Net's class.
        stack (ExitStack): Closes the file when the voxels have been read.

    Raises:
        CannotRead: It is damaged.
        OSError: It cannot be opened.
    """
    if reader == 'NaturalImage2DIO':
        return open_flat(path)
    return open_nifti(path, stack.enter_context(open_regular(path)), reader)
