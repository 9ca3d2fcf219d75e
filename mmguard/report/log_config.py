"""What the config beside a log says about labels. It is read, never run: a log may come from anywhere."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Dict, Iterator, List, Optional

_GUARDS = {'pixels': 'GuardSegLabels', 'instances': 'GuardInstanceLabels'}
#: Where a model has its classes, the most telling first.
_HEADS = {
    'pixels': ('decode_head', 'semantic_head', 'panoptic_head'),
    'instances': ('bbox_head', 'roi_head', 'panoptic_head', 'mask_head'),
}
_CLASSES = ('num_classes', 'num_things_classes')


@dataclass
class LoggedSpace:
    """The labels that were valid in a training.

    Args:
        num_classes (int): Number of classes.
        ignore_index (int, optional): Of label maps, the label that is not trained on.
        label_map (dict[int, int]): Raw value -> class, as the guard maps it.
        class_names (list[str]): Where the config names them.
        data_roots (list[str]): Where the files are.
    """

    num_classes: int
    ignore_index: Optional[int] = None
    label_map: Dict[int, int] = field(default_factory=dict)
    class_names: List[str] = field(default_factory=list)
    data_roots: List[str] = field(default_factory=list)


def read_config(path: Path) -> Dict[str, Any]:
    """The literals of a config as mmengine writes it (``name = dict(...)``); what is no literal is left out.

    Raises:
        OSError: It cannot be read.
        ValueError: It is no Python.
    """
    try:
        tree = ast.parse(path.read_text(encoding='utf-8'))
    except (SyntaxError, RecursionError, MemoryError) as error:
        raise ValueError(f'{path}: no config: {error}') from error
    config: Dict[str, Any] = {}
    for statement in tree.body:
        if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
            config[statement.targets[0].id] = _value(statement.value)
    return config


def _value(node: ast.AST) -> Any:
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == 'dict':
        return {word.arg: _value(word.value) for word in node.keywords if word.arg}
    if isinstance(node, ast.Dict):
        return {
            _value(k): _value(v) for k, v in zip(node.keys, node.values) if isinstance(k, (ast.Constant, ast.UnaryOp))
        }
    if isinstance(node, (ast.List, ast.Tuple)):
        return [_value(element) for element in node.elts]
    try:
        return ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError):
        return None


def logged_space(config: Dict[str, Any], mode: str, kind: str) -> Optional[LoggedSpace]:
    """What was valid in a mode: as its guard says, or else its heads; ``None`` where neither does."""
    loader = config.get(f'{mode}_dataloader')
    dataset = loader.get('dataset') if isinstance(loader, dict) else None
    parts = list(_dicts(dataset))
    space = _of_guard(parts, kind) or _of_heads(config.get('model'), kind)
    if space is None:
        return None
    for part in parts:
        root, meta = part.get('data_root'), part.get('metainfo')
        if isinstance(root, str) and root not in space.data_roots:
            space.data_roots.append(root)
        names = meta.get('classes') if isinstance(meta, dict) else None
        if isinstance(names, (list, tuple)) and not space.class_names:
            space.class_names = [str(name) for name in names]
    return space


def has_hook(config: Dict[str, Any]) -> bool:
    return any(_name(part) == 'LabelGuardHook' for part in _dicts(config.get('custom_hooks')))


def _of_guard(parts: List[Dict[Any, Any]], kind: str) -> Optional[LoggedSpace]:
    for part in parts:
        if _name(part) == _GUARDS[kind] and isinstance(part.get('num_classes'), int):
            label_map = part.get('label_map')
            try:
                mapped = {int(raw): int(label) for raw, label in (label_map or {}).items()}
            except (AttributeError, TypeError, ValueError):
                mapped = {}
            ignored = part.get('ignore_index', 255) if kind == 'pixels' else None
            return LoggedSpace(part['num_classes'], ignored, mapped)
    return None


def _of_heads(model: Any, kind: str) -> Optional[LoggedSpace]:
    if not isinstance(model, dict):
        return None
    for head in _HEADS[kind]:
        for part in _dicts(model.get(head)):
            for key in _CLASSES:
                if isinstance(part.get(key), int):
                    ignored = part.get('ignore_index', 255) if kind == 'pixels' else None
                    return LoggedSpace(part[key], ignored)
    return None


def _dicts(node: Any) -> Iterator[Dict[Any, Any]]:
    if isinstance(node, dict):
        yield node
        node = list(node.values())
    if isinstance(node, (list, tuple)):
        for element in node:
            yield from _dicts(element)


def _name(part: Dict[Any, Any]) -> str:
    """Its type without scope (``mmseg.X``) and module."""
    return str(part.get('type', '')).rpartition('.')[2]
