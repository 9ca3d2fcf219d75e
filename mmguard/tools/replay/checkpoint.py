"""Checkpoints, read without what a pickle may do."""

from __future__ import annotations

import mmap
import pickle
import tarfile
from pathlib import Path
from typing import Any

import torch

from mmguard.errors import CannotRun
from mmguard.text.failures import words_of


def read_checkpoint(file: str) -> Any:
    """Read the tensors of a checkpoint, in their dicts and lists.

    Raises:
        CannotRun: There is none, it is damaged, or it holds more than tensors.
    """
    try:
        _refuse_archives(Path(file))
        return torch.load(file, map_location='cpu', weights_only=True)
    except OSError as error:
        raise CannotRun(f'--weights {file}: {error.strerror or error}') from error
    except pickle.UnpicklingError as error:
        raise CannotRun(
            f'--weights {file}: refused, it is damaged or holds more than tensors ({words_of(error, 200)}). Nothing of '
            f'it was run. Keep the tensors of a file that you trust, as the checkpoints of mmengine: '
            f"torch.save(torch.load(FILE, weights_only=False)['state_dict'], NEW)"
        ) from error
    except Exception as error:  # a damaged file raises anything
        raise CannotRun(f'--weights {file}: damaged, or no checkpoint ({words_of(error, 200)})') from error


def _refuse_archives(file: Path) -> None:
    """Those that ``torch.load`` would run as TorchScript, or unpack, instead of reading the pickles in them."""
    # The name itself, wherever it is: zip files can be made that list one thing to Python and another to torch.
    with file.open('rb') as opened, mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ) as data:
        if data.find(b'constants.pkl') >= 0:
            raise pickle.UnpicklingError('it is a TorchScript archive, which is a program')
    if tarfile.is_tarfile(file):
        raise pickle.UnpicklingError('it is a tar archive, as torch 0.1 wrote it')
