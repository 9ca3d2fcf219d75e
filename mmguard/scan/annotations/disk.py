"""Which of the listed images are on disk: one look into each folder, not one at each file."""

from __future__ import annotations

import os
from typing import Dict, List, Sequence, Tuple

from mmguard.scan.annotations.faults import Faults
from mmguard.scan.annotations.table import EXAMPLES


def missing_files(root: str, names: Sequence[str], faults: Faults) -> Tuple[int, List[str]]:
    """Compares a list of files with the disk.

    Args:
        root (str): The folder that the names are relative to.
        names (sequence of str): The files.
        faults (Faults): Takes folders that cannot be looked into.

    Returns:
        tuple[int, list[str]]: How many are missing, and the first of them, with what is there instead where only the
        ending or the case differs.
    """
    by_folder: Dict[str, List[str]] = {}
    for name in names:
        by_folder.setdefault(os.path.dirname(name), []).append(name)
    count = 0
    first: List[str] = []
    for folder, listed in by_folder.items():
        there = _files_in(os.path.join(root, folder), faults)
        missing = [name for name in listed if os.path.basename(name) not in there]
        count += len(missing)
        if missing and len(first) < EXAMPLES:
            alike = {os.path.splitext(name)[0].lower(): name for name in there}
            for name in missing[: EXAMPLES - len(first)]:
                other = alike.get(os.path.splitext(os.path.basename(name))[0].lower())
                first.append(f'{name} (there is {other})' if other else name)
    return count, first


def _files_in(folder: str, faults: Faults) -> set:
    try:
        with os.scandir(folder) as entries:
            return {entry.name for entry in entries}
    except FileNotFoundError:
        faults.add('there is no such folder of images', folder)
    except (OSError, ValueError) as error:  # ValueError: a null byte in the name
        faults.add(f'the folder of images cannot be read: {getattr(error, "strerror", None) or error}', folder)
    return set()
