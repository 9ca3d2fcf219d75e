"""The facts of several data sets that are trained on together, as one."""

from __future__ import annotations

from dataclasses import fields
from typing import Any, Dict, List, Sequence

from mmguard.findings.facts import AnnotationFacts, LabelFacts, LoaderFacts
from mmguard.findings.yolo import YoloFacts

#: What says how the data sets are read, not what is in them: the first one's holds.
_SETTINGS = (
    'num_classes',
    'ignore_index',
    'kind',
    'class_names',
    'format',
    'labelled_by',
    'min_label',
    'min_size',
    'maps',
    'config',
)
#: Names that no data set has, or annotates: only what all of them lack is lacking.
_LACKING = ('unused', 'not_in_file')


def merged(parts: Sequence[LabelFacts]) -> LabelFacts:
    """Adds up facts. Counts are summed, lists joined; names are unused only where no part uses them.

    Args:
        parts (sequence of LabelFacts): At least one; of the same head, so with the same ``num_classes``.

    Raises:
        ValueError: Without parts.
    """
    if not parts:
        raise ValueError('there are no facts to merge')
    if len(parts) == 1:
        return parts[0]
    total = _merged_fields(parts, skip=('annotations', 'loader'))
    known = [part.annotations for part in parts if part.annotations is not None]
    asked = [part.loader for part in parts if part.loader is not None]
    return LabelFacts(
        **total,
        annotations=AnnotationFacts(**_merged_fields(known)) if known else None,
        loader=LoaderFacts(**_merged_fields(asked)) if asked else None,
    )


def _merged_fields(parts: Sequence[Any], skip: Sequence[str] = ()) -> Dict[str, Any]:
    return {
        field.name: _merged(field.name, [getattr(part, field.name) for part in parts])
        for field in fields(parts[0])
        if field.name not in skip
    }


def _merged(name: str, values: List[Any]) -> Any:
    first = values[0]
    if name in _SETTINGS:
        return first
    if name in _LACKING:
        return [value for value in first if all(value in other for other in values[1:])]
    if isinstance(first, dict):
        return _merged_dicts(values)
    if isinstance(first, list):
        return list(dict.fromkeys(item for value in values for item in value))
    if isinstance(first, int) and not isinstance(first, bool):
        return sum(values)
    if isinstance(first, float):
        return max(values)
    known = [value for value in values if value]
    if known and isinstance(known[0], YoloFacts):
        return YoloFacts(**_merged_fields(known))
    return known[0] if known else first  # texts, and what is not known


def _merged_dicts(values: List[Dict[Any, Any]]) -> Dict[Any, Any]:
    joined: Dict[Any, Any] = {}
    for value in values:
        for key, item in value.items():
            if key not in joined or isinstance(item, (str, tuple)):
                joined.setdefault(key, item)
            else:
                joined[key] = joined[key] + item
    return joined
