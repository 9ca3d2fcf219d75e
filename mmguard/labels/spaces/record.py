"""What was valid in a run, by its record."""

from __future__ import annotations

from typing import Any, Collection, Dict, Iterator, Mapping

from mmguard.labels.spaces.space import KINDS, LabelSpaces, Space, label_map_of


def from_record(said: Mapping[str, Any], offended: Collection[str] = ()) -> LabelSpaces:
    """Which labels were valid in a loop: as its guards say, or else a loss that met others.

    Args:
        said (dict): The mode of the loop in ``label_guard.json``. It may hold anything.
        offended (collection[str]): The names of the losses that met invalid labels.
    """
    found: Dict[str, Any] = {}
    for guard in _dicts(said.get('guards')):
        _take(found, guard, 'the guard in the pipeline')
    losses = said.get('losses')
    for name, loss in losses.items() if isinstance(losses, dict) else ():
        if name in offended:
            for space in [loss] if isinstance(loss, dict) else _dicts(loss):
                _take(found, space, name)
    names = said.get('classes')
    return LabelSpaces(**found, names=tuple(map(str, names)) if isinstance(names, list) else ())


def _take(found: Dict[str, Any], said: Mapping[str, Any], place: str) -> None:
    """Of its kind; of both where it does not say which."""
    number, ignored, first = (said.get(key) for key in ('num_classes', 'ignore_index', 'min_label'))
    if not isinstance(number, int):
        return
    for kind in KINDS if said.get('kind') is None else [said['kind']]:
        if kind in KINDS:
            space = Space(
                kind,
                number,
                place,
                ignored if isinstance(ignored, int) else None,
                first if isinstance(first, int) else 0,
                label_map_of(said.get('label_map')),
            )
            found.setdefault(kind, space)


def _dicts(value: Any) -> Iterator[Dict[str, Any]]:
    return (item for item in value if isinstance(item, dict)) if isinstance(value, list) else iter(())
