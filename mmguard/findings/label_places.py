"""Folders and suffixes of label files, where those that a config names are not label maps."""

from __future__ import annotations

import os
from itertools import islice
from typing import Callable, Iterator, List, NamedTuple, Optional, Sequence, Set

from mmguard.config.changes import Changes
from mmguard.config.parts import Part, datasets
from mmguard.findings.edits import ASKS, Edit
from mmguard.findings.facts import LabelFacts
from mmguard.findings.rule import Facts, Rule

#: Of mmseg's data sets, where a config does not say.
SUFFIX = '.png'
#: So many names in a folder, and folders next to one, are looked at.
_NAMES, _FOLDERS = 100_000, 50
#: Files in which classes can be stored.
_EXACT = ('.png', '.bmp', '.tif', '.tiff', '.gif', '.pgm')


class Place(NamedTuple):
    """Folder and suffix of label files, as a data set of mmseg says it."""

    seg_map_path: str
    seg_map_suffix: str


def set_places(
    rule: Rule, facts: Facts, files_of: Callable[[LabelFacts], Sequence[str]], elsewhere: bool
) -> Iterator[Edit]:
    """Set ``seg_map_path`` and ``seg_map_suffix`` in the data sets of all splits in which a rule finds something.

    Args:
        files_of (callable): A few of the label files that a data set names.
        elsewhere (bool): They are looked for in other folders, not in the one that is named.
    """
    if facts.config is None:
        return
    found = [
        (dataset, list(_places(dataset, files_of(split.labels), elsewhere)))
        for split in (facts, *facts.others)
        if split.labels is not None and any(True for _ in rule.find(split))
        for dataset in datasets(facts.config)
        if dataset.split in split.labels.split.split(', ')
    ]
    for first in found[0][1] if found else ():
        chosen = [(dataset, _like(first, places)) for dataset, places in found]
        changes: Changes = tuple(
            change for dataset, place in chosen if place is not None for change in _changes(dataset, place)
        )
        if any(place is None for _, place in chosen):
            continue
        question = f'Are the label maps the files {os.path.join(first.seg_map_path, "*" + first.seg_map_suffix)}?'
        yield Edit('Set the folder and the suffix of the label maps.', ASKS, question, changes)


def _like(first: Place, places: Sequence[Place]) -> Optional[Place]:
    """Find the place of another split: masks/val for masks/train."""
    names = set(first.seg_map_path.split(os.sep))
    same = [place for place in places if place.seg_map_suffix == first.seg_map_suffix]
    return max(same, key=lambda place: len(names & set(place.seg_map_path.split(os.sep))), default=None)


def _changes(dataset: Part, place: Place) -> Iterator[tuple]:
    prefix = dataset.config['data_prefix']
    if place.seg_map_path != prefix.get('seg_map_path'):
        yield dataset.at('data_prefix.seg_map_path'), place.seg_map_path
    if place.seg_map_suffix != dataset.config.get('seg_map_suffix', SUFFIX):
        yield dataset.at('seg_map_suffix'), place.seg_map_suffix


def _places(dataset: Part, files: Sequence[str], elsewhere: bool) -> Iterator[Place]:
    root, suffix = str(dataset.config.get('data_root') or ''), dataset.config.get('seg_map_suffix', SUFFIX)
    prefix = dataset.config.get('data_prefix')
    known = prefix if isinstance(prefix, dict) else {}
    folder = known.get('seg_map_path')
    if not isinstance(folder, str) or not isinstance(suffix, str):
        return
    paths = [os.path.relpath(os.path.join(root, file), os.path.join(root, folder)) for file in files]
    if not paths or any(not path.endswith(suffix) for path in paths):
        return
    stems = [path[: len(path) - len(suffix)] for path in paths]
    named = {os.path.normpath(str(path)) for path in known.values()}
    for place in [one for one in _list_siblings(root, folder) if one not in named] if elsewhere else [folder]:
        yield from (Place(place, ending) for ending in sorted(_endings(os.path.join(root, place), stems)))


def _list_siblings(root: str, folder: str) -> Iterator[str]:
    """List folders whose path differs in one name: masks/train of images/train."""
    parts = folder.strip(os.sep).split(os.sep) if not os.path.isabs(folder) else []
    for number in range(len(parts)):
        above, below = parts[:number], parts[number + 1 :]
        try:
            with os.scandir(os.path.join(root or '.', *above)) as entries:
                names = sorted(entry.name for entry in islice(entries, _NAMES) if entry.is_dir())[:_FOLDERS]
        except OSError:
            continue
        yield from (os.path.join(*above, name, *below) for name in names)


def _endings(folder: str, stems: Sequence[str]) -> Set[str]:
    """Find what all stems can be followed by."""
    common: List[Set[str]] = []
    for below in dict.fromkeys(map(os.path.dirname, stems)):
        try:
            with os.scandir(os.path.join(folder, below)) as entries:
                names = [entry.name for entry in islice(entries, _NAMES) if entry.name.lower().endswith(_EXACT)]
        except OSError:
            return set()
        for stem in [os.path.basename(stem) for stem in stems if os.path.dirname(stem) == below]:
            after = {name[len(stem) :] for name in names if name.startswith(stem)}
            common.append({ending for ending in after if ending.startswith(('.', '_', '-'))})  # 1 is not 10.png
    return set.intersection(*common) if common else set()
