"""Labels in a sample: their fields, their source file, and the report that guards leave there."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Dict, List, Mapping, Optional, Sequence, Tuple

from mmguard.labels.space import Rule
from mmguard.labels.tally import LABEL_GUARD, LABEL_MAP, Tally, tallies_of

if TYPE_CHECKING:
    from mmengine.structures import BaseDataElement

#: Names of the label map in ``gt_sem_seg``: mmseg's, mmdet's.
_MAPS = ('data', 'sem_seg')


def find_map(sample: Any) -> Optional[Tuple[Any, str]]:
    """Return the container of the label map and its field name; ``None`` if a sample has no map."""
    holder = sample.get('gt_sem_seg')
    field = None if holder is None else next((name for name in _MAPS if name in holder), None)
    return None if field is None else (holder, field)


def find_instances(sample: Any) -> Optional[Any]:
    """Return the instances of a sample; ``None`` without annotations, when they have no fields."""
    instances = sample.get('gt_instances')
    return instances if instances is not None and instances.keys() else None


#: Keys of the path: of the label file, else of the image.
_KEYS = ('seg_map_path', 'img_path')


def file_of(sample: Any) -> Optional[str]:
    """Return the file of a sample, packed or not; ``None`` if unknown. With several cameras, the first one.

    Example:
        >>> file_of({'img_path': ['front.jpg', 'left.jpg']}), file_of({})
        ('front.jpg', None)
    """
    for key in _KEYS:
        found = sample.get(key)
        if isinstance(found, (list, tuple)):
            found = next(iter(found), None)
        if found:
            return str(found)
    return None


#: Source of a sample without a path.
UNKNOWN = '<unknown>'


def source_of(sample: BaseDataElement) -> str:
    """Return the file that a sample's labels came from."""
    return file_of(sample) or UNKNOWN


def relative_to(source: str, roots: List[str]) -> str:
    """Make a source relative to the data root that contains it."""
    for root in roots:
        prefix = root.rstrip('/\\')
        if source.startswith(prefix) and source[len(prefix) : len(prefix) + 1] in ('/', os.sep):
            return source[len(prefix) + 1 :]
    return source


def path_of(name: str, roots: Sequence[str]) -> str:
    """Return an openable path for a file in a log; the name itself if no file or several match."""
    paths = (os.path.join(root, name) for root in (*roots, ''))
    found = {os.path.realpath(path): path for path in paths if os.path.isfile(path)}
    return next(iter(found.values())) if len(found) == 1 else name  # two roots may have a file of this name


Record = Dict[str, Dict[str, Any]]


def rule_for(rule: Rule, sample: Any) -> Rule:
    """Return the rule for a sample: without its label map if an earlier guard has applied the same one."""
    label_map = rule.whole_map
    record: Record = sample.get(LABEL_GUARD) or {}
    return rule.drop_map() if label_map and record.get(rule.kind, {}).get(LABEL_MAP) == label_map else rule


def leave_in_results(results: Dict[str, Any], kind: str, tally: Tally, label_map: Mapping[Any, int]) -> None:
    """Attach a tally, and the applied label map, to an unpacked sample."""
    results[LABEL_GUARD] = _join_record(results, kind, tally, label_map)


def leave_in_sample(sample: Any, kind: str, tally: Tally, label_map: Mapping[Any, int]) -> None:
    """Attach a tally, and the applied label map, to the meta information of a packed sample."""
    # set_metainfo would copy the record deeply, which only the guards hold.
    sample.set_field(_join_record(sample, kind, tally, label_map), LABEL_GUARD, field_type='metainfo')


def _join_record(sample: Any, kind: str, tally: Tally, label_map: Mapping[Any, int]) -> Record:
    """Return the sample's record with a tally added, merged with that of an earlier guard, if any."""
    joined: Record = dict(sample.get(LABEL_GUARD) or {})
    if kind in joined:
        tally = tallies_of({LABEL_GUARD: {kind: joined[kind]}})[kind].merge_second_look(tally)
    mapped = dict(label_map) or joined.get(kind, {}).get(LABEL_MAP)
    joined[kind] = {**vars(tally), **({LABEL_MAP: mapped} if mapped else {})}
    return joined
