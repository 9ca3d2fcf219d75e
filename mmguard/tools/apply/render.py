"""What `mmguard apply` says: what was changed, also as a unified diff, coloured on a terminal."""

from __future__ import annotations

import difflib
from typing import Any, Dict, List, TextIO

from mmguard.text.visible import visible
from mmguard.text.words import counted
from mmguard.tools.apply.source_text import WIDTH, Code, Items, Source, layout, one_line, source_of
from mmguard.tools.apply.written import without_scopes

_COLOURS = {'+++': 'bold', '---': 'bold', '@@': 'cyan', '+': 'green', '-': 'red'}


def unified(old: Dict[str, Any], new: Dict[str, Any], old_name: str, new_name: str) -> List[str]:
    """The lines of a unified diff between two configs, both written out in full."""
    return list(difflib.unified_diff(_lines(old), _lines(new), fromfile=old_name, tofile=new_name, lineterm='', n=1))


def _lines(tree: Dict[str, Any]) -> List[str]:
    lines: List[str] = []
    for key, value in without_scopes(tree).items():
        lines += _spread(f'{key} = ', source_of(_with_source(value)), 0, ends='').split('\n')
    return lines


def _with_source(node: Any) -> Any:
    """The same with a description in place of objects, which a diff can only show."""
    if isinstance(node, dict):
        return {key: _with_source(value) for key, value in node.items()}
    if isinstance(node, (list, tuple)):
        values = [_with_source(value) for value in node]
        return values if isinstance(node, list) else tuple(values)
    try:
        source_of(node)
        return node
    except ValueError:
        return Code(repr(node))


def _spread(prefix: str, source: Source, indent: int, ends: str) -> str:
    """One line per argument wherever a dict holds another, so that a diff shows the argument alone."""
    nested = isinstance(source, Items) and any(isinstance(part, Items) and part.parts for _, part in source.parts)
    line = ' ' * indent + prefix + one_line(source) + ends
    if not isinstance(source, Items) or (not nested and len(line) <= WIDTH):
        return line
    if not nested:
        return ' ' * indent + prefix + layout(source, indent + len(prefix), indent) + ends
    parts = [_spread(key, part, indent + 4, ',') for key, part in source.parts]
    closing = ' ' * indent + source.closing.lstrip(',') + ends
    return '\n'.join([' ' * indent + prefix + source.opening, *parts, closing])


def show_diff(lines: List[str], file: TextIO) -> None:
    """Prints a diff; in colour where ``file`` is a terminal that has any."""
    if not file.isatty():
        print('\n'.join(lines), file=file)
        return
    from rich.console import Console
    from rich.text import Text

    console = Console(file=file)
    for line in lines:
        style = next((colour for start, colour in _COLOURS.items() if line.startswith(start)), 'dim')
        console.print(Text(line, style=style), soft_wrap=True)


def show_changes(source: str, changed: List[str], left: List[str]) -> None:
    """Prints what was changed, and what was left as it is."""
    print(f'{counted(len(changed), "change")}:' if changed else f'{source} is guarded already, nothing to change')
    for line in changed:
        print(f'  {visible(line)}')
    if left:
        print('left as it is:')
        for line in left:
            print(f'  {visible(line)}')


def how(text: str) -> str:
    """In which form a config is written."""
    base = next((line for line in text.splitlines() if line.startswith('_base_ = ')), None)
    return f'inherits: {base}' if base else 'in full: a new-style config, or one that cannot be inherited from'
