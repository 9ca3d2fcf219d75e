"""Traversal of configs as trees of dicts and lists, and a search for values of the wrong type."""

from __future__ import annotations

import inspect
import re
from typing import Any, Callable, Dict, Iterable, Iterator, List, NamedTuple, Optional, Sequence, Tuple, Union

from mmguard.config.classes import build_full_name, get_type_name, is_lazy
from mmguard.errors import CannotRun
from mmguard.text import shorten

Path = Tuple[Union[str, int], ...]


def get_value(tree: Any, path: Iterable[Union[str, int]]) -> Any:
    """Return the value at a path of a tree, or ``None`` if the path does not exist."""
    try:
        for key in path:
            tree = tree[key]
    except (LookupError, TypeError):
        return None
    return tree


def split_path(path: str) -> List[Union[str, int]]:
    """Split a path into its keys and positions.

    Example:
        >>> split_path('model.decode_head[1].num_classes')
        ['model', 'decode_head', 1, 'num_classes']
    """
    return [int(step) if step.isdigit() else step for step in re.findall(r'[^.\[\]]+', path)]


def copy_tree(value: Any) -> Any:
    """Return a copy of the dicts, lists and tuples of a tree, with all other values shared."""
    # Not deepcopy: two places that share one object would still share it in the copy, and change together.
    if isinstance(value, dict):
        return {key: copy_tree(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(map(copy_tree, value)) if type(value) in (list, tuple) else value
    return value


def walk(node: Any, path: Path = ()) -> Iterator[Tuple[Path, Dict[str, Any]]]:
    """Yield all dicts of a tree with their paths, outer dicts first."""
    if isinstance(node, dict):
        yield path, node
        for key, value in list(node.items()):
            yield from walk(value, (*path, key))
    elif isinstance(node, (list, tuple)):
        for number, value in enumerate(node):
            yield from walk(value, (*path, number))


def join_path(path: Path) -> str:
    """Join a path: ``('model', 'decode_head', 'loss_decode', 0)`` -> ``'model.decode_head.loss_decode[0]'``.

    Example:
        >>> join_path(('model', 'heads', 0, 'loss_cls'))
        'model.heads[0].loss_cls'
    """
    return ''.join(f'[{key}]' if isinstance(key, int) else f'.{key}' for key in path).lstrip('.')


def get_last_key(path: Path) -> str:
    """Return the last string key of a path, which is the name of the list for a list element."""
    return next((key for key in reversed(path) if isinstance(key, str)), '')


def is_type_name(type_: Any) -> bool:
    """Return True if a type is a string. In new-style configs, types are classes."""
    return isinstance(type_, str)


def map_leaves(node: Any, change: Callable[[Any], Any]) -> Any:
    """Return a copy of a tree with a function applied to everything but dicts, lists and tuples."""
    if isinstance(node, dict):
        return {key: map_leaves(value, change) for key, value in node.items()}
    if isinstance(node, (list, tuple)):
        values = [map_leaves(value, change) for value in node]
        return values if isinstance(node, list) else tuple(values)
    return change(node)


def name_types(tree: Any) -> Any:
    """Return a copy of a tree with classes replaced by their full names, which mmengine's registries understand."""
    return map_leaves(tree, lambda leaf: build_full_name(leaf) or leaf)


def find_scope(tree: Dict[str, Any], path: Path) -> str:
    """Return the scope in which a component is built: the innermost enclosing ``_scope_``, else ``default_scope``.

    The prefix of a type applies only to that type: ``mmdet.MaskFormerHead`` in a config of mmseg builds its losses in
    mmseg's scope. ``path`` may name a component that the config leaves at its default.
    """
    scope = str(tree.get('default_scope') or '')
    node: Any = tree
    for key in path:
        if isinstance(node, dict) and key not in node:
            break
        node = node[key]
        if isinstance(node, dict):
            scope = str(node.get('_scope_') or scope)
    return scope


#: Maximum depth; deeper trees would cause a RecursionError.
_DEEPEST = 100
#: Maximum number of classes of a head: advice may build lists of that length.
MOST_CLASSES = 1_000_000


class WrongTypeValue(NamedTuple):
    """A value of a type that its key does not accept."""

    path: str  #: Path of the value, e.g. ``model.decode_head.num_classes``.
    value: Any  #: The value, or a description if ``repr`` fails.
    wanted: str  #: Description of the expected type.

    def __str__(self) -> str:
        return f'{self.path} = {shorten(self.value)}: expected {self.wanted}, got {name_type(self.value)}'


class AcceptedType(NamedTuple):
    """A type that a key accepts, besides ``None``: its description, and a function that checks a value."""

    description: str
    accepts: Callable[[Any], bool]


def _is_int(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _is_dict(value: Any) -> bool:
    return isinstance(value, dict)


def _is_object(value: Any) -> bool:
    """Return True if a value is a class or an object already built, which mmengine accepts in place of a dict."""
    plain = (bool, int, float, complex, str, bytes, list, tuple, dict, set, frozenset)
    return value is not None and not isinstance(value, plain) and not hasattr(value, 'tolist')


def _accept_all(accepts: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, (list, tuple)) and all(map(accepts, value))


def _accept_either(*accept: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: any(one(value) for one in accept)


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_type(value: Any) -> bool:
    return bool(value.strip()) if isinstance(value, str) else callable(value) or is_lazy(value)


_DICT = AcceptedType('a dict', _is_dict)
_PART = AcceptedType('a dict', _accept_either(_is_dict, _is_object))
_PARTS = AcceptedType(
    'a dict or a list of dicts', _accept_either(_is_dict, _is_object, _accept_all(_accept_either(_is_dict, _is_object)))
)
_LIST_OF_PARTS = AcceptedType('a list of dicts', _accept_all(_accept_either(_is_dict, _is_object)))
_TEXT = AcceptedType('a string', _is_text)
_TEXTS = AcceptedType('a string or a list of strings', _accept_either(_is_text, _accept_all(_is_text)))
_NAMES = AcceptedType('a list of names', _accept_either(_is_text, lambda value: isinstance(value, (list, tuple))))
_NUMBER = AcceptedType('a number', _is_number)
_LABEL = AcceptedType('an integer', _is_int)
_BOOL = AcceptedType('True or False', lambda value: isinstance(value, (bool, int)))
_CLASSES = AcceptedType(
    f'an integer of at most {MOST_CLASSES:,}', lambda value: _is_int(value) and abs(value) <= MOST_CLASSES
)
_WEIGHTS = AcceptedType(
    'a list of numbers, or the name of a file with such a list',
    _accept_either(_is_text, _is_number, _is_object, _accept_all(_is_number)),
)
_TYPE = AcceptedType('the name of a class', _is_type)

_TOP: Dict[str, AcceptedType] = {
    'default_scope': _TEXT,
    'model': _PART,
    'tta_model': _PART,
    'data_preprocessor': _PART,
    'custom_imports': _DICT,
    'default_hooks': _DICT,
    'custom_hooks': _LIST_OF_PARTS,
    **{f'{split}_dataloader': _PARTS for split in ('train', 'val', 'test')},
    **{f'{split}_evaluator': _PARTS for split in ('val', 'test')},
}
_DATASET: Dict[str, AcceptedType] = {
    'dataset': _PARTS,
    'datasets': _PARTS,
    'pipeline': _LIST_OF_PARTS,
    'metainfo': _PART,
    'data_root': _TEXT,
    'data_prefix': _DICT,
    'filter_cfg': _DICT,
    'reduce_zero_label': _BOOL,
}
_HEAD: Dict[str, AcceptedType] = {
    **dict.fromkeys(('num_classes', 'num_things_classes', 'num_stuff_classes'), _CLASSES),
    **dict.fromkeys(('loss_decode', 'loss_cls', 'loss_bbox', 'loss_mask', 'loss_dice', 'loss_seg'), _PARTS),
    'ignore_index': _LABEL,
}
_LOSS: Dict[str, AcceptedType] = {'class_weight': _WEIGHTS, 'ignore_index': _LABEL}
_ASSIGNER: Dict[str, AcceptedType] = {'ignore_iof_thr': _NUMBER}
_GUARD: Dict[str, AcceptedType] = {'num_classes': _CLASSES, 'ignore_index': _LABEL, 'label_map': _DICT}
_IMPORTS: Dict[str, AcceptedType] = {'imports': _TEXTS}
_METAINFO: Dict[str, AcceptedType] = {'classes': _NAMES}
#: Top-level keys whose parts have a ``type`` that names a class.
_BUILT = ('model', 'tta_model', 'data_preprocessor', 'custom_hooks', 'default_hooks')


def separate_wrong_types(tree: Dict[str, Any]) -> Tuple[Dict[str, Any], List[WrongTypeValue]]:
    """Return a copy of a config without values of the wrong type, and the list of these values.

    NumPy numbers become Python numbers, arrays and tensors become lists. Removed list elements become ``None``.

    Raises:
        CannotRun: The config is nested too deeply.
    """
    found: List[WrongTypeValue] = []
    copy = _copy(tree, (), found)
    return copy, found


def name_type(value: Any) -> str:
    """Return the type name of a value, ``'text'`` for a string."""
    return 'text' if isinstance(value, str) else type(value).__name__


def describe_wrong_types(wrong_types: Sequence[WrongTypeValue], limit: int = 3) -> str:
    """Describe the first ``limit`` values of a wrong type, and count the rest."""
    named = '; '.join(map(str, wrong_types[:limit]))
    return f'{named}; and {len(wrong_types) - limit} more' if len(wrong_types) > limit else named


def _copy(node: Any, keys: Tuple[Any, ...], wrong: List[WrongTypeValue]) -> Any:
    if len(keys) > _DEEPEST:
        raise CannotRun(f'{join_path(keys[:8])}...: nested more than {_DEEPEST} levels deep')
    if isinstance(node, dict):
        wanted = _find_wanted(node, keys)
        copy = {}
        for key, value in node.items():
            value = _normalize_number(value)
            if _fits(value, wanted.get(key), (*keys, key), wrong):
                copy[key] = _copy(value, (*keys, key), wrong)
        return copy
    if type(node) in (list, tuple):
        copies = []
        for number, value in enumerate(node):
            value = _normalize_number(value)
            here = (*keys, number)
            copies.append(_copy(value, here, wrong) if _fits(value, None, here, wrong) else None)
        return type(node)(copies)
    return node


def _fits(value: Any, accepted: Optional[AcceptedType], keys: Tuple[Any, ...], wrong: List[WrongTypeValue]) -> bool:
    if _is_int(value) and value.bit_length() > 64:
        # Python may refuse to print so many digits.
        words = accepted.description if accepted is not None else 'a number that fits 64 bits'
        wrong.append(WrongTypeValue(join_path(keys), f'an integer of {value.bit_length():,} bits', words))
        return False
    if accepted is None or value is None or accepted.accepts(value):
        return True
    wrong.append(WrongTypeValue(join_path(keys), _make_showable(value), accepted.description))
    return False


def _make_showable(value: Any) -> Any:
    try:
        repr(value)
    except Exception:  # a number with too many digits to print, or an object without a repr
        return f'a value that cannot be shown ({name_type(value)})'
    return value


def _normalize_number(value: Any) -> Any:
    """Convert a NumPy number to a Python number, and an array or tensor to a list."""
    if value is None or isinstance(value, (bool, int, float, str, dict, list, tuple)) or inspect.isclass(value):
        return value
    if not callable(getattr(value, 'tolist', None)) or is_lazy(value):
        return value
    try:
        return value.tolist()
    except Exception:  # a tensor on an unavailable device, or of a type that has no list
        return None


def _find_wanted(node: Dict[str, Any], keys: Tuple[Any, ...]) -> Dict[str, AcceptedType]:
    """Return the types that the keys of a dict accept; ``keys`` is the path of the dict."""
    names = [step for step in keys if isinstance(step, str)]
    if not names:
        return _TOP
    first, last = names[0], names[-1]
    wanted: Dict[str, AcceptedType] = {}
    if first.endswith('_dataloader'):
        if last in (first, 'dataset', 'datasets'):
            wanted.update(_DATASET)
        if last == 'metainfo':
            return _METAINFO
        if get_type_name(node.get('type')) in ('GuardSegLabels', 'GuardInstanceLabels'):
            wanted.update(_GUARD)
    elif first in ('model', 'tta_model'):
        if last.endswith('_head') or get_type_name(node.get('type')).endswith('Head'):
            wanted.update(_HEAD)
        elif last.startswith('loss') or last == 'loss':
            wanted.update(_LOSS)
        elif 'assigner' in last:
            wanted.update(_ASSIGNER)
    elif first == 'custom_imports':
        return _IMPORTS
    if first in _BUILT or first.endswith(('_dataloader', '_evaluator')):
        wanted['type'] = _TYPE
    return wanted
