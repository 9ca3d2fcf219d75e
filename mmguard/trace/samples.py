"""Samples of a config's data set, run through its pipeline under watch."""

from __future__ import annotations

import os
import random
import sys
import warnings
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Iterator, List, Optional, Set, Tuple, Union

import numpy as np

from mmguard import register
from mmguard.errors import CannotRun
from mmguard.failures import import_scope, words_of
from mmguard.stack import config_file
from mmguard.trace.recorder import Recorder, Run, Step
from mmguard.trace.snapshot import take
from mmguard.trace.story import Story, story_of

_EMPTY = 'holds no sample: no file has the data_root, data_prefix and suffixes of the config, or all were filtered out'


class CannotTrace(CannotRun):
    """Why there is nothing to trace, in words for the user."""


def load_config(path: Union[str, Path]) -> Any:
    """The config, its custom modules imported.

    Raises:
        CannotTrace: It cannot be loaded.
        Exception: What the import of its framework raises.
    """
    from mmengine.config import Config

    if os.getcwd() not in sys.path:  # as `python tools/train.py` has it
        sys.path.append(os.getcwd())
    try:
        with warnings.catch_warnings():
            warnings.simplefilter('ignore')
            config = Config.fromfile(config_file(str(path)))
    except Exception as error:  # a config is a program
        raise CannotTrace(f'{path}: the config cannot be loaded: {words_of(error)}') from error
    import_scope(config)
    return config


class Tracer:
    """A data set whose samples can be traced.

    Args:
        config (mmengine.Config): It, loaded.
        split (str): ``'train'``, ``'val'`` or ``'test'``.
        seed (int): Sample ``i`` is drawn with ``seed + i``, so that each can be had again.

    Raises:
        CannotTrace: There is no such data set, or it cannot be built.
    """

    def __init__(self, config: Any, split: str = 'train', seed: int = 0) -> None:
        self.seed = seed
        self.scope = config.get('default_scope') or 'mmengine'
        self.training = split == 'train'
        dataset = (config.get(f'{split}_dataloader') or {}).get('dataset')
        if dataset is None:
            raise CannotTrace(f'the config has no {split}_dataloader with a data set')
        with _scope(self.scope):
            from mmengine.registry import DATASETS, MODELS

            try:
                self.dataset = DATASETS.build(dataset)
                if hasattr(self.dataset, 'full_init'):
                    self.dataset.full_init()
            except Exception as error:
                empty = 'need at least one array' in str(error)  # what mmengine says of a data set without samples
                hint = f'. It {_EMPTY}' if empty else ''
                raise CannotTrace(f'the {split} data set cannot be built: {words_of(error)}{hint}') from error
            preprocessor = (config.get('model') or {}).get('data_preprocessor') or config.get('data_preprocessor')
            try:
                self.preprocessor = MODELS.build(preprocessor) if preprocessor else None
            except Exception:  # the model's affair; the data can be traced without
                self.preprocessor = None
        self._recorder = Recorder()
        self._watched: Set[int] = set()
        if not len(self):
            raise CannotTrace(f'the {split} data set {_EMPTY}')

    def __len__(self) -> int:
        return len(self.dataset)

    def find(self, sample: str) -> int:
        """The number of a sample.

        Args:
            sample (str): A number, or the path of its image or label file, or the end of one.

        Raises:
            CannotTrace: There is none, or several that end so.
        """
        if sample.lstrip('-').isdigit():
            if not 0 <= int(sample) < len(self):
                raise CannotTrace(f'--sample {sample}: the data set holds samples 0 to {len(self) - 1}')
            return int(sample)
        wanted = os.path.normpath(sample)
        found = [index for index in range(len(self)) if self._is_of(index, wanted)]
        if not found:
            raise CannotTrace(
                f'--sample {sample}: no image or label file of the {len(self):,} samples has this path or ends with it '
                f'(the first image: {self.dataset.get_data_info(0).get("img_path")})'
            )
        return found[0]

    def _is_of(self, index: int, wanted: str) -> bool:
        info = self.dataset.get_data_info(index)
        paths = [os.path.normpath(str(info[key])) for key in ('img_path', 'seg_map_path') if info.get(key)]
        return any(
            path == wanted or path.endswith(os.sep + wanted) or os.path.abspath(path) == os.path.abspath(wanted)
            for path in paths
        )

    def trace(self, index: int) -> Story:
        """Runs the pipeline on one sample. What it raises ends the story, and is told there."""
        recorder = self._recorder
        recorder.runs.clear()
        _seed(self.seed + index)
        error, results = '', None
        with _scope(self.scope), warnings.catch_warnings():
            warnings.simplefilter('ignore')
            try:
                target, inner = _target(self.dataset, index)
                self._watch(target)
                results = target[inner] if _mixes(target) else target.prepare_data(inner)
            except Exception as raised:
                error = words_of(raised)
            if not recorder.runs:
                raise CannotTrace(f'sample {index}: {error or "its pipeline was not run"}')
            run = recorder.runs[0]
            if results is None and not error:
                error = 'the pipeline left no sample (nothing to train on in it?); training draws another one'
            if results is not None:
                self._preprocess(run, results)
        return story_of(index, run, error)

    def _watch(self, target: Any) -> None:
        for leaf in _leaves(target):
            if id(leaf) not in self._watched:
                self._watched.add(id(leaf))
                self._recorder.watch(leaf.pipeline)
        if _mixes(target) and id(target) not in self._watched:
            self._watched.add(id(target))
            target.pipeline = self._recorder.watch_mixing(target.pipeline)

    def _preprocess(self, run: Run, results: Any) -> None:
        """What the model's data_preprocessor does to a batch of this one sample: it may pad the label map."""
        if self.preprocessor is None or not isinstance(results, dict) or 'inputs' not in results:
            return
        from mmengine.dataset import pseudo_collate

        try:
            batch = self.preprocessor(pseudo_collate([results]), self.training)
            after = take(type(self.preprocessor).__name__, {'data_samples': batch['data_samples'][0]})
        except Exception:  # it may need what a whole model has
            return
        run.steps.append(Step(self.preprocessor, after))

    def stories(self) -> Iterator[Story]:
        for index in range(len(self)):
            yield self.trace(index)


def _mixes(dataset: Any) -> bool:
    """Whether it is a MultiImageMixDataset."""
    return hasattr(dataset, 'pipeline_types') and hasattr(dataset, 'dataset')


def _target(dataset: Any, index: int) -> Tuple[Any, int]:
    """The data set inside of wrappers that holds a sample, and its number there."""
    if _mixes(dataset):
        return dataset, index
    if hasattr(dataset, 'datasets') and hasattr(dataset, '_get_ori_dataset_idx'):
        place, inner = dataset._get_ori_dataset_idx(index)
        return _target(dataset.datasets[place], inner)
    if hasattr(dataset, 'dataset'):
        if hasattr(dataset, 'repeat_indices'):
            return _target(dataset.dataset, dataset.repeat_indices[index])
        return _target(dataset.dataset, index % len(dataset.dataset))
    if not hasattr(dataset, 'prepare_data') or not hasattr(getattr(dataset, 'pipeline', None), 'transforms'):
        raise CannotTrace(f'{type(dataset).__name__} has no pipeline that can be watched')
    return dataset, index


def _leaves(dataset: Any) -> List[Any]:
    """The data sets inside of all wrappers."""
    if hasattr(dataset, 'datasets'):
        return [leaf for inner in dataset.datasets for leaf in _leaves(inner)]
    return _leaves(dataset.dataset) if hasattr(dataset, 'dataset') else [dataset]


@contextmanager
def _scope(name: Optional[str]) -> Iterator[None]:
    from mmengine.registry import DefaultScope

    register()
    with DefaultScope.overwrite_default_scope(name):
        yield


def _seed(seed: int) -> None:
    import torch

    random.seed(seed)
    np.random.seed(seed % 2**32)
    torch.manual_seed(seed)
