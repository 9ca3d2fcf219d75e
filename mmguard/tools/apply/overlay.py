"""A config that inherits from another and says only what differs."""

from __future__ import annotations

from difflib import SequenceMatcher
from typing import Any, Dict, List, Tuple, Union

from mmguard.config.tree import Path
from mmguard.tools.apply.source_text import Code, Items, Source, dict_source, is_name, one_line, source_of, statement

#: Names that a ConfigDict answers itself.
_OF_DICTS = frozenset(dir(dict)) | {'to_dict', 'merge', 'build_lazy', 'lazy'}

_COMMENTS = {
    'custom_imports': '# Registers the guards.',
    'custom_hooks': '# Tells what was skipped: in the log, in label_guard.jsonl.',
    'model': '# Losses that no label can bring down. All other arguments stay as they are.',
}
_FIRST = ('custom_imports', 'custom_hooks', 'model')


def overlay_text(base: Union[str, Code], old: Dict[str, Any], new: Dict[str, Any], guards: bool = True) -> str:
    """A config text of what differs.

    Args:
        base (str or Code): What ``_base_`` names; code evaluates to it.
        old (dict): The config that it loads.
        new (dict): The config wanted.
        guards (bool): Whether what differs are guards: comments say what they are for.

    Raises:
        ValueError: A key of ``old`` is missing in ``new``, or a value has no source.
    """
    gone = [key for key in old if key not in new]
    if gone:
        raise ValueError(f'inheritance cannot remove {", ".join(gone)}')
    changed = [key for key in new if key not in old or old[key] != new[key]]
    # Pipelines first: the data sets then name them.
    ordered = [key for key in _FIRST if key in changed]
    ordered += [key for key in changed if key not in ordered and isinstance(new[key], list)]
    ordered += [key for key in changed if key not in ordered]
    lines = [f'_base_ = [{one_line(source_of(base))}]', '']
    named: List[Tuple[str, Any]] = []
    for key in ordered:
        if guards and key in _COMMENTS:
            lines.append(_COMMENTS[key])
        lines.append(statement(key, _Difference(named).merged(old.get(key, _ABSENT), new[key], (key,))))
        if isinstance(new[key], list) and key not in _FIRST:
            named.append((key, new[key]))
    return '\n'.join(lines) + '\n'


_ABSENT = object()


class _Difference:
    """Source of new values in terms of old ones.

    Args:
        named (list): Names of the text so far, and their values.
    """

    def __init__(self, named: List[Tuple[str, Any]]) -> None:
        self.named = named

    def merged(self, old: Any, new: Any, path: Path) -> Source:
        """What mmengine merges over ``old`` to give ``new``."""
        if isinstance(old, dict) and isinstance(new, dict):
            if all(key in new for key in old):
                changes = {
                    k: self.merged(old.get(k, _ABSENT), v, (*path, k)) for k, v in new.items() if _differs(old, k, v)
                }
                return dict_source(changes)
            whole = {
                k: Code(reference((*path, k))) if k in old and old[k] == v else self._of_old(old, v, (*path, k), path)
                for k, v in new.items()
            }
            return dict_source({'_delete_': True, **whole})
        return self.whole(old, new, path)

    def _of_old(self, old: Dict[str, Any], value: Any, path: Path, around: Path) -> Source:
        return Code(reference(around)) if value == old else self.whole(old.get(str(path[-1]), _ABSENT), value, path)

    def whole(self, old: Any, new: Any, path: Path) -> Source:
        """``new``, written out; what it shares with ``old`` is referred to."""
        for name, value in self.named:
            if value == new:
                return Code(name)
        if isinstance(old, list) and isinstance(new, list):
            return self._spliced(old, new, path)
        if isinstance(old, dict) and isinstance(new, dict):
            return self._updated(old, new, path)
        if old is not _ABSENT and isinstance(new, dict):
            return source_of({k: Code(reference(path)) if v == old else v for k, v in new.items()})
        return source_of(new)

    def _updated(self, old: Dict[str, Any], new: Dict[str, Any], path: Path) -> Source:
        if any(value == old for value in new.values()):  # a wrapper around it
            return source_of({k: Code(reference(path)) if v == old else v for k, v in new.items()})
        if all(key in new for key in old) and all(isinstance(k, str) and k.isidentifier() for k in new):
            changes = {k: self.whole(old.get(k, _ABSENT), v, (*path, k)) for k, v in new.items() if _differs(old, k, v)}
            return dict_source(changes, first=[('', Code(reference(path)))])
        return source_of(new)

    def _spliced(self, old: List[Any], new: List[Any], path: Path) -> Source:
        parts: List[Tuple[str, Source]] = []
        matcher = SequenceMatcher(None, [repr(v) for v in old], [repr(v) for v in new], autojunk=False)
        for kind, a, b, c, d in matcher.get_opcodes():
            if kind == 'equal':
                parts.append(_kept(reference(path), a, b, len(old)))
                continue
            for number in range(c, d):
                # Items that were changed in place keep their order; the rest are new.
                twin = a + number - c
                is_twin = twin < b and _is_alike(old[twin], new[number])
                source = self.whole(old[twin], new[number], (*path, twin)) if is_twin else source_of(new[number])
                parts.append(('', source))
        return Items('[', parts, ']')


def _kept(name: str, start: int, end: int, length: int) -> Tuple[str, Source]:
    """The items of a list from ``start`` to ``end``."""
    if (start, end) == (0, length):
        return '*', Code(name)
    if end - start == 1:
        return '', Code(f'{name}[{start}]')
    return '*', Code(f'{name}[{start or ""}:{"" if end == length else end}]')


def _differs(old: Dict[str, Any], key: str, value: Any) -> bool:
    return key not in old or old[key] != value


def _is_alike(old: Any, new: Any) -> bool:
    if not isinstance(old, dict) or not isinstance(new, dict):
        return False
    return all(key in new for key in old) or any(value == old for value in new.values())


def reference(path: Path) -> str:
    """``_base_.model.heads[0]``.

    Example:
        >>> reference(('model', 'heads', 0, 'items'))
        "_base_.model.heads[0]['items']"
    """
    text = '_base_'
    for key in path:
        is_plain = isinstance(key, str) and is_name(key) and key not in _OF_DICTS
        text += f'.{key}' if is_plain else f'[{key!r}]'
    return text
