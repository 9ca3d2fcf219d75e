"""The model of a config on the CPU, and a checkpoint for it, read without what a pickle may do."""

from __future__ import annotations

import copy
import mmap
import os
import pickle
import tarfile
from pathlib import Path
from typing import Any, Dict, Optional

import torch
from mmengine.registry import MODELS
from torch import nn

from mmguard.errors import CannotRun
from mmguard.text.failures import words_of
from mmguard.tools.samples import in_scope


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


def build_model(config: Any, weights: Optional[str] = None) -> nn.Module:
    """Builds the model as a training begins with it, without weights that would have to be downloaded.

    Args:
        config (mmengine.Config): It, loaded. Not changed.
        weights (str, optional): A checkpoint to load. ``None``: random weights, always the same.

    Raises:
        CannotRun: It cannot be built, or the checkpoint not be loaded.
    """
    from mmengine.model import revert_sync_batchnorm

    if not config.get('model'):
        raise CannotRun(f'{config.filename}: no model')
    built = copy.deepcopy(config.model)
    if config.get('data_preprocessor'):  # as the runner does it
        built.setdefault('data_preprocessor', copy.deepcopy(config.data_preprocessor))
    leave_out_files(built)
    with in_scope(config):
        try:
            torch.manual_seed(0)  # so that two replays agree
            model = MODELS.build(built)
            if hasattr(model, 'init_weights'):
                model.init_weights()
        except Exception as error:
            raise CannotRun(f'{config.filename}: the model cannot be built on the CPU: {words_of(error)}') from error
    # SyncBN wants a GPU; with one sample on one device it is BN.
    model = revert_sync_batchnorm(model).cpu()
    if weights is not None:
        _load(model, weights)
    return model


def leave_out_files(config: Any) -> None:
    """Takes the weights of files that are not here out of a model's config, in place."""
    if isinstance(config, dict):
        if isinstance(config.get('pretrained'), str) and not os.path.isfile(config['pretrained']):
            config['pretrained'] = None
        init = config.get('init_cfg')
        if isinstance(init, dict) and 'checkpoint' in init and not os.path.isfile(str(init['checkpoint'])):
            config['init_cfg'] = None
    if isinstance(config, (dict, list, tuple)):
        for value in list(config.values()) if isinstance(config, dict) else config:
            leave_out_files(value)


def _load(model: nn.Module, file: str) -> None:
    state = read_checkpoint(file)
    for key in ('state_dict', 'model'):
        state = state.get(key, state) if isinstance(state, dict) else {}
    state = state if isinstance(state, dict) else {}
    found: Dict[str, torch.Tensor] = {
        (name[7:] if str(name).startswith('module.') else name): value
        for name, value in state.items()
        if isinstance(value, torch.Tensor)
    }
    mine = model.state_dict()
    fitting = {name: value for name, value in found.items() if name in mine and mine[name].shape == value.shape}
    # A few that do not fit would leave random weights among the trained ones without a word.
    missing = [name for name in mine if name not in fitting and not name.endswith('num_batches_tracked')]
    if missing:
        raise CannotRun(
            f'--weights {file}: not of this model: {len(missing)} of {len(mine)} tensors are missing or of another '
            f'shape, first {missing[0]}. Is it a checkpoint of this config?'
        )
    model.load_state_dict(fitting, strict=False)
