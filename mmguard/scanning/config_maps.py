"""Scan of an mmseg config: lists its data sets, and compares a few label maps with what the config's pipeline loads."""

from __future__ import annotations

import copy
import os
import warnings
from collections import Counter
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, Mapping, NamedTuple, Optional, Sequence, Tuple

import numpy as np

from mmguard.config.classes import find_class, get_type_name
from mmguard.config.recognition import CHECK_TARGET_ADVICE
from mmguard.facts.labels import LoaderFacts
from mmguard.files.regular import temporary_folder, write_whole
from mmguard.formats.faults import make_printable
from mmguard.formats.files import FILES, check_local_dataset, select_spread
from mmguard.formats.maps.read import read_map
from mmguard.formats.maps.sources import MapSource
from mmguard.formats.maps.summary import MapItem
from mmguard.formats.options import DEFAULT_BACKEND, SPLITS, MapSettings, Pairs, as_pairs
from mmguard.labels.rules import count_values
from mmguard.language import Message
from mmguard.text import describe_error, quantity

_FRAMEWORKS = ('mmcv', 'mmengine', 'mmseg', 'mmdet')

#: Advice for a data set that mmguard cannot scan.
TAKE_SAMPLES_ADVICE = (
    '`mmguard trace CONFIG --samples 50` checks samples of a built data set that derives from BaseDataset of '
    f'mmengine; for any other data set, {CHECK_TARGET_ADVICE}'
)

Step = Callable[[Dict[str, Any]], Optional[Dict[str, Any]]]


def compare_with_loader(
    dataset: Any,
    pipeline: Sequence[Mapping[str, Any]],
    settings: MapSettings,
    root: Optional[str] = None,
) -> LoaderFacts:
    """Load the annotations of every sample of a built data set, and compare their values with those of the scan."""
    from mmengine.dataset import Compose
    from mmseg.registry import TRANSFORMS

    try:
        with warnings.catch_warnings():  # they would be repeated for each edit that is tried
            warnings.simplefilter('ignore')
            steps = build_loading_steps(pipeline, TRANSFORMS)
    except Exception as error:  # a user's class may raise anything
        return LoaderFacts(unknown=Message('the pipeline cannot be built ({error})', error=describe_error(error, 160)))
    if not steps:
        return LoaderFacts(unknown=Message('no transform of the pipeline loads annotations'))
    facts = LoaderFacts()
    settings = replace(settings, guard_map=())  # a guard maps values after the loader
    table, invalid = settings.table(), np.array(settings.find_invalid_values())
    loading = copy.copy(dataset)
    loading.pipeline = Compose(steps)
    with temporary_folder() as folder:
        for place in range(len(dataset)):
            info = dataset.get_data_info(place)
            path = str(info['seg_map_path'])
            record = read_map(MapItem(path), settings, invalid)
            counts: Counter = Counter()
            for value, count in record.as_loaded.items():
                counts[table[value]] += count
            if record.fault:  # another rule names the files that cannot be read
                continue
            held = FILES.get_replacement(path)
            if held is not None:  # the loader reads a disk
                info = {**info, 'seg_map_path': os.path.join(folder, f'{place}.png')}
                write_whole(Path(info['seg_map_path']), held)
            loading.get_data_info = lambda _, info=info: dict(info)
            compare(facts, make_printable(path, root), counts, partial(_load_values, loading, place))
    return facts


def _load_values(dataset: Any, place: int) -> Dict[int, int]:
    return count_values(np.asarray(dataset[place]['gt_seg_map']))


def compare(facts: LoaderFacts, name: str, counts: Mapping[int, int], load: Callable[[], Mapping[int, int]]) -> None:
    """Load a sample, and record in ``facts`` if its {value: count} differs from the scan's ``counts``."""
    try:
        loaded = load()
    except Exception as error:  # a user's class may raise anything
        facts.failed[name] = describe_error(error, 240)
        return
    facts.files += 1
    if dict(loaded) != dict(counts):
        facts.differing[name] = (dict(sorted(loaded.items())), dict(sorted(counts.items())))


def build_loading_steps(pipeline: Sequence[Mapping[str, Any]], transforms: Any) -> List[Step]:
    """Build a pipeline's annotation loader and the user's transforms before it; return [] if it has no loader.

    The frameworks' own transforms before the loader change only the image, which is not decoded here.
    """
    steps: List[Step] = []
    for transform in pipeline:
        step = transforms.build(copy.deepcopy(dict(transform)))
        loads = 'Load' in type(step).__name__ and 'Annotation' in type(step).__name__
        if loads or type(step).__module__.split('.')[0] not in _FRAMEWORKS:
            steps.append(step)
        if loads:
            return steps
    return []


class SplitSet(NamedTuple):
    """One data set of a config, without its wrappers."""

    name: str  #: Splits that use the data set, such as ``'val, test'``; with a number if a split has several data sets.
    config: Mapping[str, Any]  #: Config of the data set.
    pipeline: List[Mapping[str, Any]]  #: Transforms of the data set, followed by those of its wrappers.


def split_sets(config: Mapping[str, Any], splits: Sequence[str] = SPLITS) -> List[SplitSet]:
    """Return the data sets of the splits, without wrappers (Concat, Repeat, mixing) and without duplicates."""
    found: List[SplitSet] = []
    for split in splits:
        loaders = config.get(f'{split}_dataloader')
        # A loop over several data sets takes a loader for each.
        listed = loaders if isinstance(loaders, (list, tuple)) else [loaders]
        wanted = [one['dataset'] for one in listed if isinstance(one, Mapping) and one.get('dataset')]
        leaves = list(unwrap(split, wanted))
        for number, (_, leaf, pipeline) in enumerate(leaves):
            name = split if len(leaves) == 1 else f'{split} {number + 1} of {len(leaves)}'
            # A test split that is the same as the validation split is read once.
            same = next((i for i, known in enumerate(found) if _reads_the_same(known, leaf, pipeline)), None)
            if same is None:
                found.append(SplitSet(name, leaf, pipeline))
            else:
                found[same] = found[same]._replace(name=f'{found[same].name}, {name}')
    return found


def unwrap(
    path: str, dataset: Any, outer_pipeline: Sequence[Mapping[str, Any]] = ()
) -> Iterator[Tuple[str, Mapping[str, Any], List[Mapping[str, Any]]]]:
    """Yield path, config and pipeline of each wrapped data set; the pipelines of its wrappers follow its own."""
    if isinstance(dataset, (list, tuple)):
        for number, one in enumerate(dataset):
            yield from unwrap(f'{path}[{number}]', one, outer_pipeline)
    elif isinstance(dataset, Mapping):
        pipeline = [*(dataset.get('pipeline') or []), *outer_pipeline]
        key = 'datasets' if dataset.get('datasets') else 'dataset'
        if dataset.get(key) is None:
            yield path, dataset, pipeline
        else:
            yield from unwrap(f'{path}.{key}', dataset[key], pipeline)


def _reads_the_same(known: SplitSet, leaf: Mapping[str, Any], pipeline: List[Mapping[str, Any]]) -> bool:
    both = (
        {key: value for key, value in config.items() if key not in ('pipeline', 'test_mode')}
        for config in (known.config, leaf)
    )
    return next(both) == next(both) and _read_loading(known.pipeline) == _read_loading(pipeline)


def _read_loading(pipeline: Sequence[Mapping[str, Any]]) -> Tuple[str, str, Pairs]:
    """Return the type of a pipeline's annotation loader, its image backend, and the label_map of GuardSegLabels."""
    loader, backend, guard_map = '', DEFAULT_BACKEND, ()  # type: str, str, Pairs
    for transform in pipeline:
        name = get_type_name(transform.get('type'))
        if not loader and name.startswith('Load') and 'Annotation' in name:
            loader = name
            backend = transform.get('imdecode_backend') or DEFAULT_BACKEND
        elif name == 'GuardSegLabels' and not guard_map:
            guard_map = as_pairs(transform.get('label_map'))
    return loader, backend, guard_map


class ConfigSource(MapSource):
    """Source of the label maps that the data set class of an mmseg config lists.

    ``num_classes`` is the number of classes of the head, or ``None`` to use the number of class names of the data set.

    Raises:
        Exception: Raised by the data set's class if it does not find its files.
    """

    def __init__(self, split: SplitSet, num_classes: Optional[int], ignore_index: int) -> None:
        loaders = [step for step in split.pipeline if get_type_name(step.get('type')).startswith('Load')]
        check_local_dataset(split.config, loaders)
        dataset = _build(split.config)
        named = dataset.metainfo.get('classes') or ()
        classes = [named] if isinstance(named, str) else list(named)
        _, backend, guard_map = _read_loading(split.pipeline)
        # Keep only pairs of names: the rest of the listing would take ten times the memory.
        pairs = [
            tuple(None if info.get(key) is None else str(info[key]) for key in ('seg_map_path', 'img_path'))
            for info in map(dataset.get_data_info, range(len(dataset)))
        ]
        labelled = [place for place, (label, _) in enumerate(pairs) if label]
        self._files = [MapItem(str(pairs[place][0]), pairs[place][1]) for place in labelled]
        settings = MapSettings(
            num_classes=num_classes or len(classes) or 256,
            ignore_index=ignore_index,
            reduce_zero_label=bool(getattr(dataset, 'reduce_zero_label', False)),
            label_map=as_pairs(getattr(dataset, 'label_map', None)),
            guard_map=guard_map,
            backend=backend,
        )
        root = getattr(dataset, 'data_root', None)
        super().__init__(split.name, settings, None if root is None else str(root), classes)
        if self._files:
            self.folder = os.path.commonpath([os.path.dirname(os.path.abspath(item.path)) for item in self._files])
            ending = str(getattr(dataset, 'seg_map_suffix', None) or '')
            # An ending that is only a file type does not distinguish label maps, and a copy is a PNG.
            self.suffix = ending if not ending.startswith('.') else ''
        if not pairs:
            raise ValueError(f'no files found with {_describe_places(dataset)}')
        self._dataset, self._pipeline = dataset, split.pipeline
        dataset.data_list = [dataset.data_list[place] for place in select_spread(labelled)]
        if isinstance(named, str):
            self.notes.append(
                f'{split.name}: metainfo.classes is a string, so each letter is a class: the comma of a one-tuple is '
                f'missing. Write classes=({named!r},)'
            )
        without = len(pairs) - len(self._files)
        if without:
            images = quantity(without, 'image has', 'images have')
            note = Message('{split}: {images} no label map in the config', split=split.name, images=images)
            self.notes.append(note)

    def items(self) -> Iterator[MapItem]:
        return iter(self._files)

    def list_items(self) -> Optional[List[MapItem]]:
        return self._files

    def count(self) -> Optional[int]:
        return len(self._files)

    def sample(self) -> List[str]:
        return [str(info['seg_map_path']) for info in self._dataset.data_list]

    def compare_with_loader(self) -> Optional[LoaderFacts]:
        return compare_with_loader(self._dataset, self._pipeline, self.settings, self.root)


def _describe_places(dataset: Any) -> str:
    """Return the settings that say where a data set looks for its files, as ``"ann_file='train.txt', ..."``."""
    places = [f'{key}={value!r}' for key, value in getattr(dataset, 'data_prefix', {}).items()]
    keys = ('ann_file', 'img_suffix', 'seg_map_suffix')
    return ', '.join(places + [f'{key}={getattr(dataset, key)!r}' for key in keys if getattr(dataset, key, None)])


def _build(config: Mapping[str, Any]) -> Any:
    """Build a data set as in training but without its pipeline, and let it list its files."""
    import mmseg.datasets  # noqa: F401  registers the classes
    from mmengine.dataset import BaseDataset
    from mmseg.registry import DATASETS

    cls = find_class(config.get('type'), 'DATASETS', 'mmseg')
    if cls is not None and not issubclass(cls, BaseDataset):
        raise ValueError(f'{cls.__name__} is not a BaseDataset of mmengine. {TAKE_SAMPLES_ADVICE}')
    dataset = DATASETS.build({**copy.deepcopy(dict(config)), 'pipeline': [], 'serialize_data': False})
    dataset.full_init()
    return dataset
