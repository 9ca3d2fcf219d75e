"""Finds recorded samples in a data set, whatever it is wrapped in and wherever its files lie."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Dict, Iterator, List, Tuple

from mmguard.failures import words_of
from mmguard.replay.errors import CannotReplay
from mmguard.replay.paths import common_tail, parts_of
from mmguard.replay.scope import in_scope

_PATHS = ('img_path', 'seg_map_path')


@dataclass(frozen=True)
class Place:
    """Where a sample is in a data set.

    Args:
        dataset (BaseDataset): The innermost data set, or the MultiImageMixDataset around it, that runs the pipeline.
        index (int): Its number there.
    """

    dataset: Any
    index: int

    @property
    def mixes(self) -> bool:
        """Whether other images are mixed in."""
        return _mixes(self.dataset)

    @property
    def info(self) -> Dict[str, Any]:
        """What is known of the sample before any file is read."""
        dataset = self.dataset
        while _mixes(dataset):
            dataset = dataset.dataset
        return dict(dataset.get_data_info(self.index))

    @property
    def transforms(self) -> List[Any]:
        """The steps of the pipeline that loads the sample."""
        dataset = self.dataset
        while _mixes(dataset):
            dataset = dataset.dataset
        return list(getattr(getattr(dataset, 'pipeline', None), 'transforms', ()))

    def load(self) -> Any:
        """The sample as training gets it; ``None`` where the pipeline leaves none."""
        return self.dataset[self.index] if self.mixes else self.dataset.prepare_data(self.index)


def build_dataset(config: Any) -> Any:
    """The training data set of a config, its annotations read.

    Raises:
        CannotReplay: There is none, or it cannot be built.
    """
    from mmengine.registry import DATASETS

    dataset = (config.get('train_dataloader') or {}).get('dataset')
    if dataset is None:
        raise CannotReplay(f'{config.filename}: no train_dataloader with a data set')
    with in_scope(config):
        try:
            built = DATASETS.build(dataset)
            if hasattr(built, 'full_init'):
                built.full_init()
        except Exception as error:
            raise CannotReplay(
                f'{config.filename}: the training data set cannot be built: {words_of(error)}. Is data_root right on '
                f'this machine?'
            ) from error
    if not len(built):
        raise CannotReplay(f'{config.filename}: the training data set holds no sample; is data_root right here?')
    return built


class Places:
    """The samples of a data set, by the paths of their files.

    Args:
        dataset (BaseDataset): It, wrappers included.
    """

    def __init__(self, dataset: Any) -> None:
        self._by_name: Dict[str, List[Tuple[str, Place]]] = {}
        self.first = ''
        self.count = 0
        for leaf, size in _leaves(dataset):
            for index in range(size):
                place = Place(leaf, index)
                info = place.info
                self.count += 1
                for path in (str(info[key]) for key in _PATHS if info.get(key)):
                    self.first = self.first or path
                    self._by_name.setdefault(parts_of(path)[-1], []).append((path, place))

    def find(self, path: str) -> Tuple[str, List[Place]]:
        """The sample whose path shares the longest end with this one.

        Args:
            path (str): An image or a label file, as it was named on any machine.

        Returns:
            tuple: the path here, and its places: several where a data set lists the file several times.

        Raises:
            CannotReplay: None has this file name, or several fit equally well.
        """
        if path == '<unknown>':
            raise CannotReplay("the record does not name its file: 'img_path' is missing in the meta_keys of Pack...")
        candidates = self._by_name.get(parts_of(path)[-1], [])
        if not candidates:
            raise CannotReplay(
                f'{path}: none of the {self.count:,} training samples has this file name (the first is {self.first}). '
                f'Is it the config of this run?'
            )
        longest = max(common_tail(path, here) for here, _ in candidates)
        fitting: Dict[str, List[Place]] = {}
        for here, place in candidates:
            if common_tail(path, here) == longest:
                fitting.setdefault(here, []).append(place)
        if len(fitting) > 1:
            raise CannotReplay(
                f'{path}: {len(fitting)} files of the data set fit equally well: {", ".join(sorted(fitting)[:4])}. '
                f'Name the right one with --sample'
            )
        return next(iter(fitting.items()))


def _leaves(dataset: Any) -> Iterator[Tuple[Any, int]]:
    """The data sets inside of wrappers (Repeat, Concat, ClassBalanced, ...) and how many samples each holds."""
    if _mixes(dataset):
        yield dataset, len(dataset.dataset)
    elif hasattr(dataset, 'datasets'):
        for inner in dataset.datasets:
            yield from _leaves(inner)
    elif hasattr(dataset, 'dataset'):
        yield from _leaves(dataset.dataset)
    elif hasattr(dataset, 'prepare_data') and hasattr(dataset, 'get_data_info'):
        yield dataset, len(dataset)
    else:
        raise CannotReplay(
            f'{type(dataset).__name__}: no data set of mmengine (without get_data_info and prepare_data), so its '
            f'samples cannot be found by their files'
        )


def _mixes(dataset: Any) -> bool:
    """Whether it is a MultiImageMixDataset."""
    return hasattr(dataset, 'pipeline_types') and hasattr(dataset, 'dataset')
