"""Checkpoints, read without what a pickle may do."""

from __future__ import annotations

import io
import mmap
import pickle
import tarfile
from pathlib import Path
from typing import Any

import torch

from mmguard.errors import CannotRun
from mmguard.files.plain_pickle import RefusedName
from mmguard.text.failures import words_of
from mmguard.tools.replay import tensor_pickle
from mmguard.tools.replay.surroundings import environment

_TRUSTED = (
    "A file that you trust can be made plain: torch.save(torch.load(FILE, weights_only=False)['state_dict'], NEW)"
)


def read_checkpoint(file: str) -> Any:
    """The tensors of a checkpoint in their dicts and lists; what else it holds is not read.

    Raises:
        CannotRun: There is none, it is damaged, or it names a class or function that no checkpoint needs.
    """
    try:
        with environment('TORCH_FORCE_WEIGHTS_ONLY_LOAD', '0'):
            _refuse_archives(Path(file))
            try:
                return _load_weights_only(file)
            except RefusedName:
                if not _pickle_module_is_heeded():
                    raise
            # It holds more than tensors, as those of mmengine's runner do. With weights_only=True torch takes no pickle
            # module: it does not know that this one does just that.
            return torch.load(file, map_location='cpu', pickle_module=tensor_pickle, weights_only=False)
    except OSError as error:
        raise CannotRun(f'--weights {file}: {error.strerror or error}') from error
    except RefusedName as error:
        raise CannotRun(f'--weights {file}: refused, {error}. Nothing of it was run. {_TRUSTED}') from error
    except Exception as error:  # a damaged file raises anything
        raise CannotRun(f'--weights {file}: damaged, or no checkpoint ({words_of(error, 200)})') from error


def _pickle_module_is_heeded() -> bool:
    """Whether this torch unpickles with the module that it is given: torch 1.13 takes one, and uses Python's own."""
    probe = io.BytesIO()
    torch.save(complex, probe)
    probe.seek(0)
    try:
        torch.load(probe, pickle_module=tensor_pickle, weights_only=False)
    except RefusedName:
        return True
    return False


def _load_weights_only(file: str) -> Any:
    try:
        return torch.load(file, map_location='cpu', weights_only=True)
    except pickle.UnpicklingError as error:
        raise RefusedName(f'torch {torch.__version__} finds more than tensors in it, or damage ({error})') from error


def _refuse_archives(file: Path) -> None:
    """Those that ``torch.load`` would run as TorchScript, or unpack, instead of reading the pickles in them."""
    # The name itself, wherever it is: zip files can be made that list one thing to Python and another to torch.
    with file.open('rb') as opened, mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ) as data:
        if data.find(b'constants.pkl') >= 0:
            raise RefusedName('it is a TorchScript archive, which is a program')
    if tarfile.is_tarfile(file):
        raise RefusedName('it is a tar archive, as torch 0.1 wrote it')
