"""Detection of mmguard's transforms, losses and hooks in a config, and insertion of guards into a copy of it."""

from __future__ import annotations

import copy
import importlib
import inspect
import re
from difflib import get_close_matches
from functools import lru_cache
from importlib.util import find_spec
from types import MappingProxyType
from typing import Any, Callable, Dict, Iterator, List, Mapping, NamedTuple, Optional, Set, Tuple

from mmguard.config.agreement import GUARD_TRANSFORMS, HOOKS
from mmguard.config.changes import Changes
from mmguard.config.classes import SCOPES, build_full_name, find_class, find_registry, get_type_name, is_lazy
from mmguard.config.guarded_pipelines import (
    build_lazy_type,
    find_trained_as_background,
    guard_pipelines,
    leave_out_ignored,
)
from mmguard.config.parts import (
    HOOK,
    Part,
    find_guarding_hook,
    find_hooks,
    find_label_guard_hooks,
    find_losses,
    find_transforms,
    from_config,
    get_passed_on,
)
from mmguard.config.read import ReadConfig, is_data
from mmguard.config.tree import (
    copy_tree,
    describe_wrong_types,
    find_scope,
    get_last_key,
    get_value,
    is_type_name,
    join_path,
    map_leaves,
    name_types,
)
from mmguard.labels.loss_selection import Node, Path, SelectedLoss, is_guarded_type, is_loss_name, visit_losses
from mmguard.labels.spaces import LabelSpaces

GUARDED_LOSSES = ('GuardedCrossEntropyLoss', 'GuardedLoss')


def is_guarded(loss: Part) -> bool:
    """Return True if a loss is a guarded loss or is wrapped in a guarded loss."""
    return is_guarded_type(loss.name) or re.search(r'\bloss\w*(\[\d+\])?\.loss$', loss.path) is not None


def add_reporting(config: ReadConfig) -> Changes:
    """Return the changes that add the import of mmguard and ``LabelGuardHook`` to a config, if missing."""
    kind = build_full_name(config.part('model').get('type'))
    is_full = kind.count('.') > 1  # a class of the new style, or its full path, which mmengine imports
    imports = config.part('custom_imports')
    found: Changes = ()
    if not is_full and 'mmguard' not in find_custom_imports(config):
        written = {'imports': [], 'allow_failed_imports': False, **imports}
        found = (('custom_imports', {**written, 'imports': [*find_custom_imports(config), 'mmguard']}),)
    if not find_label_guard_hooks(config):
        hook = {'type': f'mmguard.{HOOK}' if is_full else HOOK}
        found = (*found, ('custom_hooks', [*(config.data.get('custom_hooks') or []), hook]))
    return found


def find_custom_imports(config: ReadConfig) -> List[str]:
    """Return the names of the modules in ``custom_imports``."""
    names = config.part('custom_imports').get('imports') or []
    return [names] if isinstance(names, str) else list(names)


def guard_loss(loss: Dict[str, Any], framework: str) -> Dict[str, Any]:
    """Return the config of GuardedX for a stock loss X, and of ``GuardedLoss`` around any other loss.

    Example:
        >>> guard_loss({'type': 'CrossEntropyLoss', 'use_sigmoid': True}, 'mmdet')
        {'type': 'GuardedCrossEntropyLoss', 'use_sigmoid': True}
        >>> guard_loss({'type': 'MyLoss', 'gamma': 2.0}, 'mmseg')
        {'type': 'GuardedLoss', 'loss': {'type': 'MyLoss', 'gamma': 2.0}}
    """
    kind = loss['type']
    package, _, rest = kind.partition('.')
    name = f'Guarded{kind.rpartition(".")[2]}'
    if (not rest or package in SCOPES) and name in list_guarded_losses(package if rest else framework):
        return {**loss, 'type': build_guarded_type(kind, name, framework)}
    outer = build_guarded_type(kind, 'GuardedLoss', framework)
    if framework != 'mmdet':
        return {'type': outer, 'loss': loss}
    # mmdet's heads read arguments next to a loss's type before it is built.
    inner = rest if package == 'mmdet' and '.' not in rest else kind  # mmdet's GuardedLoss needs no prefix of mmdet
    return {'type': outer, 'loss': inner, **{key: value for key, value in loss.items() if key != 'type'}}


def list_guarded_losses(scope: str) -> List[str]:
    """Return the names of the guarded losses of a scope; without mmengine, only the two that every scope has."""
    if scope not in SCOPES or find_spec('mmengine') is None:
        return list(GUARDED_LOSSES)
    return list(importlib.import_module(f'mmguard.losses.{scope}').LOSSES)


def build_guarded_type(kind: str, name: str, framework: str) -> str:
    """Return the type of a guarded loss in the style of the type ``kind``: ``'mmdet.X'`` -> ``'mmdet.GuardedX'``."""
    package, dot, rest = kind.partition('.')
    if '.' in rest:  # the full path of a class: a new-style config that was dumped
        return f'mmguard.losses.{framework}.{name}'
    return f'{package}.{name}' if dot else name


#: Pattern of names that contain Guard or a misspelling of it, but not Grad.
_GUARD = re.compile(r'G(?!rad)[uar]{2,4}d(ed)?')


def find_own_parts(config: ReadConfig) -> List[Part]:
    """Return mmguard's transforms, losses and hooks in a config, and unknown types with similar names.

    The list is empty without mmengine, because its registries are needed to look up the types.
    """
    if find_spec('mmengine') is None:
        return []
    likely = [
        part
        for part in (*find_transforms(config), *find_losses(config), *find_hooks(config))
        if (part.written or part.registry == 'TRANSFORMS') and _GUARD.search(part.name)
    ]
    if likely:
        importlib.import_module('mmguard').register()
    return [
        part
        for part in likely
        if (
            part.cls.__module__.startswith('mmguard.')
            if part.cls
            else part.name.startswith('Guard') or find_similar_name(part)
        )
    ]


def find_similar_name(part: Part) -> str:
    """Return the class name of mmguard that is most similar to the type of a part, or ``''`` if none is similar."""
    known = {'TRANSFORMS': GUARD_TRANSFORMS, 'HOOKS': HOOKS}.get(part.registry)
    if known:
        return next(iter(get_close_matches(part.name, known, 1, 0.7)), '')
    losses = list_guarded_losses(part.scope or 'mmseg')
    longer = [name for name in losses if part.name != 'Guarded' and name.lower().startswith(part.name.lower())]
    if longer:
        return min(longer, key=len)
    stems = {_GUARD.sub('', name): name for name in losses}  # the prefix "Guarded" does not distinguish names
    return next((stems[stem] for stem in get_close_matches(_GUARD.sub('', part.name), stems, 1, 0.82)), '')


def build_error(part: Part) -> str:
    """Return the error of building a guard or hook as a run does, or ``''`` (always for losses of users' heads)."""
    config, head = name_types(part.config), part.owner if part.registry == 'MODELS' else None
    if head is not None and (head.cls is None or head.cls.__module__.partition('.')[0] not in SCOPES):
        return ''  # a user's head may change the arguments first
    if head is not None and head.is_a('DETRHead'):  # DETRHead itself combines these weights into one list
        config = {key: value for key, value in config.items() if key not in ('class_weight', 'bg_cls_weight')}
    registry = find_registry(part.scope or 'mmengine', part.registry) or find_registry('mmengine', part.registry)
    try:
        registry.build(config)
    except Exception as error:  # a user's loss inside may raise anything
        said = error.args[0] if isinstance(error, KeyError) and error.args else error  # str() would quote it
        text = ' '.join(str(said).split()).partition(' Please check')[0]  # mmengine's help, with a link
        return text.rstrip('.') or type(error).__name__
    return ''


class GuardedTree(NamedTuple):
    """A guarded config, and descriptions of the changed parts and of the parts that cannot be guarded."""

    tree: Dict[str, Any]
    changed: List[str]
    left: List[str]


def guard_tree(tree: Dict[str, Any]) -> GuardedTree:
    """Return a copy of a config with mmguard's import, hook and guards added. Existing guards are kept.

    Raises:
        TypeError: A value has the wrong type for its key.
    """
    tree = copy.deepcopy(tree)
    changed: List[str] = []
    read = ReadConfig(name_types(tree))
    unguarded = read.describe_unguarded()
    if unguarded:
        return GuardedTree(tree, [], [unguarded])
    if read.wrong_types:
        raise TypeError(describe_wrong_types(read.wrong_types))
    spaces, options = from_config(read), get_passed_on(find_guarding_hook(read))
    left = [*read.describe_unknown_framework(), *_describe_disagreements(spaces)]
    in_losses = guard_losses(tree, options)
    for path, loss in in_losses.configs.items():
        set_at(tree, path, loss)
    in_pipelines = guard_pipelines(tree, spaces, options)
    in_assigners = leave_out_ignored(tree)
    if spaces.instances is not None:
        left.extend(find_trained_as_background(tree))
    changed += _add_reported(tree, read)
    changed += [*in_losses.changed, *in_assigners, *in_pipelines.changed]
    return GuardedTree(tree, changed, [*left, *in_losses.left, *in_pipelines.left])


class RunGuards(NamedTuple):
    """Guards that a hook with ``guard=True`` adds to a config."""

    place: str  #: Path of the hook.
    options: Dict[str, Any]  #: Arguments that the hook passes on to the guards.
    #: Copy of the config with guarded pipelines and assigners; its losses are unchanged.
    tree: Dict[str, Any]
    #: Path of a loss -> config of its guard, with the arguments of the loss next to ``type``, as in the config.
    losses: Dict[str, Dict[str, Any]]
    inserted: Dict[int, Dict[str, Any]]  #: ``id`` of each guard in the pipelines of ``tree`` -> the guard.


def find_run_guards(config: ReadConfig) -> Optional[RunGuards]:
    """Return the guards that a hook with ``guard=True`` adds to a config for a run, or ``None`` if no hook adds any."""
    hook = find_guarding_hook(config)
    if hook is None or config.describe_unguarded():
        return None
    tree, options = copy_tree(config.data), get_passed_on(hook)
    # Building a loss that YAML or JSON names might run code.
    losses = guard_losses(tree, options, builds=not is_data(config.file))
    inserted = guard_pipelines(tree, from_config(config), options).inserted
    leave_out_ignored(tree)
    flat = {join_path(path): _flatten(loss) for path, loss in losses.configs.items()}
    return RunGuards(hook.path, options, tree, flat, {id(guard): guard for guard in inserted})


def _flatten(guard: Dict[str, Any]) -> Dict[str, Any]:
    """Return the config of a guard with the arguments of its wrapped loss next to ``type``."""
    loss = guard.get('loss')
    return {**loss, **guard, 'loss': loss['type']} if isinstance(loss, dict) else guard


def _describe_disagreements(spaces: LabelSpaces) -> Iterator[str]:
    for kind, space in spaces.to_dict().items():
        heads = spaces.find_disagreeing(kind)
        if heads:
            named = ', '.join(f'{head.place}: {head.num_classes}' for head in heads)
            yield f'the heads have different numbers of classes ({named}): the guards use {space.num_classes}'


def has_lazy_types(tree: Dict[str, Any]) -> bool:
    """Return True if the ``type`` of the model is a class, as in new-style configs."""
    type_ = tree['model'].get('type') if isinstance(tree.get('model'), dict) else None
    return type_ is not None and not is_type_name(type_)


def _add_reported(tree: Dict[str, Any], config: ReadConfig) -> Iterator[str]:
    for key, value in add_reporting(config):
        if key == 'custom_imports':
            tree[key] = value
            yield "custom_imports: + 'mmguard'"
            continue
        hook = value[-1]
        if has_lazy_types(tree):
            hook = {'type': build_lazy_type('mmguard', HOOK)}
        tree[key] = [*(tree.get(key) or []), hook]
        yield f'{key}: + {HOOK}'


def _guard_loss(loss: Dict[str, Any], framework: str) -> Dict[str, Any]:
    """Return the config of a guarded loss, with types in the style of the config: names or lazy classes."""
    stock = loss['type']
    if is_type_name(stock):
        return guard_loss(loss, framework)
    named = guard_loss({**loss, 'type': build_full_name(stock)}, framework)
    name = get_type_name(named['type'])
    module = 'mmguard' if framework == 'mmseg' and name in GUARDED_LOSSES else f'mmguard.losses.{framework}'
    named['type'] = build_lazy_type(module, name)
    if 'loss' in named:
        named['loss'] = stock if framework == 'mmdet' else loss
    return named


def _find_refusal(config: Dict[str, Any], scope: str) -> str:
    """Build a wrapped loss as a test, and return the error message, or ``''`` if building succeeds."""
    importlib.import_module('mmguard').register()
    try:
        with find_registry('mmengine', 'MODELS').switch_scope_and_registry(scope or None) as registry:
            registry.build(map_leaves(config, lambda leaf: leaf.build() if is_lazy(leaf) else leaf))
    except Exception as error:
        return str(error).replace('\n', ' ')
    return ''


@lru_cache(maxsize=None)  # reads source
def _get_defaults(cls: Any) -> Dict[str, Any]:
    """Return the arguments of a class with their defaults, including arguments that ``**kwargs`` passes to bases."""
    found: Dict[str, Any] = {}
    given: Set[str] = set()
    for base in inspect.getmro(cls) if inspect.isclass(cls) else ():
        if '__init__' not in vars(base):
            continue
        try:
            parameters = list(inspect.signature(vars(base)['__init__']).parameters.values())
            text = inspect.getsource(vars(base)['__init__'])
        except (TypeError, ValueError, OSError):
            break
        for parameter in parameters:
            if parameter.name not in given:
                found.setdefault(parameter.name, parameter.default)
        takes_more = any(parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in parameters)
        # Some classes skip their base and call the next one.
        if not takes_more or 'super().__init__(' not in text:
            break
        given.update(re.findall(r'(\w+)=', text.partition('super().__init__(')[2]))
    return {name: value for name, value in found.items() if name not in ('self', 'args', 'kwargs')}


def _open_part(tree: Dict[str, Any]) -> Callable[[Any, Path], Node]:
    """Return a function that converts a part of a model to a Node; a head's children include its default losses."""

    def open_node(part: Any, path: Path) -> Node:
        if isinstance(part, (list, tuple)):
            return Node('', None, '', list(enumerate(part)))
        children = list(part.items()) if isinstance(part, dict) else []
        if not children or 'type' not in part:
            return Node('', None, '', children)
        key, scope = get_last_key(path), find_scope(tree, path)
        is_loss = is_loss_name(key)
        cls = find_class(part['type'], 'MODELS', scope) if is_loss or 'head' in key else None
        if cls is not None and not is_loss:
            children += [(name, value) for name, value in _find_default_losses(cls) if name not in part]
        return Node(get_type_name(part['type']), cls, scope, children)

    return open_node


def _find_default_losses(head: type) -> Iterator[Tuple[str, Dict[str, Any]]]:
    for name, default in _get_defaults(head).items():
        if 'loss' in name and isinstance(default, dict) and 'type' in default:
            yield name, default


def set_at(tree: Dict[str, Any], path: Path, value: Any) -> None:
    """Replace the value at a path, after converting tuples along the path to lists."""
    node: Any = tree
    for depth, key in enumerate(path[:-1]):
        child = node[key]
        if isinstance(child, tuple):
            child = list(child)
            set_at(tree, path[: depth + 1], child)
        node = child
    node[path[-1]] = value


class GuardedLosses(NamedTuple):
    """Configs of guarded losses by path, and lines that describe the changed and the unguarded losses."""

    configs: Dict[Path, Dict[str, Any]]
    changed: List[str]
    left: List[str]


def guard_losses(
    tree: Dict[str, Any], options: Mapping[str, Any] = MappingProxyType({}), builds: bool = True
) -> GuardedLosses:
    """Return guarded configs for the losses of ``tree``, with ``on_invalid`` from ``options``; do not modify ``tree``.

    If ``builds`` is true, each guarded loss except cross entropy is built as a test, and left out if building fails.
    """
    guarded = GuardedLosses({}, [], [])
    on_invalid = {key: value for key, value in options.items() if key == 'on_invalid' and value in ('clip', 'raise')}

    def visit(found: SelectedLoss) -> bool:
        place, decision = join_path(found.path), found.decision
        if decision.reason:
            guarded.left.append(found.describe_left(place))
        if not decision.is_guarded:
            return False
        head = get_value(tree, found.path[:-1])
        is_default = isinstance(head, dict) and found.path[-1] not in head
        loss, scope = copy.deepcopy(found.part), find_scope(tree, found.path)
        if is_default and not is_type_name(head['type']):
            cls = find_class(loss['type'], 'MODELS', scope)
            assert cls is not None  # only a known class is guarded
            loss['type'] = build_lazy_type(cls.__module__, cls.__name__)
        config = {**_guard_loss(loss, decision.framework), **on_invalid}
        refusal = '' if decision.is_cross_entropy or not builds else _find_refusal(config, scope)
        if refusal:
            guarded.left.append(found.describe_left(place, refusal))
            return False
        guarded.configs[found.path] = config
        shown = get_type_name(config['type']) + ' around it' * ('loss' in config)
        guarded.changed.append(f'{place}: {"the default " * is_default}{found.name} -> {shown}')
        return True

    visit_losses(tree.get('model', {}), _open_part(tree), visit, ('model',))
    return guarded
