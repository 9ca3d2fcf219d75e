"""Copies are read as `mmguard scan` reads them before they have their names: none is written that it calls wrong."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Callable, Dict, Optional

from mmguard.findings.facts import AnnotationFacts, LabelFacts
from mmguard.labels.instances import LABEL_REASON, describe_boxes
from mmguard.tools.fix.options import NotCorrected

Check = Callable[[Path], None]


def check_for(ending: str) -> Optional[Check]:
    """What looks at a copy; ``None`` where nothing has to: label maps are written value for value."""
    return _CHECKS.get(ending.lower())


def _check_json(path: Path) -> None:
    from mmguard.tools.scan.annotations.labelme import is_labelme_file, scan_labelme

    if is_labelme_file(str(path)):
        with suppress(ValueError):  # an image may well be without a shape
            _check(scan_labelme(str(path), look=False))
        return
    from mmguard.tools.scan.annotations.coco import scan_coco

    _check(scan_coco(str(path)))


def _check_xml(path: Path) -> None:
    from mmguard.tools.scan.annotations.voc import VocImage, scan_voc_files

    _check(scan_voc_files(str(path.parent), [VocImage('', path.name)], images=False))


_CHECKS: Dict[str, Check] = {'.json': _check_json, '.xml': _check_xml}


def _check(facts: LabelFacts) -> None:
    found = facts.annotations or AnnotationFacts()
    # Of a copy in VOC that has no size the image lies elsewhere.
    wrong = [what for what in found.unreadable if not what.startswith('has no size')]
    wrong += describe_boxes(facts.reasons)
    wrong += [f'{count:,} without {key}' for key, count in found.without_key.items()]
    if facts.reasons.get(LABEL_REASON) or found.unnamed:
        wrong.append('annotations of categories that are not listed')
    for what, ids in (('images', found.duplicate_image_ids), ('categories', found.duplicate_category_ids)):
        wrong += [f'{what} that share an id: {", ".join(map(str, ids[:5]))}'] if ids else []
    if found.format == 'coco' and found.annotations and found.images_without_target == found.images:
        wrong.append('crowds, ignored ones and boxes thinner than a pixel are all that would be left')
    if wrong:
        raise NotCorrected(f'what is wrong cannot be corrected here: {"; ".join(wrong)}')
