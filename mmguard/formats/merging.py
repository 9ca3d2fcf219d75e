"""Facts of several data sets that are trained as one."""

from __future__ import annotations

from dataclasses import fields
from typing import Any, Dict, List, Sequence

from mmguard.facts.labels import AnnotationFacts, LabelFacts, LoaderFacts
from mmguard.facts.yolo import YoloFacts

#: Fields that describe how the data sets are read, not their content: the first value is kept.
_SETTINGS = (
    'num_classes', 'ignore_index', 'kind', 'class_names', 'format', 'labelled_by', 'min_label', 'min_size', 'maps',
    'config', 'record_advice',
)  # fmt: skip


def merge_facts(parts: Sequence[LabelFacts]) -> LabelFacts:
    """Merge facts: counts are summed, lists joined.

    Raises:
        ValueError: ``parts`` is empty.
    """
    if not parts:
        raise ValueError('expected facts to merge, got none')
    if len(parts) == 1:
        return parts[0]
    total = _merge_fields(parts, skip=('annotations', 'loader'))
    known = [part.annotations for part in parts if part.annotations is not None]
    asked = [part.loader for part in parts if part.loader is not None]
    return LabelFacts(
        **total,
        annotations=AnnotationFacts(**_merge_fields(known)) if known else None,
        loader=LoaderFacts(**_merge_fields(asked)) if asked else None,
    )


def _merge_fields(parts: Sequence[Any], skip: Sequence[str] = ()) -> Dict[str, Any]:
    return {
        field.name: _merge(field.name, [getattr(part, field.name) for part in parts])
        for field in fields(parts[0])
        if field.name not in skip
    }


def _merge(name: str, values: List[Any]) -> Any:
    first = values[0]
    if name in _SETTINGS:
        return first
    if isinstance(first, dict):
        return _merge_dicts(values)
    if isinstance(first, list):
        return list(dict.fromkeys(item for value in values for item in value))
    if isinstance(first, int) and not isinstance(first, bool):
        return sum(values)
    if isinstance(first, float):
        return max(values)
    known = [value for value in values if value]
    if known and isinstance(known[0], YoloFacts):
        return YoloFacts(**_merge_fields(known))
    return known[0] if known else first  # strings, and unknown values


def _merge_dicts(values: List[Dict[Any, Any]]) -> Dict[Any, Any]:
    joined: Dict[Any, Any] = {}
    for value in values:
        for key, item in value.items():
            if key not in joined or isinstance(item, (str, tuple)):
                joined.setdefault(key, item)
            else:
                joined[key] = joined[key] + item
    return joined
