"""Search of a config for the parts that affect labels (heads, losses, data sets, ...) and for the valid labels."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Dict, Iterator, List, Mapping, Optional, Tuple

from mmguard.config.classes import (
    MISSING,
    build_full_name,
    find_class,
    get_class_metainfo,
    get_default,
    get_scope,
    get_type_name,
)
from mmguard.config.read import ReadConfig
from mmguard.config.tree import Path, get_last_key, get_value, join_path, split_path, walk
from mmguard.files.regular import read_regular
from mmguard.labels.spaces import VOID, LabelSpaces, Space, collect_label_spaces, read_label_map

if TYPE_CHECKING:
    from mmguard.config.guards import RunGuards

HOOK = 'LabelGuardHook'
#: Arguments of the hook that it passes on to the guards that ``guard=True`` inserts.
PASSED_ON = ('label_map', 'on_invalid', 'ignore_index')
#: Maximum size in bytes of a file of class names.
_LARGEST_LIST = 8 << 20
#: Split -> key of its data loader in a config.
LOADERS = {split: f'{split}_dataloader' for split in ('train', 'val', 'test')}


@dataclass(frozen=True)
class Part:
    """A dict in the config that has a ``type``."""

    path: str  #: Path of the dict in the config, e.g. ``model.decode_head.loss_decode[0]``.
    config: Dict[str, Any]  #: The dict.
    scope: str  #: Framework of its type, e.g. ``'mmseg'``.
    registry: str = 'MODELS'  #: Registry of its class.
    owner: Optional[Part] = None  #: Head around a loss, wrapper of a data set, or data set of a transform.
    split: str = ''  #: ``'train'``, ``'val'`` or ``'test'`` for data sets, transforms and metrics.
    #: False if a hook with ``guard=True`` inserts this part. ``path`` of an inserted transform is that of the hook.
    written: bool = True

    @property
    def name(self) -> str:
        """Class name."""
        return get_type_name(self.config.get('type'))

    @property
    def is_old(self) -> bool:
        """True for a data set in the ``data`` dict of MMDetection 2.x or MMSegmentation 0.x."""
        return self.registry == 'DATASETS' and self.path.startswith('data.')

    @property
    def key(self) -> str:
        """Last key of the path without its index, e.g. ``'loss_decode'``."""
        return self.path.rsplit('.', 1)[-1].split('[')[0]

    @property
    def cls(self) -> Optional[type]:
        """Class of the ``type``, or ``None`` if it cannot be found."""
        return find_class(self.config.get('type'), self.registry, self.scope)

    def place(self, key: str) -> str:
        """Return the path of an argument, e.g. ``model.decode_head.num_classes``."""
        return f'{self.path}.{key}'

    def says(self, key: str) -> bool:
        return key in self.config

    def get(self, key: str, fallback: Any = None) -> Any:
        """Return an argument from the config, else its default in the class, else ``fallback``."""
        if key in self.config:
            return self.config[key]
        default = get_default(self.cls, key)
        return fallback if default is MISSING else default

    def is_a(self, *names: str) -> bool:
        """Return True if the class or one of its bases has one of these names."""
        if self.name in names:
            return True
        return any(base.__name__ in names for base in getattr(self.cls, '__mro__', ()))


def _add_model_parts(value: Any, path: str, scope: str, head: Optional[Part], parts: List[Part]) -> None:
    """Add every dict of the model that has a type to ``parts``; its ``owner`` is the nearest enclosing head."""
    # Fast, because about a hundred rules request all parts: one shared list, and no paths of scalars.
    if isinstance(value, dict):
        scope = value.get('_scope_', scope)
        if 'type' in value:
            part = Part(path, value, get_scope(value['type'], scope), owner=head)
            parts.append(part)
            head = part if _is_head(part) else head
        for key, inner in value.items():
            if isinstance(inner, (dict, list, tuple)):
                _add_model_parts(inner, f'{path}.{key}', scope, head, parts)
    elif isinstance(value, (list, tuple)):
        for index, inner in enumerate(value):
            if isinstance(inner, (dict, list, tuple)):
                _add_model_parts(inner, f'{path}[{index}]', scope, head, parts)


def find_model_parts(config: ReadConfig) -> List[Part]:
    found: List[Part] = []
    _add_model_parts(config.part('model'), 'model', config.scope, None, found)
    return found


def _is_head(part: Part) -> bool:
    return part.name.endswith('Head') or part.key.endswith('_head')


def find_heads(config: ReadConfig) -> List[Part]:
    """Return all heads of the model, including nested heads and heads in lists."""
    return [part for part in find_model_parts(config) if _is_head(part)]


def find_losses(config: ReadConfig) -> List[Part]:
    """Return all losses as a run builds them, including those inside a ``GuardedLoss`` (paths end with ``.loss``)."""
    found = [part for part in find_model_parts(config) if part.key.startswith('loss')]
    guards = {} if config.run_guards is None else config.run_guards.losses
    return [replace(one, config=guards[one.path], written=False) if one.path in guards else one for one in found]


def unwrap_stock_loss(loss: Part) -> Part:
    """Return the stock loss X for GuardedX; leave GuardedLoss, GuardedCrossEntropyLoss and other losses unchanged."""
    kind = build_full_name(loss.config.get('type'))
    if not loss.name.startswith('Guarded') or loss.name in ('GuardedLoss', 'GuardedCrossEntropyLoss'):
        return loss
    scope = kind.rpartition('.')[0].rpartition('.')[2]
    name = loss.name[len('Guarded') :]
    stock = {**loss.config, 'type': f'{scope}.{name}' if scope else name}
    return replace(loss, config=stock, scope=scope or loss.scope)


def find_head_losses(config: ReadConfig, head: Part) -> List[Part]:
    """Return the losses of a head, without those of nested heads."""
    return [loss for loss in find_losses(config) if loss.owner is not None and loss.owner.path == head.path]


def find_assigners(config: ReadConfig) -> List[Part]:
    """Return all assigners of the model, usually in the ``train_cfg`` of a detector or of its heads."""
    return [
        Part(join_path(path), part, get_scope(part['type'], config.scope), 'TASK_UTILS')
        for path, part in walk(config.run_data.get('model'), ('model',))
        if 'assigner' in get_last_key(path) and 'type' in part
    ]


def find_datasets(config: ReadConfig, wrappers: bool = False) -> List[Part]:
    """Return the innermost data sets of all splits, or the data sets that wrap others if ``wrappers`` is true."""
    found: List[Part] = []
    for split, loader in LOADERS.items():
        value = config.data.get(loader)
        for index, one in enumerate(value if isinstance(value, (list, tuple)) else [value]):
            at = f'{loader}[{index}]' if isinstance(value, (list, tuple)) else loader
            dataset = one.get('dataset') if isinstance(one, dict) else None
            found += _unwrap(dataset, f'{at}.dataset', config.scope, split, None, wrappers)
    for split in LOADERS if config.is_old else ():
        found += _unwrap(config.data['data'].get(split), f'data.{split}', config.scope, split, None, wrappers)
    return found


def _unwrap(value: Any, path: str, scope: str, split: str, owner: Optional[Part], wrappers: bool) -> Iterator[Part]:
    if isinstance(value, (list, tuple)):  # a list is a ConcatDataset
        for index, inner in enumerate(value):
            yield from _unwrap(inner, f'{path}[{index}]', scope, split, owner, wrappers)
    if not isinstance(value, dict) or 'type' not in value:
        return
    scope = value.get('_scope_', scope)
    part = Part(path, value, get_scope(value['type'], scope), 'DATASETS', owner, split)
    inner_keys = [key for key in ('dataset', 'datasets') if isinstance(value.get(key), (dict, list, tuple))]
    if bool(inner_keys) == wrappers:
        yield part
    for key in inner_keys:
        yield from _unwrap(value[key], part.place(key), scope, split, part, wrappers)


def get_class_names(dataset: Part) -> Optional[List[str]]:
    """Return a data set's class names from its ``metainfo``, else from its class, or ``None`` if neither has any."""
    classes = _read_classes(dataset)
    if isinstance(classes, str):
        classes = _read_lines(classes)
        if classes is None:
            return None
    if classes is None:
        classes = get_metainfo(dataset).get('classes')
    return [str(name) for name in classes] if isinstance(classes, (list, tuple)) else None


def get_class_string(dataset: Part) -> str:
    """Return the string that a data set has in place of a class list, or ``''`` if it has no such string."""
    classes = _read_classes(dataset)
    classes = get_metainfo(dataset).get('classes') if classes is None else classes
    return classes if isinstance(classes, str) else ''


def get_metainfo(dataset: Part) -> Dict[str, Any]:
    """Return the ``METAINFO`` of a data set's class."""
    return get_class_metainfo(dataset.cls, dataset.config.get('dataset_version'))


def get_palette(dataset: Part) -> List[Tuple[int, int, int]]:
    """Return the colors of a data set's classes in order, from its ``metainfo``, else from its class.

    The list is empty if neither has colors, or if the class names in the config differ from those of the class.
    """
    metainfo = dataset.config.get('metainfo')
    said = metainfo.get('palette') if isinstance(metainfo, dict) else None
    own = get_metainfo(dataset)
    if said is None and get_class_names(dataset) == list(own.get('classes') or ()):
        said = own.get('palette')
    try:
        return [(int(red), int(green), int(blue)) for red, green, blue in said or ()]
    except (TypeError, ValueError):  # e.g. palette='random' in mmdet
        return []


def says_classes(dataset: Part) -> bool:
    """Return True if the config itself sets the class names."""
    return _read_classes(dataset) is not None


def _read_classes(dataset: Part) -> Any:
    if dataset.is_old:
        return dataset.config.get('classes')
    metainfo = dataset.config.get('metainfo')
    return metainfo.get('classes') if isinstance(metainfo, dict) else None


def get_classes_path(dataset: Part) -> str:
    """Return where a data set's classes are set: a path in the config, or the ``METAINFO`` of its class."""
    if says_classes(dataset):
        return dataset.place('classes' if dataset.is_old else 'metainfo.classes')
    return f'{dataset.path} ({dataset.name}.METAINFO)'


def _read_lines(file: str) -> Optional[List[str]]:
    # If a string is the name of an existing file, mmengine reads the class names from this file.
    try:
        return read_regular(file, _LARGEST_LIST).decode().splitlines()
    except (OSError, ValueError):
        return None


def find_pipelines(config: ReadConfig) -> List[List[Part]]:
    """Return the transforms of each pipeline of a run in order; a transform comes before those nested in it."""
    found = []
    for dataset in find_datasets(config) + find_datasets(config, wrappers=True):
        path = tuple(split_path(dataset.place('pipeline')))
        steps = [
            Part(place, step, get_scope(step['type'], dataset.scope), 'TRANSFORMS', dataset, dataset.split, written)
            for place, step, written in _walk_steps(get_value(config.run_data, path), path, config.run_guards)
        ]
        found.append(steps)
    return [pipeline for pipeline in found if pipeline]


def _walk_steps(node: Any, path: Path, guards: Optional[RunGuards]) -> Iterator[Tuple[str, Dict[str, Any], bool]]:
    """Yield (path, transform, is_written) per transform of a pipeline; ``is_written`` is false if a hook inserts it."""
    if isinstance(node, dict):
        if guards is not None and id(node) in guards.inserted:
            yield guards.place, node, False
            return
        if 'type' in node:
            yield join_path(path), node, True
        for key, value in node.items():
            yield from _walk_steps(value, (*path, key), guards)
    elif isinstance(node, (list, tuple)):
        number = 0
        for value in node:
            yield from _walk_steps(value, (*path, number), guards)
            number += guards is None or id(value) not in guards.inserted


def find_transforms(config: ReadConfig) -> List[Part]:
    return [transform for pipeline in find_pipelines(config) for transform in pipeline]


def find_metrics(config: ReadConfig) -> List[Part]:
    """Return the metrics of ``val_evaluator`` and ``test_evaluator``."""
    return [
        Part(join_path(path), part, get_scope(part['type'], config.scope), 'METRICS', split=split)
        for split in ('val', 'test')
        for path, part in walk(config.data.get(f'{split}_evaluator'), (f'{split}_evaluator',))
        if 'type' in part
    ]


def find_hooks(config: ReadConfig) -> List[Part]:
    """Return the hooks of ``custom_hooks`` and ``default_hooks``."""
    listed = {f'custom_hooks[{number}]': hook for number, hook in enumerate(config.data.get('custom_hooks') or ())}
    named = {f'default_hooks.{name}': hook for name, hook in config.part('default_hooks').items()}
    return [
        Part(path, hook, get_scope(hook['type'], config.scope), 'HOOKS')
        for path, hook in {**listed, **named}.items()
        if isinstance(hook, dict) and 'type' in hook
    ]


def find_label_guard_hooks(config: ReadConfig) -> List[Part]:
    """Return the LabelGuardHooks in the order in which a run registers them. Only the first one is used."""
    found = [hook for hook in find_hooks(config) if hook.name == HOOK]
    return sorted(found, key=lambda hook: not hook.path.startswith('default_hooks'))


def find_guarding_hook(config: ReadConfig) -> Optional[Part]:
    """Return the LabelGuardHook that a run uses, or ``None`` if this hook does not have ``guard=True``."""
    return next((hook for hook in find_label_guard_hooks(config)[:1] if hook.config.get('guard') is True), None)


def get_passed_on(hook: Optional[Part]) -> Dict[str, Any]:
    """Return the arguments that a hook passes on to its guards (see ``PASSED_ON``), or {} without a hook."""
    return {name: hook.config[name] for name in PASSED_ON if name in hook.config} if hook is not None else {}


def find_preprocessors(config: ReadConfig) -> List[Part]:
    """Return the data preprocessors of the model."""
    return [part for part in find_model_parts(config) if part.key == 'data_preprocessor']


#: Guard transform -> kind of the labels that it guards.
GUARD_KINDS = {'GuardSegLabels': 'pixels', 'GuardInstanceLabels': 'instances'}


def from_config(config: ReadConfig, split: Optional[str] = None) -> LabelSpaces:
    """Read the valid labels from the heads of a config tree, without building anything.

    With a ``split``, the guards in the pipelines of that split take precedence over the heads, and the class names are
    those of the split's data set.
    """
    names, named_at = [], ''
    for dataset in find_datasets(config):
        if dataset.split == (split or 'train'):
            names, named_at = get_class_names(dataset) or [], get_classes_path(dataset)
            if names:
                break
    spaces = collect_label_spaces(find_heads(config), names, named_at)
    if split is None:
        return spaces
    guards: Dict[str, Any] = {}
    for transform in find_transforms(config):
        kind = GUARD_KINDS.get(transform.name)
        if kind is not None and transform.split == split and isinstance(transform.config.get('num_classes'), int):
            of_heads = None if transform.written else spaces.get(kind)  # a hook copies num_classes of the heads
            place = transform.place('num_classes') if of_heads is None else of_heads.place
            guards.setdefault(kind, _read_guard(kind, transform.config, place))
    return spaces.override(LabelSpaces(**guards))


def _read_guard(kind: str, guard: Mapping[str, Any], place: str) -> Space:
    ignored = guard.get('ignore_index', VOID) if kind == 'pixels' else None
    return Space(
        kind, guard['num_classes'], place, ignored, guard.get('min_label', 0), read_label_map(guard.get('label_map'))
    )
