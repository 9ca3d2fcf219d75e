"""Values of the wrong type in a config, collected once for all readers."""

from __future__ import annotations

import inspect
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Sequence, Tuple

from mmguard.config.classes import is_lazy, name_of
from mmguard.errors import CannotRun
from mmguard.text import shorten

#: Maximum depth; deeper trees would cause a RecursionError.
_DEEPEST = 100
#: Maximum number of classes of a head: advice may build lists of that length.
MOST_CLASSES = 1_000_000


class WrongTypeValue(NamedTuple):
    """A value of a type that its key does not accept.

    Attributes:
        path (str): Its path, ``model.decode_head.num_classes``.
        value: The value; a description if it cannot be shown.
        wanted (str): Description of the expected type.
    """

    path: str
    value: Any
    wanted: str

    def __str__(self) -> str:
        return f'{self.path} = {shorten(self.value)}: expected {self.wanted}, got {kind_of(self.value)}'


class Wanted(NamedTuple):
    """Type that a key accepts, besides ``None``: as text, and as a check."""

    words: str
    accepts: Callable[[Any], bool]


def _is_int(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _is_dict(value: Any) -> bool:
    return isinstance(value, dict)


def _is_object(value: Any) -> bool:
    """Return True for a built part or a class, which mmengine accepts as is."""
    plain = (bool, int, float, complex, str, bytes, list, tuple, dict, set, frozenset)
    return value is not None and not isinstance(value, plain) and not hasattr(value, 'tolist')


def _all(accepts: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, (list, tuple)) and all(map(accepts, value))


def _either(*accept: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: any(one(value) for one in accept)


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_type(value: Any) -> bool:
    return bool(value.strip()) if isinstance(value, str) else callable(value) or is_lazy(value)


_DICT = Wanted('a dict', _is_dict)
_PART = Wanted('a dict', _either(_is_dict, _is_object))
_PARTS = Wanted('a dict or a list of dicts', _either(_is_dict, _is_object, _all(_either(_is_dict, _is_object))))
_LIST_OF_PARTS = Wanted('a list of dicts', _all(_either(_is_dict, _is_object)))
_TEXT = Wanted('a string', _is_text)
_PREFIX = Wanted('a dict or a string', _either(_is_dict, _is_text))
_TEXTS = Wanted('a string or a list of strings', _either(_is_text, _all(_is_text)))
_NAMES = Wanted('a list of names', _either(_is_text, lambda value: isinstance(value, (list, tuple))))
_NUMBER = Wanted('a number', _is_number)
_LABEL = Wanted('an integer', _is_int)
_BOOL = Wanted('True or False', lambda value: isinstance(value, (bool, int)))
_CLASSES = Wanted(
    f'an integer of at most {MOST_CLASSES:,}', lambda value: _is_int(value) and abs(value) <= MOST_CLASSES
)
_WEIGHTS = Wanted(
    'a list of numbers, or the name of a file of them', _either(_is_text, _is_number, _is_object, _all(_is_number))
)
_TYPE = Wanted('the name of a class', _is_type)

_TOP: Dict[str, Wanted] = {
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
_DATASET: Dict[str, Wanted] = {
    'dataset': _PARTS,
    'datasets': _PARTS,
    'pipeline': _LIST_OF_PARTS,
    'metainfo': _PART,
    'data_root': _TEXT,
    'data_prefix': _DICT,
    'filter_cfg': _DICT,
    'reduce_zero_label': _BOOL,
}
_HEAD: Dict[str, Wanted] = {
    **dict.fromkeys(('num_classes', 'num_things_classes', 'num_stuff_classes'), _CLASSES),
    **dict.fromkeys(('loss_decode', 'loss_cls', 'loss_bbox', 'loss_mask', 'loss_dice', 'loss_seg'), _PARTS),
    'ignore_index': _LABEL,
}
_LOSS: Dict[str, Wanted] = {'class_weight': _WEIGHTS, 'ignore_index': _LABEL}
_ASSIGNER: Dict[str, Wanted] = {'ignore_iof_thr': _NUMBER}
_GUARD: Dict[str, Wanted] = {'num_classes': _CLASSES, 'ignore_index': _LABEL, 'label_map': _DICT}
_IMPORTS: Dict[str, Wanted] = {'imports': _TEXTS}
_METAINFO: Dict[str, Wanted] = {'classes': _NAMES}
#: Frameworks whose data sets take the folder of the images as ``data_prefix``, not only a dict of folders.
_TEXT_PREFIX = ('mmpretrain',)
#: Below these keys a ``type`` names a class.
_BUILT = ('model', 'tta_model', 'data_preprocessor', 'custom_hooks', 'default_hooks')


def separate_wrong_types(tree: Dict[str, Any]) -> Tuple[Dict[str, Any], List[WrongTypeValue]]:
    """Return a copy of a config without values of the wrong type, and those values.

    Numbers of NumPy become Python's, arrays and tensors lists. Positions in lists are kept.

    Raises:
        CannotRun: The config is nested too deeply.
    """
    found: List[WrongTypeValue] = []
    copy = _copy(tree, (), found, tree.get('default_scope') in _TEXT_PREFIX)
    return copy, found


def kind_of(value: Any) -> str:
    """Return the type of a value in one word."""
    return 'text' if isinstance(value, str) else type(value).__name__


def describe_wrong_types(wrong_types: Sequence[WrongTypeValue], most: int = 3) -> str:
    """Describe values of the wrong type, one after another."""
    named = '; '.join(map(str, wrong_types[:most]))
    return f'{named}; and {len(wrong_types) - most} more' if len(wrong_types) > most else named


def _copy(node: Any, way: Tuple[Any, ...], found: List[WrongTypeValue], text_prefix: bool) -> Any:
    if len(way) > _DEEPEST:
        raise CannotRun(f'{_path(way[:8])}...: nested more than {_DEEPEST} levels deep')
    if isinstance(node, dict):
        wanted = _find_wanted(node, way)
        if text_prefix and 'data_prefix' in wanted:
            wanted['data_prefix'] = _PREFIX
        copy = {}
        for key, value in node.items():
            value = _normalize_number(value)
            if _fits(value, wanted.get(key), (*way, key), found):
                copy[key] = _copy(value, (*way, key), found, text_prefix)
        return copy
    if type(node) in (list, tuple):
        copies = []
        for number, value in enumerate(node):
            value = _normalize_number(value)
            here = (*way, number)
            copies.append(_copy(value, here, found, text_prefix) if _fits(value, None, here, found) else None)
        return type(node)(copies)
    return node


def _fits(value: Any, wanted: Optional[Wanted], way: Tuple[Any, ...], found: List[WrongTypeValue]) -> bool:
    if _is_int(value) and value.bit_length() > 64:
        # It may have more digits than Python prints.
        words = wanted.words if wanted is not None else 'a number that fits 64 bits'
        found.append(WrongTypeValue(_path(way), f'an integer of {value.bit_length():,} bits', words))
        return False
    if wanted is None or value is None or wanted.accepts(value):
        return True
    found.append(WrongTypeValue(_path(way), _make_showable(value), wanted.words))
    return False


def _make_showable(value: Any) -> Any:
    try:
        repr(value)
    except Exception:  # numbers of more digits than Python prints, or objects without a repr
        return f'a value that cannot be shown ({kind_of(value)})'
    return value


def _normalize_number(value: Any) -> Any:
    """Convert a NumPy number to Python's, and an array or tensor to a list."""
    if value is None or isinstance(value, (bool, int, float, str, dict, list, tuple)) or inspect.isclass(value):
        return value
    if not callable(getattr(value, 'tolist', None)) or is_lazy(value):
        return value
    try:
        return value.tolist()
    except Exception:  # on an unavailable device, or of a type without lists
        return None


def _find_wanted(node: Dict[str, Any], way: Tuple[Any, ...]) -> Dict[str, Wanted]:
    """Return the types that the keys of a dict accept, given its path."""
    names = [step for step in way if isinstance(step, str)]
    if not names:
        return _TOP
    first, last = names[0], names[-1]
    wanted: Dict[str, Wanted] = {}
    if first.endswith('_dataloader'):
        if last in (first, 'dataset', 'datasets'):
            wanted.update(_DATASET)
        if last == 'metainfo':
            return _METAINFO
        if name_of(node.get('type')) in ('GuardSegLabels', 'GuardInstanceLabels', 'GuardClsLabels'):
            wanted.update(_GUARD)
    elif first in ('model', 'tta_model'):
        if last.endswith('_head') or name_of(node.get('type')).endswith('Head'):
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


def _path(way: Sequence[Any]) -> str:
    return ''.join(f'[{step}]' if isinstance(step, int) else f'.{step}' for step in way).lstrip('.')
