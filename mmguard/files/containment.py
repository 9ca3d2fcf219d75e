r"""Checks that no name from a data set becomes a path outside of the data set or of ``--out``, and look-ups of files.

A data set is untrusted, so each name in it is checked here before it is joined to a folder:

- **Names in records** (``file_name`` of COCO, lists of VOC, PNG of panoptic files) must stay in the folder that they
  are relative to; :func:`resolve_inside` checks this. An absolute path inside of that folder is allowed. An image
  outside of the folder is not read. It counts as missing, with :data:`OUTSIDE_REASON` after its name.
- **Paths in settings** (``path``, ``train`` and ``val`` of a data.yaml, its lists of images, ``dataset`` in
  dataset.json, data sets of a config without ``data_root`` and ``data_prefix``) often lead to other folders of the
  same machine. Such paths are only *read*, so :func:`check_name` is enough.
- **Links** are followed for reading: ``images -> /bigdisk/images`` is common. Writers check real paths
  with :func:`is_really_inside`. A file whose real path is outside of the source folder is never copied (an image stays
  a link), and no link in ``--out`` redirects a copy to another folder.

On every system, a name is refused if it contains a control character or begins with a host (``\\host\share``, where
Windows would log in). A name with a drive (``C:\x``) is refused on every system except Windows.
"""

from __future__ import annotations

import os
import re
from typing import Iterable

#: Note after the name of a file that is not read because its path leads out of the data set.
OUTSIDE_REASON = 'outside of the data set'
_CONTROL = re.compile(r'[\x00-\x1f\x7f]')
_HOST = re.compile(r'[/\\]{2}')
_DRIVE = re.compile('[A-Za-z]:')


class OutsideError(ValueError):
    """Error for a name that leads out of its folder, or cannot be a path on this machine."""


def check_name(name: str) -> None:
    """Raise an error if a name cannot be a path on this machine.

    Raises:
        OutsideError: The name has a control character, or begins with a host or, except on Windows, with a drive.
    """
    if _CONTROL.search(name):
        raise OutsideError(f'{name!r:.120} has a control character')
    if _HOST.match(name) or (_DRIVE.match(name) and os.name != 'nt'):
        raise OutsideError(f'{name!r:.120} is {OUTSIDE_REASON}')


def resolve_inside(root: str, name: str, boundary: str = '') -> str:
    r"""Return the path of a name in a folder, and raise an error if the path leads out of the folder.

    Args:
        root (str): The folder. If empty (unknown), ``name`` may be any path of this machine.
        name (str): The name in the data set. If empty, the folder itself is returned.
        boundary (str): A folder around ``root`` that ``name`` must not leave. Default: ``root``.

    Returns:
        str: The path without ``..``, so that the opened file is the checked one, even with links.

    Raises:
        OutsideError: The name leads out of the folder if read as a path of POSIX or of Windows, or is invalid.

    Example:
        >>> resolve_inside('data/coco', 'train/./a.png')
        'data/coco/train/a.png'
        >>> resolve_inside('data/coco', r'..\..\a.png')
        Traceback (most recent call last):
        mmguard.files.containment.OutsideError: '..\\..\\a.png' is outside of the data set
    """
    check_name(name)
    if not root or not name:
        return os.path.normpath(name) if name else root
    portable = name.replace('\\', '/')
    path = os.path.normpath(os.path.join(root, name))
    places = [os.path.abspath(path), os.path.abspath(os.path.join(root, portable))]
    base = os.path.abspath(boundary or root)
    is_inside = all(_is_in(place, base) for place in places)
    if os.path.isabs(name) and not is_inside:  # ``root`` may be a link
        is_inside = all(_is_in(place, os.path.realpath(base)) for place in places)
    if not is_inside:
        raise OutsideError(f'{name!r:.120} is {OUTSIDE_REASON}')
    return path


def find_inside(root: str, name: str, boundary: str = '') -> str:
    """Return the path that :func:`resolve_inside` returns, or an empty string if it raises an error."""
    try:
        return resolve_inside(root, name, boundary)
    except OutsideError:
        return ''


def locate_file(name: str, roots: Iterable[str]) -> str:
    """Return the path of a file in one of the roots, from the working directory if possible, or '' if missing."""
    paths = (find_inside(root, name) for root in roots if root and name)
    return shorten_path(next((path for path in paths if os.path.isfile(path)), ''))


def shorten_path(path: str) -> str:
    """Return a path relative to the working directory if it is inside, else unchanged."""
    if not path or '::' in path:  # a shipped config
        return path
    try:
        inside = os.path.relpath(path)
    except ValueError:  # another drive
        return path
    return path if inside.startswith(os.pardir + os.sep) else inside


def is_really_inside(path: str, root: str) -> bool:
    """Return True if the real path (all links resolved) is the folder ``root`` or is inside this folder."""
    return _is_in(os.path.realpath(path), os.path.realpath(root))


def _is_in(path: str, root: str) -> bool:
    return path == root or path.startswith(os.path.join(root, ''))
