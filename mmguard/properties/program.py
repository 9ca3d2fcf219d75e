"""Builder of a config's parts for small tests: data sets, model, and made-up batches with their losses."""

from __future__ import annotations

import contextlib
import copy
import os
import pickle
import time
from functools import lru_cache, wraps
from typing import Any, Callable, Dict, Iterable, List, Mapping, Sequence, Set, Tuple, TypeVar, cast

import numpy as np
import torch
from mmengine.config import Config
from mmengine.dataset import pseudo_collate
from mmengine.logging import MessageHub
from mmengine.model import revert_sync_batchnorm
from mmengine.registry import DATASETS, MODELS, DefaultScope
from torch import Tensor

from mmguard import register
from mmguard.config.classes import get_type_name
from mmguard.config.parts import from_config
from mmguard.config.read import ReadConfig, import_modules, import_scope
from mmguard.config.tree import name_types, walk
from mmguard.hooks.guard_run import guard_model
from mmguard.labels.spaces import VOID, LabelSpaces, from_model
from mmguard.properties.alignment import Box
from mmguard.properties.datasets import find_innermost, get_class_names, seed_all, select_indices, walk_objects
from mmguard.properties.result import NoSamples, Unavailable
from mmguard.properties.samples import make_blank, make_instances, make_template

#: Image sides to try, the smallest first.
SIDES = {'mmseg': (64, 128, 256, 512), 'mmdet': (128, 256, 512)}
#: Seconds of the first forward pass below which a second pass is timed.
_WARM = 0.5
#: CPU seconds of a pass over two made-up images above which a detector is tested on fewer images and labels.
_SLOW = 2.0
#: Maximum number of training samples whose annotated labels are collected.
MAX_ANNOTATIONS = 1000
#: Maximum number of classes per property.
CLASSES_TESTED = 6

Made = TypeVar('Made')


def cache_result(method: Callable[..., Made]) -> Callable[..., Made]:
    """Cache the result or the exception of a method of ``Program`` for each set of arguments."""

    @wraps(method)
    def call_once(self: Program, *args: Any) -> Made:
        key = (method.__name__, *args)
        if key not in self.made:
            try:
                with self.scope():
                    self.made[key] = (method(self, *args), None)
            except Exception as raised:
                self.made[key] = (None, raised)
        value, error = self.made[key]
        if error is not None:
            raise error
        return cast(Made, value)

    return call_once


class Program:
    """Parts of a config, each built on first use; tests load about ``samples`` samples of each data set."""

    def __init__(self, tree: Mapping[str, Any], device: str = 'cpu', samples: int = 8) -> None:
        self.samples = samples
        self.ends = float('inf')
        self.pace = 0.0  # seconds per pixel of a forward pass
        self.made: Dict[Any, Any] = {}
        self.device = device
        register()
        prepare_message_hub(MessageHub.get_current_instance())
        self.config = Config(copy.deepcopy(dict(tree)))
        import_modules(self.config.get('custom_imports'), strict=True)
        import_scope(self.config)
        self.read = ReadConfig(name_types(self.config.to_dict()))
        self.guards = self.read.run_guards
        if self.guards is not None:
            self.config = Config(copy.deepcopy(self.guards.tree))

    def scope(self) -> Any:
        """Return a context in which types without a scope are looked up as in a training."""
        return DefaultScope.overwrite_default_scope(self.config.get('default_scope') or 'mmengine')

    def seconds_left(self) -> float:
        """Return the seconds that are left for testing the current property."""
        return self.ends - time.monotonic()

    # ---- data

    def get_dataset_config(self, split: str) -> Any:
        """Return the config of a split's data set."""
        dataset = (self.config.get(f'{split}_dataloader') or {}).get('dataset') if self.samples else None
        if dataset is None:
            raise Unavailable(f'the config has no {split}_dataloader with a data set')
        return dataset

    @cache_result
    def build_dataset(self, split: str) -> Any:
        """Build the data set of a split with its pipeline, and load its annotations."""
        seed_all(0)
        built = DATASETS.build(copy.deepcopy(self.get_dataset_config(split)))
        if hasattr(built, 'full_init'):
            built.full_init()
        if not len(built):
            raise NoSamples(f'the {split} data set has no samples')
        return built

    def construct_datasets(self) -> None:
        """Build the data sets and their pipelines without reading files."""
        for split in ('train', 'val', 'test'):
            if self.config.get(f'{split}_dataloader'):
                self._construct_dataset(split, {'pipeline', 'dataset', 'datasets', 'data_prefix'}, lazy_init=True)

    def _construct_dataset(self, split: str, keys: Set[str], **arguments: Any) -> Any:
        """Build a data set with ``arguments`` set in each dict of its config that has a type and one of ``keys``."""
        node = copy.deepcopy(self.get_dataset_config(split))
        for _, inner in walk(node):
            if 'type' in inner and keys & set(inner):
                inner.update(arguments)
        with self.scope():
            return DATASETS.build(node)

    def build_leaves(self, split: str) -> List[Any]:
        """Return the innermost data sets of a split, which load the samples."""
        return [leaf for leaf in find_innermost(self.build_dataset(split)) if hasattr(leaf, 'pipeline')]

    def load(self, split: str, limit: int) -> List[Any]:
        """Load up to ``limit`` samples, evenly spread over the data set of a split."""
        dataset = self.build_dataset(split)
        with self.scope():
            seed_all(0)
            return [dataset[number] for number in select_indices(len(dataset), limit)]

    def collect_labels(self) -> Set[int]:
        """Return the labels of the annotated training objects that are not ignored, without running a pipeline."""
        try:
            dataset = self.build_dataset('train')
        except ImportError:  # a step of the pipeline needs a missing package
            dataset = self._construct_dataset('train', {'pipeline'}, pipeline=[])
        objects = [one for leaf in find_innermost(dataset) for one in walk_objects(leaf, MAX_ANNOTATIONS)]
        return {one['bbox_label'] for one in objects if 'bbox_label' in one and not one.get('ignore_flag')}

    # ---- the model

    @cache_result
    def build_model(self) -> Any:
        """Build and initialize the model, without missing pretrained weights, and with BN instead of SyncBN."""
        if not self.config.get('model'):
            raise Unavailable('the config has no model')
        seed_all(0)
        whole = copy.deepcopy(self.config.model)
        if self.config.get('data_preprocessor') and not whole.get('data_preprocessor'):
            whole['data_preprocessor'] = copy.deepcopy(self.config.data_preprocessor)
        node, dropped = drop_pretrained(whole)
        try:
            model = revert_sync_batchnorm(MODELS.build(node))
            if hasattr(model, 'init_weights'):
                model.init_weights()
        except Exception:
            if not dropped:
                raise
            MODELS.build(whole)  # raises what is wrong with or without weights
            named = f'its pretrained weights ({dropped[0]})'
            raise Unavailable(f'the model cannot be built without {named}, which are not loaded here') from None
        if self.guards is not None:
            guard_model(model, self.guards.options.get('on_invalid', 'ignore'))
        return model.to(self.device).train()

    @cache_result
    def build_preprocessor(self) -> Any:
        """Build only the model's preprocessor, which may pad or resize batches; ``None`` if the config lacks one."""
        node = (self.config.get('model') or {}).get('data_preprocessor') or self.config.get('data_preprocessor')
        return MODELS.build(copy.deepcopy(node)) if node else None

    @cache_result
    def find_spaces(self) -> LabelSpaces:
        """Return the valid labels of the heads, for pixels and instances."""
        return from_model(self.build_model(), list(self.get_class_names()))

    def get_class_names(self) -> Tuple[str, ...]:
        """Return the class names of the training set; empty if the data set is missing."""
        with contextlib.suppress(Exception):
            return get_class_names(self.build_dataset('train'))
        return ()

    @property
    def num_classes(self) -> int:
        """Number of classes of the heads."""
        space = self.find_spaces().get(self.kind)
        if space is None:
            raise Unavailable('no head declares its number of classes')
        return space.num_classes

    def find_invalid_labels(self, labels: Iterable[int]) -> List[int]:
        """Return the labels that are not ignored and for which the heads have no output."""
        space, void = self.find_spaces().get(self.kind), self.ignore_index if self.kind == 'pixels' else -1
        return sorted(label for label in set(labels) if space and not space.is_valid(label) and label != void)

    def choose_classes(self) -> List[int]:
        """Return some classes: the first, the last, and a few in between."""
        return sorted(set(np.linspace(0, self.num_classes - 1, CLASSES_TESTED).round().astype(int).tolist()))

    @property
    def ignore_index(self) -> int:
        """Value of ignored pixels."""
        space = self.find_spaces().pixels
        return VOID if space is None or space.ignore_index is None else space.ignore_index

    def ignore_values(self) -> Tuple[int, ...]:
        """Return the values of ignored pixels: 255, and the ``ignore_index`` in the config. No model is built."""
        space = from_config(self.read).pixels
        return (VOID,) if space is None or space.ignore_index is None else (VOID, space.ignore_index)

    @property
    def kind(self) -> str:
        """Kind of labels in the first sample: ``'pixels'`` (a label map) or ``'instances'`` (objects)."""
        return 'instances' if hasattr(self.build_template()['data_samples'], 'gt_instances') else 'pixels'

    @property
    def has_label_map(self) -> bool:
        """True if the samples carry a label map, with or without instances."""
        return 'gt_sem_seg' in self.build_template()['data_samples']

    # ---- batches

    @cache_result
    def build_template(self) -> Any:
        """Return a packed training sample, or if none can be loaded, an empty sample with the same fields."""
        try:
            sample = next(filter(None, self.load('train', 1)), None)
        except Exception:
            sample = None
        sample = make_template(self.read) if sample is None else sample
        if not isinstance(sample, dict) or not torch.is_tensor(sample.get('inputs')) or sample['inputs'].dim() != 3:
            raise Unavailable('a sample is not one image with its labels')
        labels = sample.get('data_samples')
        if not any(hasattr(labels, name) for name in ('gt_instances', 'gt_sem_seg')):
            raise Unavailable('a sample carries neither instances nor a label map')
        return sample

    @cache_result
    def find_side(self) -> int:
        """Return the smallest image side at which the loss is finite; raise the first exception if all sides fail."""
        problems: List[Exception] = []
        own = max(self.build_template()['inputs'].shape[-2:])  # before a larger one, which takes longer
        sides = SIDES.get(self.read.framework, SIDES['mmdet'])
        for side in sorted({*sides, own} if sides[0] < own < sides[-1] else sides):
            try:
                for _ in range(2):  # much of the first pass is not repeated
                    began = time.process_time()
                    losses = self.compute_losses(self.build_samples(side))
                    taken = time.process_time() - began
                    self.pace = taken / (2 * side**2)
                    if taken > _WARM:
                        break
                if all(bool(torch.isfinite(loss).all()) for loss in losses.values()):
                    return side
            except Exception as error:
                problems.append(error)
        raise problems[0] if problems else ValueError('the losses of a small batch are not finite')

    def count_pixels(self, seconds: float) -> float:
        """Return the number of image pixels that a step (forward and backward) trains in ``seconds``."""
        with contextlib.suppress(Exception):
            self.find_side()
        return seconds / (3 * self.pace) if self.pace else float('inf')

    def is_slow(self) -> bool:
        """Return True if a pass of a detector takes so long, even on small images, that tests use fewer images."""
        with contextlib.suppress(Exception):
            return self.kind == 'instances' and 2 * self.find_side() ** 2 * self.pace > _SLOW
        return False

    @cache_result
    def count_fewest_images(self) -> int:
        """Return the number of images to train on if time is short: 1 for a slow detector that accepts 1, else 2."""
        if self.is_slow():
            with contextlib.suppress(Exception), torch.no_grad():  # BatchNorm may need two, as after a global pooling
                self.compute_losses(self.build_samples(self.find_side())[:1])
                return 1
        return 2

    def describe_made_up(self) -> str:
        """Describe the made-up samples, for the evidence of a result."""
        side = self.find_side()
        return f'made-up images of {side}x{side}'

    def build_pixels(self, labels: Any, side: int, seed: int = 0) -> Any:
        """Return a packed sample with a label map of one label, or of n x n blocks of labels."""
        sample, blocks = make_blank(self.build_template(), side, seed), np.atleast_2d(labels).astype(np.int64)
        places = np.arange(side) * len(blocks) // side
        sample['data_samples'].gt_sem_seg.data = torch.as_tensor(blocks[np.ix_(places, places)])[None]
        return sample

    def build_instances(self, boxes: Sequence[Box], labels: Sequence[int], side: int, seed: int = 0) -> Any:
        """Return a packed sample with these boxes and labels, and filled masks if the user's samples have masks."""
        sample = make_blank(self.build_template(), side, seed)
        known = self.build_template()['data_samples']
        sample['data_samples'].gt_instances = make_instances(known.gt_instances, boxes[: len(labels)], labels, side)
        if 'ignored_instances' in known:
            sample['data_samples'].ignored_instances = make_instances(known.ignored_instances, [], [], side)
        return sample

    def build_samples(self, side: int, labels: Sequence[int] = (), seed: int = 0) -> List[Any]:
        """Return two packed samples with as many of ``labels`` (default: :meth:`choose_classes`) as fit."""
        labels = labels or self.choose_classes()
        if self.kind == 'pixels':
            blocks = np.resize([labels[n] for n in select_indices(len(labels), 256)], (16, 16))
            return [self.build_pixels(blocks, side, 2 * seed + number) for number in (0, 1)]
        cell = side / 4
        corners = [(x * cell + 2, y * cell + 2) for y in range(4) for x in range(4)]
        boxes = [(x, y, x + cell - 4, y + cell - 4) for x, y in corners]
        chosen = [*labels[-1:], *(labels[n] for n in select_indices(len(labels) - 1, 31))]
        parts = np.resize(chosen, max(4, len(chosen))).tolist()
        return [self.build_instances(boxes, part, side, n) for n, part in enumerate((parts[::2], parts[1::2]))]

    def build_batch(self, samples: Sequence[Any]) -> Any:
        """Return the batch that the preprocessor makes of packed samples, without padding to another size."""
        preprocessor = self.build_model().data_preprocessor
        with contextlib.ExitStack() as undo, self.scope():
            for part in (preprocessor, *(getattr(preprocessor, 'batch_augments', None) or ())):
                if getattr(part, 'size', None) is not None:
                    undo.callback(setattr, part, 'size', part.size)
                    part.size = tuple(samples[0]['inputs'].shape[-2:])
            return preprocessor(pseudo_collate([copy.deepcopy(sample) for sample in samples]), True)

    def compute_losses(self, samples: Sequence[Any]) -> Dict[str, Tensor]:
        """Return the losses of samples by name, summed over levels."""
        return self.compute_batch(self.build_batch(samples))

    def compute_batch(self, data: Any) -> Dict[str, Tensor]:
        """Return the losses of a batch by name, summed over levels."""
        with self.scope():
            seed_all(0)
            found = self.build_model()(**data, mode='loss')
        levels = {name: [loss] if torch.is_tensor(loss) else loss for name, loss in found.items()}
        return {
            name: sum((one.sum() for one in several), torch.zeros(()))
            for name, several in levels.items()
            if isinstance(several, (list, tuple)) and all(map(torch.is_tensor, several))
        }


def get_program(tree: Mapping[str, Any], device: str = 'cpu', samples: int = 8) -> Program:
    """Return the program of a config; the last two programs are cached, such as those before and after an edit."""
    return _open_program(pickle.dumps((tree, device, samples)))


@lru_cache(maxsize=2)
def _open_program(arguments: bytes) -> Program:
    return Program(*pickle.loads(arguments))


def prepare_message_hub(hub: MessageHub) -> None:
    """Set iter, epoch, max_iters and max_epochs, which losses and preprocessors read during a training."""
    for name, value in dict(iter=0, epoch=0, max_iters=1000, max_epochs=10).items():
        hub.update_info(name, value)


def is_missing(checkpoint: str) -> bool:
    """Return True if weights would have to be downloaded, or if their file does not exist."""
    return '://' in checkpoint or not os.path.exists(checkpoint)


def drop_pretrained(model: Any) -> Tuple[Any, List[str]]:
    """Return a copy of a model's config without missing weights, and the paths or URLs of these weights."""
    kept, dropped = copy.deepcopy(model), []
    for _, node in walk(kept):
        for key in ('pretrained', 'teacher_ckpt'):
            if isinstance(node.get(key), str) and is_missing(node[key]):
                dropped.append(node[key])
                node[key] = None
        entries = node.get('init_cfg')
        if isinstance(entries, (dict, list, tuple)):
            listed = [entries] if isinstance(entries, dict) else list(entries)
            loaded = [one for one in listed if get_type_name(one.get('type')) == 'Pretrained']
            absent = [one for one in loaded if is_missing(str(one.get('checkpoint')))]
            dropped += [str(one.get('checkpoint')) for one in absent]
            node['init_cfg'] = [one for one in listed if one not in absent] or None
    return kept, dropped
