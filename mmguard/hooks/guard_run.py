"""Functions that guard losses, assigners and pipelines of a built run, as ``mmguard apply`` does in a config."""

from __future__ import annotations

import importlib
from types import MappingProxyType
from typing import Any, Dict, Iterator, List, Mapping, NamedTuple, Tuple

import torch
from mmengine.registry import TRANSFORMS
from torch import nn

from mmguard.config.classes import get_type_name
from mmguard.config.guarded_pipelines import (
    IGNORE_IOF_THR,
    find_trained_as_background,
    guard_pipelines,
    leave_out_ignored,
)
from mmguard.config.parts import from_config
from mmguard.config.read import ReadConfig
from mmguard.config.tree import name_types
from mmguard.hooks.discovery import (
    find_class_names,
    get_built_loop,
    get_built_loops,
    is_pipeline,
    keep_reports,
    unwrap,
    walk_assigners,
)
from mmguard.labels.loss_selection import LossDecision, Node, Path, SelectedLoss, get_package, visit_losses
from mmguard.labels.spaces import LabelSpaces, from_model
from mmguard.nn.counting import CountsLabels

#: Key of the built object in the dict that describes a transform.
_OBJECT = '__built__'
#: Arguments of transforms, kept as attributes of the same name, that decide where guards are inserted.
_ARGUMENTS = ('meta_keys', 'with_seg', 'keep_ignored')
_WORKERS_RUN_NOTE = (
    'train_dataloader: its workers already run with the unguarded pipeline and cannot be restarted, because {}. The '
    'guarded losses skip invalid labels, but the log lacks file names. Write guards into the config: `mmguard apply`'
)


class GuardedRun(NamedTuple):
    """Changes made by :func:`guard_run`, and the parts that stay unguarded."""

    changed: List[str]  #: A line for each guarded loss, assigner or pipeline, as in a config.
    left: List[str]  #: A line for each part that stays unguarded, with the reason.


def guard_run(runner: Any, options: Mapping[str, Any] = MappingProxyType({})) -> GuardedRun:
    """Guard the unguarded losses and pipelines of a run in place. A second call changes nothing.

    Only built loops are guarded: a test loop is guarded once ``runner.test()`` has built it. ``options`` are
    arguments of the new guards: ``label_map``, ``on_invalid`` and ``ignore_index``.
    """
    config = ReadConfig(name_types(runner.cfg.to_dict()))
    unguarded = config.describe_unguarded()
    if unguarded:
        return GuardedRun([], [unguarded])
    spaces = from_config(config)
    if not spaces.to_dict():  # built from objects
        spaces = from_model(unwrap(runner.model), _find_class_names(runner))
    model = guard_model(unwrap(runner.model), options.get('on_invalid', 'ignore'))
    pipelines, is_training_new = _guard_pipelines(runner, config, spaces, options)
    has_workers = is_training_new and get_built_loop(runner, 'train').dataloader.num_workers
    restarted = restart_loader(runner) if has_workers else []
    return GuardedRun([*model.changed, *pipelines.changed], [*model.left, *pipelines.left, *restarted])


def _find_class_names(runner: Any) -> List[str]:
    names = (find_class_names(loop.dataloader.dataset) for loop in get_built_loops(runner))
    return next((found for found in names if found), [])


def _guard_pipelines(
    runner: Any, config: ReadConfig, spaces: LabelSpaces, options: Mapping[str, Any]
) -> Tuple[GuardedRun, bool]:
    """Describe the pipelines as a config, insert guards, build the guards, and set the assigners' ``ignore_iof_thr``.

    Returns a :class:`GuardedRun`, and True if the training pipeline has a new transform.
    """
    lists: Dict[str, List[_Steps]] = {}
    tree: Dict[str, Any] = {key: config.part(key) for key in ('model', 'data_preprocessor', 'train_cfg')}
    tree['default_scope'] = runner.cfg.get('default_scope')
    for mode in ('train', 'val', 'test'):
        loop = get_built_loop(runner, mode)
        if loop is not None:
            lists[mode] = []
            tree[f'{mode}_dataloader'] = {'dataset': _describe_dataset(loop.dataloader.dataset, lists[mode])}
    # PipelineSwitchHook later builds the new pipeline from these.
    switches = [hook for hook in runner.hooks if isinstance(getattr(hook, 'switch_pipeline', None), list)]
    tree['custom_hooks'] = [{'switch_pipeline': hook.switch_pipeline} for hook in switches]
    found = guard_pipelines(tree, spaces, options)
    new = {mode for mode, held in lists.items() for steps in held if steps.write()}
    in_assigners = leave_out_ignored(tree)
    for assigner in walk_assigners(unwrap(runner.model)) if in_assigners else ():
        if hasattr(assigner, 'ignore_iof_thr'):
            assigner.ignore_iof_thr = IGNORE_IOF_THR
    left = find_trained_as_background(tree) if spaces.instances is not None else ()
    return GuardedRun([*in_assigners, *found.changed], [*left, *found.left]), 'train' in new


class _Steps(NamedTuple):
    """A built list of transforms, with the dicts that describe them."""

    described: List[Dict[str, Any]]  #: A dict for each transform; guards are inserted here.
    built: List[Any]  #: The transforms of a Compose or of a data set wrapper.
    types: Any  #: Type names of ``built`` (``pipeline_types`` of the data set wrapper), or ``None``.

    def write(self) -> bool:
        """Build the inserted transforms, and set changed ``meta_keys``; return True if a transform was inserted."""
        for step in self.described:
            transform: Any = step.get(_OBJECT)
            if 'meta_keys' in step and step['meta_keys'] is not transform.meta_keys:
                transform.meta_keys = step['meta_keys']
        if len(self.described) == len(self.built):
            return False
        if isinstance(self.types, list):
            self.types[:] = [get_type_name(step['type']) for step in self.described]
        self.built[:] = [step[_OBJECT] if _OBJECT in step else TRANSFORMS.build(step) for step in self.described]
        return True


def _describe_dataset(dataset: Any, lists: List[_Steps]) -> Dict[str, Any]:
    """Return a dict like the config of a data set and its wrapped data sets; append their pipelines to ``lists``."""
    node: Dict[str, Any] = {'type': type(dataset).__name__}
    pipeline = getattr(dataset, 'pipeline', None)
    transforms = getattr(pipeline, 'transforms', pipeline)
    if isinstance(transforms, list):
        node['pipeline'] = _describe_list(transforms, lists, getattr(dataset, 'pipeline_types', None))
    if getattr(dataset, 'datasets', None):
        node['datasets'] = [_describe_dataset(one, lists) for one in dataset.datasets]
    elif getattr(dataset, 'dataset', None) is not None:
        node['dataset'] = _describe_dataset(dataset.dataset, lists)
    return node


def _describe_list(transforms: List[Any], lists: List[_Steps], types: Any = None) -> List[Dict[str, Any]]:
    described = [_describe_transform(transform, lists) for transform in transforms]
    lists.append(_Steps(described, transforms, types))
    return described


def _describe_transform(transform: Any, lists: List[_Steps]) -> Dict[str, Any]:
    node: Dict[str, Any] = {'type': type(transform).__name__, _OBJECT: transform}
    for name, value in vars(transform).items() if hasattr(transform, '__dict__') else ():
        if name in _ARGUMENTS:
            node[name] = value
        else:
            inner = list(_find_inner_lists(name, value))
            node.update({key: _describe_list(held, lists) for key, held in inner})
    return node


def _find_inner_lists(name: str, value: Any) -> Iterator[Tuple[str, List[Any]]]:
    """Yield (name, transforms) of each pipeline in an attribute: a Compose, a list, or a list or dict of Composes."""
    if isinstance(getattr(value, 'transforms', None), list):
        yield name, value.transforms
    elif isinstance(value, list) and is_pipeline(value):
        yield name, value
    elif isinstance(value, (list, dict)):
        items = value.items() if isinstance(value, dict) else enumerate(value)
        for key, held in items:
            if isinstance(getattr(held, 'transforms', None), list):
                yield f'{name}.{key}', held.transforms


def restart_loader(runner: Any) -> List[str]:
    """Restart a running training data loader with the same sample order; return [reason] if that is impossible.

    ``IterBasedTrainLoop`` starts its loader when the loop is built. If the loader has workers, its sampler is built
    again from the config, with the seed of the run, because the workers have already taken indices from the old sampler
    in advance. The random state is restored, so that later random numbers are unchanged.
    """
    from mmengine.runner import loops

    loop = get_built_loop(runner, 'train')
    iterator = getattr(loop, 'dataloader_iterator', None)
    loader = loop.dataloader
    if iterator is None:
        return []
    written = runner.cfg.get('train_dataloader')
    if type(iterator) is not getattr(loops, '_InfiniteDataloaderIterator', None):
        return [_WORKERS_RUN_NOTE.format(f'mmguard does not know how {type(loop).__name__} holds them')]
    if loader.num_workers and not isinstance(written, dict):
        return [_WORKERS_RUN_NOTE.format('the data loader was passed as an object, not as a config')]
    state = torch.get_rng_state()
    if loader.num_workers:
        by_rank = (runner.cfg.get('randomness') or {}).get('diff_rank_seed', False)
        loop.dataloader = runner.build_dataloader(
            {**written, 'dataset': loader.dataset}, seed=runner.seed, diff_rank_seed=by_rank
        )
        keep_reports(loop.dataloader)
    loop.dataloader_iterator = type(iterator)(loop.dataloader)
    torch.set_rng_state(state)
    return []


#: Arguments of the cross entropies of mmseg and mmdet, which are attributes of the built loss.
_LOSS_ARGUMENTS = (
    'use_sigmoid',
    'use_mask',
    'reduction',
    'class_weight',
    'ignore_index',
    'loss_weight',
    'loss_name',
    'avg_non_ignore',
)


class GuardedModel(NamedTuple):
    """Changes made by :func:`guard_model`, and the losses that it left unchanged."""

    changed: List[str]  #: A line for each guarded loss: path in the model, type, type of its guard.
    left: List[str]  #: A line for each loss that stays unguarded: path in the model, and the reason.


def guard_model(model: nn.Module, on_invalid: str = 'ignore') -> GuardedModel:
    """Replace the stock losses of class labels in a model by guarded ones, in place.

    It selects the same losses as ``mmguard apply``. A CrossEntropyLoss (not a subclass) is rebuilt as
    GuardedCrossEntropyLoss from its attributes; a GuardedLoss wraps any other loss. A loss shared by several
    modules gets one shared guard. Guarded losses do not change, so a second call changes nothing.
    ``on_invalid='drop'``, which is for instances, is treated as ``'ignore'``.
    """
    changed: List[str] = []
    left: List[str] = []
    guards: Dict[int, nn.Module] = {}

    def visit(found: SelectedLoss) -> bool:
        place, loss, decision = '.'.join(map(str, found.path)), found.part, found.decision
        if decision.reason:
            left.append(found.describe_left(place))
        if not decision.is_guarded:
            return False
        if id(loss) not in guards:
            try:
                guards[id(loss)] = _build_guard(loss, decision, 'ignore' if on_invalid == 'drop' else on_invalid)
            except TypeError as error:  # the loss cannot be guarded
                left.append(found.describe_left(place, str(error)))
                return False
        guard = guards[id(loss)]
        owner, _, key = place.rpartition('.')
        model.get_submodule(owner)._modules[key] = guard
        written = f'Guarded{found.name}'  # the type to write in a config; here the guard wraps the built loss
        known = hasattr(_get_module(decision), written)
        changed.append(f'{place}: {found.name} -> {written if known else guard._get_name()}')
        return True

    visit_losses(model, _open_module, visit)
    _replace_in_containers(model, guards)
    return GuardedModel(changed, left)


def _open_module(module: nn.Module, path: Path) -> Node:
    cls = type(module)
    name = 'GuardedLoss' if isinstance(module, CountsLabels) else cls.__name__
    is_container = isinstance(module, (nn.ModuleList, nn.ModuleDict, nn.Sequential))
    children = [(key, child) for key, child in module._modules.items() if child is not None]
    return Node('' if is_container else name, cls, get_package(cls), children)


def _get_module(decision: LossDecision) -> Any:
    return importlib.import_module(f'mmguard.losses.{decision.framework}')


def _build_guard(loss: nn.Module, decision: LossDecision, on_invalid: str) -> nn.Module:
    module = _get_module(decision)
    if decision.is_cross_entropy:
        arguments = {name: getattr(loss, name) for name in _LOSS_ARGUMENTS if hasattr(loss, name)}
        guard: nn.Module = module.GuardedCrossEntropyLoss(**arguments, on_invalid=on_invalid)
    else:
        guard = module.GuardedLoss(loss, on_invalid=on_invalid)
    return guard.train(loss.training)


def _replace_in_containers(model: nn.Module, guards: Dict[int, nn.Module]) -> None:
    """Replace losses by their ``guards`` also in attributes that are plain lists, tuples or dicts."""
    for module in model.modules():
        for name, value in list(vars(module).items()):
            if not name.startswith('_') and isinstance(value, (list, tuple, dict)):
                items: List[Any] = list(value.values()) if isinstance(value, dict) else list(value)
                if any(id(item) in guards for item in items):
                    new = [guards.get(id(item), item) for item in items]
                    if isinstance(value, dict):
                        value.update(zip(value, new))
                    elif isinstance(value, list):
                        value[:] = new
                    else:
                        setattr(module, name, type(value)(new))
