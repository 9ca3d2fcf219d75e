"""What lies behind a URL and is read from a disk alone: a few of its files are looked at here."""

from __future__ import annotations

import os
from contextlib import suppress
from functools import partial
from itertools import islice
from typing import Callable, List, Tuple

from mmguard.files.whole import temporary_folder
from mmguard.tools.scan.fetched import HEAD
from mmguard.tools.scan.sources.folders import is_image_name, walk
from mmguard.tools.storage.ahead import ahead
from mmguard.tools.storage.files import FILES
from mmguard.tools.storage.urls import below, joined

#: So many folders, names in each, and beginnings of texts; of images the first beside them.
_FOLDERS, _NAMES, _TEXTS = 8, 100, 20
_Kinds = List[Tuple[str, Callable[[str], object]]]
_TEXT_ENDINGS = ('.json', '.xml', '.txt', '.jsonl', '.csv')


def kind_on_disk(url: str, is_last: bool) -> str:
    """What a folder or file is that only a disk is read for, ``'files of Labelme'``; empty: none of it.

    Args:
        url (str): The folder or file.
        is_last (bool): Whether it is neither VOC nor YOLO, which on a disk are looked for before some of these.
    """
    kinds = _last_kinds() if is_last else _first_kinds()
    with temporary_folder() as folder:
        here = os.path.join(folder, os.path.basename(url))
        _write_some(url, here)
        return next((kind for kind, is_one in kinds if is_one(here)), '')


def _first_kinds() -> _Kinds:
    from mmguard.tools.scan.annotations.cvat import is_cvat
    from mmguard.tools.scan.annotations.hf import is_image_folder, saved_splits
    from mmguard.tools.scan.annotations.oriented.labels import format_of

    return [
        ('XML of CVAT', is_cvat),
        ('data sets of Hugging Face', lambda here: saved_splits(here) or is_image_folder(here)),
        ('labels of oriented boxes', format_of),
    ]


def _last_kinds() -> _Kinds:
    from mmguard.tools.scan.annotations.cityscapes import is_cityscapes
    from mmguard.tools.scan.annotations.labelme import is_labelme

    return [
        ('polygons of Cityscapes', is_cityscapes),
        ('files of Labelme', is_labelme),
    ]


def _write_some(url: str, here: str) -> None:
    """The names below a URL, of the first folders, and what their first files hold."""
    if FILES.is_file(url):
        _write(here, FILES.content(url, most=HEAD).data)
        return
    for folder, names, _ in islice(walk(url, lambda at, error: None), _FOLDERS):
        inside = below(folder, url).split('/')
        if not all(name == '' or _is_name(name) for name in inside):
            continue
        at = os.path.join(here, *inside)
        os.makedirs(at, exist_ok=True)
        some = [name for name in names if _is_name(name)][:_NAMES]
        for name in some:
            _write(os.path.join(at, name), b'')
        texts = [name for name in some if name.lower().endswith(_TEXT_ENDINGS)][:_TEXTS]
        # Beside JSON an image says whether they are label maps.
        images = [name for name in some if is_image_name(name)][: 1 if texts else 0]
        wanted = [(name, HEAD) for name in texts] + [(name, None) for name in images]
        contents = ahead(partial(FILES.content, joined(folder, name), None, most) for name, most in wanted)
        for (name, _), content in zip(wanted, contents):
            _write(os.path.join(at, name), content.data)


def _is_name(name: str) -> bool:
    """Whether it can be no path that leads elsewhere: a server says what it likes."""
    return name not in ('', os.curdir, os.pardir) and os.path.basename(name) == name


def _write(path: str, data: bytes) -> None:
    with suppress(OSError, ValueError), open(path, 'wb') as file:  # a name that this system does not take
        file.write(data)
