"""A far case on this machine, for as long as it is read: decoders of volumes read files."""

from __future__ import annotations

import os
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Dict, Iterable, Iterator, List, Tuple

from mmguard.files.inside import is_file_name
from mmguard.files.whole import temporary_folder
from mmguard.tools.scan.faults import fault_of
from mmguard.tools.scan.nnunet.cases import CaseItem
from mmguard.tools.scan.nnunet.read_case import read_case, spacing_files
from mmguard.tools.scan.nnunet.record import CaseRecord, FileRecord, digest_of
from mmguard.tools.storage.ahead import ahead
from mmguard.tools.storage.files import FILES, Content


def read_far_case(item: CaseItem, reader: str, expected: Tuple[int, ...]) -> CaseRecord:
    """As :func:`read_case`, of a case behind a URL: its files are copied, read, and removed."""
    paths = [*([item.path] if item.has_label else []), *item.images]
    beside = list(spacing_files(item)) if reader == 'Tiff3DIO' else []
    with copies_of([*paths, *beside]) as copies:
        here = {path: local for path, (local, _) in copies.items()}
        there = {local: path for path, local in here.items()}
        images = tuple(here[path] for path in item.images)
        record = read_case(
            CaseItem(here.get(item.path, item.path), item.case, images, item.has_label), reader, expected
        )

        def named(file: FileRecord) -> FileRecord:
            path = there[file.path]
            error = copies[path][1].error
            if error is not None:
                return FileRecord(path, None, fault_of(error), str(error)[:200])
            return replace(file, path=path, stamp=copies[path][1].stamp, detail=file.detail.replace(file.path, path))

        return CaseRecord(
            item.path,
            item.case,
            reader,
            digest_of(expected),
            None if record.label is None else named(record.label),
            [named(image) for image in record.images],
            [copies[path][1].stamp for path in beside],
        )


@contextmanager
def copies_of(paths: Iterable[str]) -> Iterator[Dict[str, Tuple[str, Content]]]:
    """Copies of far files under their own names, fetched side by side.

    Yields:
        dict[str, tuple]: Path -> its copy, and what came without the data; there is none of what cannot be read.
    """
    listed: List[str] = list(dict.fromkeys(paths))
    with temporary_folder() as folder:
        copies: Dict[str, Tuple[str, Content]] = {}
        for path, content in zip(listed, ahead(partial(FILES.content, path) for path in listed)):
            above, name = (one if is_file_name(one) else 'root' for one in path.split('/')[-2:])
            parent = os.path.join(folder, above)
            os.makedirs(parent, exist_ok=True)
            local = os.path.join(parent, name)
            if content.error is None:
                with open(local, 'wb') as file:
                    file.write(content.data)
            copies[path] = (local, content._replace(data=b''))
        yield copies
