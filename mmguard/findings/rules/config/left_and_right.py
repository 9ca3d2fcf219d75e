"""Classes that name a side, in a pipeline that mirrors images."""

from __future__ import annotations

import re
from typing import Iterator, List, Optional, Tuple

from mmguard.config.parts import find_datasets, find_transforms, get_class_names
from mmguard.config.read import ReadConfig
from mmguard.findings.finding import WARNING, Finding
from mmguard.findings.rule import ConfigRule, Example
from mmguard.findings.usual_edits import propose
from mmguard.findings.views import join_items
from mmguard.language import Message

_LEFT = re.compile(r'(?i)(?<![a-z])(?:left|l)(?![a-z])')


class SidesNotSwapped(ConfigRule):
    code = 'MG234'
    severity = WARNING
    summary = 'RandomFlip mirrors label maps, and left and right keep their labels.'
    title = 'RandomFlip mirrors images, but the labels of left and right are not swapped: {pairs}.'
    why = 'In the mirrored image a left arm is where a right one was: half of the images teach the opposite.'
    example = Example(
        wrong="classes=('left-arm', 'right-arm'); dict(type='RandomFlip', prob=0.5)",
        right="dict(type='RandomFlip', prob=0.5, swap_seg_labels=[(0, 1)])",
    )
    limits = 'It knows sides by the words left and right (l and r) in the names.'
    advice = 'Write `swap_seg_labels={labels}` in RandomFlip, or prob=0.'

    def look(self, config: ReadConfig) -> Iterator[Finding]:
        names = next(filter(None, map(get_class_names, (d for d in find_datasets(config) if d.split == 'train'))), None)
        pairs = _find_sides(names or [])
        for flip in find_transforms(config) if pairs and config.framework == 'mmseg' else ():
            is_mirror = flip.name == 'RandomFlip' and flip.config.get('prob') != 0 and flip.split == 'train'
            vertical = flip.config.get('direction') == 'vertical'
            if is_mirror and not vertical and not flip.config.get('swap_seg_labels'):
                place = flip.place('swap_seg_labels')
                shown = join_items((f'{names[a]}, {names[b]}' for a, b in pairs), 3) if names else ''
                asked = Message('Are these the left and the right one of the same thing: {pairs}?', pairs=shown)
                edit = propose('Swap them.', (place, [list(pair) for pair in pairs]), question=asked)
                words = {'pairs': shown, 'labels': str(pairs)}
                yield self.report_at(place, None, words, edits=[edit])


def _find_sides(names: List[str]) -> List[Tuple[int, int]]:
    """Return the labels of each left and its right.

    Example:
        >>> _find_sides(['hat', 'Left-arm', 'Right-arm', 'leftover'])
        [(1, 2)]
    """
    places = {name.lower(): place for place, name in enumerate(names)}

    def find_right(name: str) -> Optional[int]:
        found = _LEFT.search(name)
        other = {'left': 'right', 'l': 'r'}.get(found.group().lower(), '') if found else ''
        return places.get(_LEFT.sub(other, name, count=1).lower()) if found else None

    return [(place, right) for place, right in enumerate(map(find_right, names)) if right is not None]
