"""Files of labels as `mmguard fix` would leave them: copies in a temporary folder, read in place of the originals."""

from __future__ import annotations

import os
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Dict, Iterator, Sequence

from mmguard.config.changes import change_config
from mmguard.config.old_style import add_loaders
from mmguard.config.read import ReadConfig
from mmguard.errors import CannotRun
from mmguard.files.regular import open_regular
from mmguard.files.whole import temporary_folder
from mmguard.findings.edits import FileChanges

if TYPE_CHECKING:
    from mmguard.tools.fix.options import FixOptions

#: Files above this size are not copied: who looks for a fault does not wait for that.
LARGEST = 32 << 20
#: A file takes as long as one of this size, however small it is.
_LEAST = 4096


class NotTried(CannotRun):
    """The files cannot be copied, or are too large for it."""


@contextmanager
def copies_of(files: FileChanges) -> Iterator[Dict[str, str]]:
    """Yield file or folder -> its copy, as `mmguard fix` would write it with its options.

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
            written = write_copies(path, out, FixOptions(**dict(options)), _link)
            for failure in written.failures:  # of mmguard's own: nothing that the file could be blamed for
                raise failure
            if written.left_out:
                raise NotTried(path)
            copies[path] = str(out / os.path.basename(path) if os.path.isfile(path) else out)
        yield copies


@contextmanager
def copies_of_maps(paths: Sequence[str], options: FixOptions) -> Iterator[Dict[str, str]]:
    """Writes a few label maps as `mmguard fix` would.

    Yields:
        dict[str, str]: What the copy will be called -> where it is now.

    Raises:
        NotTried: One that can be read would be left out.
    """
    from mmguard.tools.fix.maps import correct_map
    from mmguard.tools.fix.options import NotCorrected, Unreadable

    copies: Dict[str, str] = {}
    with temporary_folder() as folder:
        for number, path in enumerate(paths):
            copy = Path(folder, f'{number}.png')
            try:
                with open_regular(path) as file:
                    data = file.read()
                copy.write_bytes(correct_map(data, os.path.splitext(path)[1], options).data)
            except (OSError, Unreadable):  # another rule names the files that cannot be read
                continue
            except NotCorrected as error:
                raise NotTried(path) from error
            copies[written_name(path)] = str(copy)
        yield copies


def written_name(path: str) -> str:
    """The name of a label map as `mmguard fix` writes it."""
    stem, ending = os.path.splitext(path)
    return path if ending.lower() == '.png' else f'{stem}.png'


def with_copies(config: ReadConfig, copies: Dict[str, str]) -> ReadConfig:
    """A config whose data sets read the copies."""
    from mmguard.tools.scan.annotations.datasets import datasets_of_config
    from mmguard.tools.scan.settings import SPLITS

    places = []
    config = add_loaders(config)
    for dataset in [found for split in SPLITS for found in datasets_of_config(config.data, split)]:
        folder = os.path.normpath(dataset.images)
        if dataset.ann_file in copies:
            places.append((f'{dataset.path}.ann_file', os.path.abspath(copies[dataset.ann_file])))
        elif dataset.family == 'voc' and folder in copies:
            copy = os.path.abspath(copies[folder])
            listed = os.path.join(copy, os.path.relpath(dataset.ann_file, folder))
            places += [(f'{dataset.path}.data_prefix.sub_data_root', copy), (f'{dataset.path}.ann_file', listed)]
    return change_config(config, places)


def _size(path: str) -> int:
    if os.path.isfile(path):
        return os.path.getsize(path)
    size = 0
    for place, _, names in os.walk(path):
        labels = [name for name in names if _is_text(name)]
        size += sum(max(os.path.getsize(os.path.join(place, name)), _LEAST) for name in labels)
        if size > LARGEST:
            break
    return size


def _is_text(name: str) -> bool:
    return name.lower().endswith(('.xml', '.txt', '.json'))


def _link(file: str, path: Path, stays_link: bool) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    os.symlink(os.path.realpath(file), path)
