"""Samples of a config's data set, which is built as in training; a sample is found by its file."""

from __future__ import annotations

import pickle
import posixpath
import random
from dataclasses import dataclass
from typing import Any, Dict, Iterator, List, Tuple

import numpy as np
import torch

from mmguard.config.read import ReadConfig, check_may_build, from_mmengine
from mmguard.config.read import load_config as load_file
from mmguard.config.recognition import CHECK_TARGET_ADVICE
from mmguard.config.tree import describe_wrong_types
from mmguard.errors import CannotRun
from mmguard.properties.program import Program
from mmguard.properties.result import NoSamples, Unavailable, reports_no_samples
from mmguard.text import describe_error

_PATHS = ('img_path', 'seg_map_path')
_NO_FILES_REASON = (
    'no file matches data_root, data_prefix and the suffixes of the config, or all files were filtered out'
)


def load_config(path: str, run_code: bool = False) -> Any:
    """Load a config that will be built; refuse a config in YAML or JSON unless ``run_code`` is true."""
    config = load_file(path, run_code=run_code)
    check_may_build(path, run_code)
    wrong_types = ReadConfig(config.to_dict()).wrong_types
    if wrong_types:
        raise CannotRun(f'{path}: {describe_wrong_types(wrong_types)}')
    return config


def open_program(config: Any) -> Program:
    """Return a ``Program`` for a loaded config, with the guards that ``LabelGuardHook(guard=True)`` adds."""
    return Program(from_mmengine(config).written)


def build_dataset(program: Program, split: str = 'train') -> Any:
    """Build the data set of a split, and load its annotations; raise ``CannotRun`` if it is empty."""
    try:
        return program.build_dataset(split)
    except Unavailable as error:
        raise CannotRun(f'{error}{f": {_NO_FILES_REASON}" if isinstance(error, NoSamples) else ""}') from error
    except Exception as error:
        is_empty = reports_no_samples(error)
        hint = f'It has no samples: {_NO_FILES_REASON}' if is_empty else 'Is data_root right on this machine?'
        raise CannotRun(f'the {split} data set cannot be built: {describe_error(error)}. {hint}') from error


def get_random_state() -> Tuple[Any, ...]:
    """Return the state of the random generators that transforms use; it changes when a number is drawn."""
    return random.getstate(), pickle.dumps(np.random.get_state()), torch.get_rng_state().numpy().tobytes()


@dataclass(frozen=True)
class Sample:
    """A sample: its number among all samples, the data set that runs its pipeline, and its index in this data set.

    ``dataset`` is a MultiImageMixDataset if one wraps the sample, else the innermost data set.
    """

    number: int
    dataset: Any
    index: int

    @property
    def stages(self) -> List[Any]:
        """The data sets whose pipelines the sample passes, the innermost first."""
        found = [self.dataset]
        while _is_mixing(found[0]):
            found.insert(0, found[0].dataset)
        return found

    @property
    def info(self) -> Dict[str, Any]:
        """Data of the sample (``get_data_info``), before any file is read."""
        return dict(self.stages[0].get_data_info(self.index))

    def load(self) -> Any:
        """Return the sample as in training, or ``None`` if the pipeline drops the sample."""
        mixes = _is_mixing(self.dataset)
        return self.dataset[self.index] if mixes else self.dataset.prepare_data(self.index)


class Samples:
    """The samples of a data set, each once even if wrappers repeat them."""

    def __init__(self, dataset: Any) -> None:
        self._all: List[Sample] = []
        for inner, size in _find_pipeline_owners(dataset):
            self._all += [Sample(len(self._all) + index, inner, index) for index in range(size)]
        self._by_name: Dict[str, List[Tuple[str, Sample]]] = {}

    def __len__(self) -> int:
        return len(self._all)

    def __getitem__(self, number: int) -> Sample:
        return self._all[number]

    def find(self, path: str) -> Tuple[str, List[Sample]]:
        """Return the file of the data set whose path has the longest end in common with ``path``, and its samples."""
        if path == '<unknown>':
            raise CannotRun("the record has no file name: 'img_path' is missing in the meta_keys of Pack...")
        if not self._by_name:
            self._list_names()
        candidates = self._by_name.get(split_folders(path)[-1], [])
        if not candidates:
            first = next((here for (here, _), *_ in self._by_name.values()), 'has no file')
            raise CannotRun(
                f'{path}: none of the {len(self):,} samples has this file name (the first is {first}). Is this the '
                f'config of the run?'
            )
        tails: Dict[int, Dict[str, List[Sample]]] = {}
        for here, sample in candidates:
            tails.setdefault(count_common_tail(path, here), {}).setdefault(here, []).append(sample)
        fitting = tails[max(tails)]
        if len(fitting) > 1:
            raise CannotRun(
                f'{path}: {len(fitting)} files of the data set match this path: {", ".join(sorted(fitting)[:4])}'
            )
        return next(iter(fitting.items()))

    def _list_names(self) -> None:
        for sample in self._all:
            info = sample.info
            for path in (str(info[key]) for key in _PATHS if info.get(key)):
                self._by_name.setdefault(split_folders(path)[-1], []).append((path, sample))


def _find_pipeline_owners(dataset: Any) -> Iterator[Tuple[Any, int]]:
    """Yield (data set, number of samples) for each data set that runs a pipeline, also in wrappers (Concat, ...)."""
    if _is_mixing(dataset):
        yield dataset, len(dataset.dataset)
    elif hasattr(dataset, 'datasets'):
        for inner in dataset.datasets:
            yield from _find_pipeline_owners(inner)
    elif hasattr(dataset, 'dataset'):
        yield from _find_pipeline_owners(dataset.dataset)
    elif hasattr(dataset, 'prepare_data') and hasattr(dataset, 'get_data_info'):
        yield dataset, len(dataset)
    else:
        raise CannotRun(
            f'{type(dataset).__name__} is not a BaseDataset of mmengine (it lacks get_data_info), so its '
            f'samples cannot be found by their files: {CHECK_TARGET_ADVICE}'
        )


def _is_mixing(dataset: Any) -> bool:
    """Return True if a data set is a MultiImageMixDataset."""
    return hasattr(dataset, 'pipeline_types') and hasattr(dataset, 'dataset')


def split_folders(path: str) -> List[str]:
    r"""Split a path of POSIX or of Windows into folders and file name.

    Example:
        >>> split_folders('C:\\data\\.\\a.png')
        ['C:', 'data', 'a.png']
    """
    return [part for part in posixpath.normpath(path.replace('\\', '/')).split('/') if part not in ('', '.')]


def count_common_tail(one: str, other: str) -> int:
    """Return the number of folders and file names that two paths have in common, counted from the end.

    Example:
        >>> count_common_tail('/home/me/data/train/a.png', '/mnt/data/train/a.png')
        3
    """
    count = 0
    for mine, yours in zip(reversed(split_folders(one)), reversed(split_folders(other))):
        if mine != yours:
            break
        count += 1
    return count
