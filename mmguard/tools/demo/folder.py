"""The demo's own output folder."""

from __future__ import annotations

import shutil
from pathlib import Path

from mmguard.errors import CannotRun
from mmguard.files.whole import write_whole

#: Says that a folder was made by the demo, which may empty it.
MARK = '.mmguard_demo'


def make_anew(folder: Path) -> Path:
    """Empty the demo's folder, or make it.

    Raises:
        CannotRun: It is a file, or holds something that the demo did not make.
    """
    if folder.exists() and not folder.is_dir():
        raise CannotRun(f'{folder} is a file; give another folder with --out')
    if folder.is_dir() and any(folder.iterdir()) and not (folder / MARK).is_file():
        raise CannotRun(f'{folder} holds files that the demo did not make; give another folder with --out')
    folder.mkdir(parents=True, exist_ok=True)
    # The mark goes in first and never out: an interrupted run leaves a folder that the next one may empty.
    write_whole(folder / MARK, b'made by mmguard demo, which empties this folder each time\n')
    for path in folder.iterdir():
        if path.name == MARK:
            continue
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink()
    return folder
