"""Files of labels as `mmguard fix` would leave them: copies in a temporary folder, read in place of the originals."""

from __future__ import annotations

import os
from contextlib import contextmanager
from pathlib import Path
from typing import Dict, Iterator

from mmguard.config.changes import changed
from mmguard.config.read import ReadConfig
from mmguard.errors import CannotRun
from mmguard.files import temporary_folder
from mmguard.findings.rule import FileChanges

#: Files above this size are not copied: who looks for a fault does not wait for that.
LARGEST = 32 << 20


class NotTried(CannotRun):
    """The files cannot be copied, or are too large for it."""


@contextmanager
def copies_of(files: FileChanges) -> Iterator[Dict[str, str]]:
    """Writes what `mmguard fix` would write.

    Args:
        files: (COCO JSON or VOC folder, its options).

    Yields:
        dict[str, str]: File or folder -> its copy.

    Raises:
        NotTried, CannotCorrect, OSError: There is no copy of a file.
    """
    from mmguard.tools.fix.copies import write_copies
    from mmguard.tools.fix.options import FixOptions

    copies: Dict[str, str] = {}
    with temporary_folder() as folder:
        for number, (path, options) in enumerate(files):
            if _size(path) > LARGEST:
                raise NotTried(path)
            out = Path(folder, str(number))
            written = write_copies(Path(path), out, FixOptions(**dict(options)), _link)
            for failure in written.failures:  # of mmguard's own: nothing that the file could be blamed for
                raise failure
            if written.left_out:
                raise NotTried(path)
            copies[path] = str(out / os.path.basename(path) if os.path.isfile(path) else out)
        yield copies


def with_copies(config: ReadConfig, copies: Dict[str, str]) -> ReadConfig:
    """A config whose data sets read the copies."""
    from mmguard.tools.scan.annotations.datasets import SPLITS, datasets_of_config

    places = []
    for dataset in [found for split in SPLITS for found in datasets_of_config(config.data, split)]:
        folder = os.path.normpath(dataset.images)
        if dataset.ann_file in copies:
            places.append((f'{dataset.path}.ann_file', os.path.abspath(copies[dataset.ann_file])))
        elif dataset.family == 'voc' and folder in copies:
            copy = os.path.abspath(copies[folder])
            listed = os.path.join(copy, os.path.relpath(dataset.ann_file, folder))
            places += [(f'{dataset.path}.data_prefix.sub_data_root', copy), (f'{dataset.path}.ann_file', listed)]
    return changed(config, places)


def _size(path: str) -> int:
    if os.path.isfile(path):
        return os.path.getsize(path)
    size = 0
    for place, _, names in os.walk(path):
        size += sum(os.path.getsize(os.path.join(place, name)) for name in names if name.lower().endswith('.xml'))
        if size > LARGEST:
            break
    return size


def _link(source: Path, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    os.symlink(source.resolve(), path)
