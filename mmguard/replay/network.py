"""The model of a config, on the CPU."""

from __future__ import annotations

import contextlib
import copy
import os
from typing import Any, Dict, Iterator, List, Optional

import numpy as np
import torch
from mmengine.registry import MODELS
from torch import nn

from mmguard.replay.errors import CannotReplay, words_of
from mmguard.replay.scope import in_scope


@contextlib.contextmanager
def without_gpu() -> Iterator[None]:
    """Hides the GPUs from whatever looks for one."""
    before = os.environ.get('CUDA_VISIBLE_DEVICES')
    os.environ['CUDA_VISIBLE_DEVICES'] = ''
    try:
        yield
    finally:
        if before is None:
            del os.environ['CUDA_VISIBLE_DEVICES']
        else:
            os.environ['CUDA_VISIBLE_DEVICES'] = before


def build_model(config: Any, weights: Optional[str] = None) -> nn.Module:
    """Builds the model as a training begins with it, without weights that would have to be downloaded.

    Args:
        config (mmengine.Config): It, loaded. Not changed.
        weights (str, optional): A checkpoint to load. ``None``: random weights, always the same.

    Raises:
        CannotReplay: It cannot be built, or the checkpoint not be loaded.
    """
    from mmengine.model import revert_sync_batchnorm

    if not config.get('model'):
        raise CannotReplay(f'{config.filename}: no model')
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
            raise CannotReplay(f'{config.filename}: the model cannot be built on the CPU: {words_of(error)}') from error
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
    try:
        with _known_types():
            state: Any = torch.load(file, map_location='cpu', weights_only=True)
    except OSError as error:
        raise CannotReplay(f'--weights {file}: {error.strerror or error}') from error
    except Exception as error:  # a damaged file raises anything
        raise CannotReplay(
            f'--weights {file}: not loaded, it holds more than tensors, or is damaged ({words_of(error, 200)}). A file '
            f"that you trust can be made plain: torch.save(torch.load(FILE, weights_only=False)['state_dict'], NEW)"
        ) from error
    for key in ('state_dict', 'model'):
        state = state.get(key, state) if isinstance(state, dict) else {}
    found: Dict[str, torch.Tensor] = {
        (name[7:] if name.startswith('module.') else name): value
        for name, value in state.items()
        if isinstance(value, torch.Tensor)
    }
    mine = model.state_dict()
    fitting = {name: value for name, value in found.items() if name in mine and mine[name].shape == value.shape}
    # A few that do not fit would leave random weights among the trained ones without a word.
    missing = [name for name in mine if name not in fitting and not name.endswith('num_batches_tracked')]
    if missing:
        raise CannotReplay(
            f'--weights {file}: not of this model: {len(missing)} of {len(mine)} tensors are missing or of another '
            f'shape, first {missing[0]}. Is it a checkpoint of this config?'
        )
    model.load_state_dict(fitting, strict=False)


@contextlib.contextmanager
def _known_types() -> Iterator[None]:
    """What checkpoints of mmengine hold beside tensors: the history of the log, in numpy arrays."""
    if not hasattr(torch.serialization, 'safe_globals'):  # torch < 2.5
        yield
        return
    from mmengine.logging import HistoryBuffer

    types: List[Any] = [HistoryBuffer, np.ndarray, np.dtype, np.zeros(1).__reduce__()[0], np.float64(0).__reduce__()[0]]
    types += [type(np.dtype(name)) for name in ('float64', 'float32', 'int64', 'int32')]
    # It holds its own methods, too, by their names. The real getattr would let a file reach anything.
    types += [(_no_method, f'{module}.getattr') for module in ('builtins', '__builtin__')]
    methods: Dict[str, Any] = getattr(HistoryBuffer, '_statistics_methods', {})
    before = dict(methods)
    try:
        with torch.serialization.safe_globals(types):
            yield
    finally:
        # A history that is loaded writes its methods, which are none here, into those of the class.
        methods.clear()
        methods.update(before)


def _no_method(owner: Any, name: str) -> None:
    """In place of ``getattr`` in a checkpoint."""
