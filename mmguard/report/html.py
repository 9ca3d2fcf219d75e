"""HTML that cannot be broken by what is written into it: every text is escaped, where it is put in."""

from __future__ import annotations

import html
from typing import Any

from mmguard.visible import visible

#: Attributes that a browser follows; they may hold pictures of the page itself and places in it, nothing else.
_LINKS = ('href', 'src')
_VOID = ('meta', 'img', 'br', 'link')


class Markup(str):
    """A piece of HTML. All other strings are text."""


def element(tag: str, /, *children: Any, **attributes: Any) -> Markup:
    """An element; text among its children and all attribute values are escaped.

    Args:
        tag (str): ``'td'``.
        children: ``Markup`` as it is; ``None``: nothing; all else as text.
        attributes: ``class_='a'``, ``aria_label='b'``; ``None``: left out.

    Raises:
        ValueError: A link to anything but an inline picture or a place of the page.

    Example:
        >>> element('td', '<script>', class_='a"b')
        '<td class="a&quot;b">&lt;script&gt;</td>'
    """
    words = [tag]
    for key, value in attributes.items():
        if value is None:
            continue
        key = key.rstrip('_').replace('_', '-')
        if key in _LINKS and not str(value).startswith(('data:image/', '#')):
            raise ValueError(f'{tag} {key}: the page links to nothing outside of it, got {value!r}')
        words.append(f'{key}="{html.escape(visible(str(value)), quote=True)}"')
    start = f'<{" ".join(words)}>'
    return Markup(start if tag in _VOID else f'{start}{join(*children)}</{tag}>')


def join(*pieces: Any) -> Markup:
    return Markup(''.join(piece if isinstance(piece, Markup) else text(piece) for piece in pieces if piece is not None))


def text(value: Any) -> Markup:
    """Any value as text."""
    return Markup(html.escape(visible(str(value)), quote=True))
