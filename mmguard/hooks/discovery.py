"""Functions that find guarded losses in a model, guards in pipelines, and samples with their tallies in a batch."""

from __future__ import annotations

import os
from functools import partial
from types import FunctionType, SimpleNamespace
from typing import Any, Callable, Dict, Iterable, Iterator, List, Mapping, Optional, Sequence, Set

from mmengine.dataset import default_collate, pseudo_collate
from mmengine.model import is_model_wrapper
from mmengine.structures import BaseDataElement, InstanceData
from torch import nn

from mmguard.labels.rules import BaseRule
from mmguard.labels.spaces import Space, from_loss
from mmguard.labels.tally import LABEL_GUARD, Tally, find_instances, find_map, get_source
from mmguard.log.statistics import ByKind, group_tallies
from mmguard.nn.counting import CountsLabels

#: Maximum number of transforms in a pipeline: a longer list in a transform is data.
LONGEST_PIPELINE = 1_000


def unwrap(model: Any) -> nn.Module:
    """Return the model inside DDP and similar wrappers."""
    while is_model_wrapper(model):
        model = model.module
    return model


def get_built_loop(runner: Any, mode: str = 'train') -> Any:
    """Return the loop of a mode, or ``None`` if the loop is not built; ``runner.train_loop`` would build it."""
    from mmengine.runner import BaseLoop  # not above: importing it registers the hooks

    loop = getattr(runner, f'_{mode}_loop')
    return loop if isinstance(loop, BaseLoop) else None


def get_built_loops(runner: Any) -> List[Any]:
    """Return the loops of a run that have already been built."""
    loops = (get_built_loop(runner, mode) for mode in ('train', 'val', 'test'))
    return [loop for loop in loops if loop is not None]


def get_loaders(runner: Any, mode: str) -> List[Any]:
    """Return the data loaders of a loop: one, or several if the loop has ``dataloaders``."""
    loop = getattr(runner, f'{mode}_loop')
    several = getattr(loop, 'dataloaders', None)
    return list(several) if isinstance(several, (list, tuple)) else [loop.dataloader]


def get_dataset(runner: Any, mode: str) -> Any:
    """Return the dataset of a loop, or for several data loaders an object with all datasets in ``datasets``."""
    found = [getattr(loader, 'dataset', None) for loader in get_loaders(runner, mode)]
    return found[0] if len(found) == 1 else SimpleNamespace(datasets=[one for one in found if one is not None])


def find_guarded_losses(model: nn.Module) -> Dict[str, CountsLabels]:
    """Return the guarded losses as {name: loss}; names omit wrappers such as DDP."""
    model = unwrap(model)
    return {name: module for name, module in model.named_modules() if isinstance(module, CountsLabels)}


def walk_assigners(model: nn.Module) -> Iterator[Any]:
    """Yield the assigners of all modules: values, or list items, of attributes whose name contains ``assigner``."""
    for module in model.modules():
        for name, value in vars(module).items():
            if 'assigner' in name:
                yield from (a for a in (value if isinstance(value, (list, tuple)) else [value]) if a is not None)


def find_offending(
    samples: List[BaseDataElement],
    spaces: Mapping[str, Space],
    on_invalid: str = 'ignore',
    counts: Optional[Tally] = None,
) -> ByKind:
    """Return {kind: tallies} of the samples with labels outside of ``spaces``, the valid labels of a loss.

    If the tallies of pixels do not add up to the loss's own ``counts``, the loss saw other labels (from a second map,
    or of sampled points), so these tallies are left out.
    """
    rules: Dict[str, Any] = {kind: space.build_rule(on_invalid) for kind, space in spaces.items()}
    found = group_tallies()
    for sample in samples:
        held, instances = find_map(sample), find_instances(sample)
        if 'pixels' in rules and held is not None:
            labels = held[0].get(held[1]).cpu().numpy()
            found['pixels'].append(rules['pixels'].sanitize(labels, get_source(sample))[1])
        if 'instances' in rules and instances is not None and 'labels' in instances:
            labels = instances.labels.cpu().numpy()
            found['instances'].append(rules['instances'].sanitize(labels, source=get_source(sample)).tally)
    if counts is not None and not _is_multiple(counts, sum(found['pixels'], Tally())):
        found['pixels'] = []
    return {kind: [tally for tally in tallies if tally] for kind, tallies in found.items()}


def _is_multiple(counts: Tally, images: Tally) -> bool:
    """Return True if a loss counted the labels of these images, once or several times per iteration."""
    times = counts.total // max(images.total, 1)
    return (counts.total, counts.skipped, counts.remapped) == (
        times * images.total,
        times * images.skipped,
        times * images.remapped,
    )


def find_samples(data_batch: Any) -> List[BaseDataElement]:
    """Return the data samples of a batch, at any depth of lists, tuples and dicts."""
    if isinstance(data_batch, dict) and 'data_samples' in data_batch:
        data_batch = data_batch['data_samples']
    found: List[BaseDataElement] = []
    _collect_samples([data_batch], found)
    return found


def _collect_samples(items: Iterable[Any], found: List[BaseDataElement]) -> None:
    for item in items:
        if isinstance(item, BaseDataElement):
            found.append(item)
        elif isinstance(item, (dict, list, tuple)):
            _collect_samples(item.values() if isinstance(item, dict) else item, found)


def walk_pipelines(dataset: Any) -> Iterator[List[Any]]:
    """Yield the transform lists of a dataset and of wrapped datasets, including lists inside transforms (branches)."""
    pipeline = getattr(dataset, 'pipeline', None)
    transforms = getattr(pipeline, 'transforms', pipeline)
    yield from (held for held in _walk_transforms(transforms, set()) if isinstance(held, list))
    for wrapped in find_wrapped(dataset):
        yield from walk_pipelines(wrapped)


def find_wrapped(dataset: Any) -> List[Any]:
    """Return the datasets inside a wrapper, or [] for a dataset that reads files itself."""
    inner = getattr(dataset, 'datasets', None) or [getattr(dataset, 'dataset', None)]
    return [wrapped for wrapped in inner if wrapped is not None]


def walk_rules(transforms: Iterable[Any]) -> Iterator[BaseRule]:
    """Yield the rules of the guards in a pipeline, including nested ones (``RandomApply``, ``MultiBranch``)."""
    for transform in _walk_transforms(list(transforms), set()):
        rule = getattr(transform, 'rule', None)
        if isinstance(rule, BaseRule):
            yield rule


def collect_rules(dataset: Any) -> List[BaseRule]:
    """Return the rules of all guards in the pipelines of a dataset, without duplicates."""
    return list({id(rule): rule for pipeline in walk_pipelines(dataset) for rule in walk_rules(pipeline)}.values())


def _walk_transforms(value: Any, seen: Set[int]) -> Iterator[Any]:
    """Yield every transform and every list of transforms in a pipeline, at any depth.

    A transform may have inner transforms in any attribute: in a list, a dict of branches or a list of lists.
    """
    if id(value) in seen:
        return
    seen.add(id(value))
    if _is_transform(value):
        yield value
        yield from _walk_transforms(vars(value), seen)
    elif isinstance(value, (dict, list, tuple)) and len(value) <= LONGEST_PIPELINE:
        inner = list(value.values() if isinstance(value, dict) else value)
        if not isinstance(value, dict) and is_pipeline(inner):
            yield inner
        for item in inner:
            yield from _walk_transforms(item, seen)


def is_pipeline(items: List[Any]) -> bool:
    """Return True if a list contains a transform: a callable object that is not a class or a plain function."""
    return len(items) <= LONGEST_PIPELINE and any(map(_is_transform, items))


def _is_transform(item: Any) -> bool:
    return callable(item) and hasattr(item, '__dict__') and not isinstance(item, (type, FunctionType))


def describe_valid_labels(model: nn.Module, dataset: Any, with_losses: bool) -> Dict[str, Any]:
    """Return a loop's entry in ``label_guard.json``: valid labels of guards and losses, class names, data roots."""
    model = unwrap(model)
    losses = find_guarded_losses(model) if with_losses else ()
    return {
        'guards': [rule.to_json() for rule in collect_rules(dataset)],
        'losses': {name: [space.to_json() for space in from_loss(model, name).values()] for name in losses},
        'classes': find_class_names(dataset),
        'data_roots': find_naming_roots(dataset),
    }


def find_naming_roots(dataset: Any) -> List[str]:
    """Return the data root that logged file names omit, in each spelling that the data sets use.

    The list is empty if a data set has no root, or if the roots differ, because they may have files of the same name.
    """
    roots = list(dict.fromkeys(_find_data_roots(dataset)))
    return roots if all(roots) and len({os.path.realpath(root) for root in roots}) == 1 else []


def _find_data_roots(dataset: Any) -> Iterator[str]:
    """Yield the data root of each dataset, or '' for a dataset that reads files itself and has no root."""
    root, wrapped = getattr(dataset, 'data_root', None), find_wrapped(dataset)
    if (isinstance(root, str) and root) or not wrapped:
        yield root if isinstance(root, str) else ''
    for inner in wrapped:
        yield from _find_data_roots(inner)


def find_class_names(dataset: Any) -> List[str]:
    """Return the class names of a dataset (or of the first dataset that it wraps), or [] if they are unknown."""
    classes = (getattr(dataset, 'metainfo', None) or {}).get('classes')
    return list(classes) if isinstance(classes, (list, tuple)) else []


#: Collate functions that keep the samples.
_KEEP = (default_collate, pseudo_collate)


def keep_reports(loader: Any) -> bool:
    """Wrap a loader's collate function, if it may drop the reports of the samples; return True if this call wrapped it.

    A function that stacks all labels of a batch in one tensor drops file names and tallies. The wrapper adds these to
    the batch again.
    """
    collate = getattr(loader, 'collate_fn', None)
    stock = collate.func if isinstance(collate, partial) else collate
    if not callable(collate) or stock in _KEEP or isinstance(collate, KeepsReports):
        return False
    loader.collate_fn = KeepsReports(collate)
    return True


def get_collate_name(loader: Any) -> str:
    """Return the name of a loader's collate function."""
    collate = getattr(loader, 'collate_fn', None)
    while isinstance(collate, (KeepsReports, partial)):
        collate = collate.collate if isinstance(collate, KeepsReports) else collate.func
    return getattr(collate, '__name__', type(collate).__name__)


class KeepsReports:
    """Collate function that adds the reports (file names, tallies) of the samples as ``data_samples['label_guard']``.

    A batch that still contains samples, or whose ``data_samples`` is not a dict, is left unchanged.
    """

    def __init__(self, collate: Callable[[Sequence[Any]], Any]) -> None:
        self.collate = collate

    def __call__(self, batch: Sequence[Any]) -> Any:
        reports = list(_collect_reports(find_samples(list(batch))))  # first: collate may write to the samples
        collated = self.collate(batch)
        held = collated.get('data_samples') if isinstance(collated, dict) else None
        if isinstance(held, dict) and not find_samples(held):
            held[LABEL_GUARD] = reports
        return collated


def _collect_reports(samples: List[BaseDataElement]) -> Iterator[BaseDataElement]:
    """Yield a report per sample: its file names, tallies, and an empty ``gt_instances`` if no instance is left."""
    for sample in samples:
        report = BaseDataElement()
        for key in ('img_path', 'seg_map_path', LABEL_GUARD):
            if sample.get(key) is not None:
                report.set_field(sample.get(key), key, field_type='metainfo')
        instances = sample.get('gt_instances')
        if instances is not None and instances.keys() and not len(instances):
            report.gt_instances = InstanceData(labels=[])
        yield report


def select_trained(data_batch: Any) -> List[Any]:
    """Return the labeled samples of a batch; semi-supervised detectors name the unlabeled ones ``unsup_...``."""
    samples = data_batch.get('data_samples') if isinstance(data_batch, dict) else None
    if isinstance(samples, dict):
        samples = [part for name, part in samples.items() if not str(name).startswith('unsup')]
        return find_samples({'data_samples': samples})
    return find_samples(data_batch)


def select_evaluated(data_batch: Any) -> List[Any]:
    """Return each sample of a batch once, even if test-time augmentation makes several views of it.

    Several samples of one file (tiles of a large image) are all returned.
    """
    parts: Sequence[Any] = data_batch if isinstance(data_batch, (list, tuple)) else [data_batch]
    if isinstance(data_batch, dict) and 'data_samples' in data_batch:
        parts = [data_batch['data_samples']]
    found: List[Any] = []
    for part in parts:
        if isinstance(part, (list, tuple)) and part and all(isinstance(view, (list, tuple)) for view in part):
            for views in zip(*part):  # a list of all samples per view
                found += {get_source(sample): sample for sample in find_samples(list(views[::-1]))}.values()
        else:
            found += find_samples(part)
    return found
