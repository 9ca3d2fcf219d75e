"""Files of VOC's format as text."""

from __future__ import annotations

from typing import Any, Sequence

SIDES = ('xmin', 'ymin', 'xmax', 'ymax')
SIZE = '<size><width>{}</width><height>{}</height><depth>3</depth></size>'


def obj(name: str = 'cat', box: Sequence[Any] = (11, 11, 31, 31), difficult: Any = 0, more: str = '') -> str:
    corners = ''.join(f'<{side}>{value}</{side}>' for side, value in zip(SIDES, box))
    return f'<object><name>{name}</name><difficult>{difficult}</difficult>{more}<bndbox>{corners}</bndbox></object>'


def xml(*objects: str, size: str = SIZE.format(100, 80)) -> str:
    return f'<annotation><filename>x.jpg</filename>{size}{"".join(objects)}</annotation>'
