from __future__ import annotations

from typing import Dict, Iterator, List, Optional

from mmguard.findings.edits import Edit
from mmguard.findings.facts import LabelFacts
from mmguard.findings.finding import LIKELY, PROVEN, Finding
from mmguard.findings.map_edits import set_places
from mmguard.findings.rule import DataRule, Example, Facts
from mmguard.findings.views import has_config, listing, maps_of, number_of
from mmguard.text import quantity

#: List of ``MapFacts``, and what one and several of its files are.
NAMED = (
    ('missing_labels', 'image without a label file', 'images without a label file'),
    ('missing_images', 'label file without an image', 'label files without an image'),
    ('duplicates', 'name with two files', 'names with two files'),
)


class UnpairedFiles(DataRule):
    """Images without a label file, labels without an image, two for one."""

    code = 'MG129'
    shows_values = False
    kinds = ('pixels',)
    needs = ('maps',)
    severity = 'warning'
    summary = 'Images and label files do not pair up.'
    title = 'Images and label files do not pair up: {number} without a partner, or with two.'
    title_none = 'No label file has the name that the config, or the two folders, make up for its image.'
    why = (
        'A missing label file ends the training at the iteration that draws it; of two with one stem one is never read.'
    )
    example = Example(
        wrong="img_suffix='.jpg', seg_map_suffix='.png'; files 7.jpg and 7_mask.png",
        right="img_suffix='.jpg', seg_map_suffix='_mask.png'",
    )
    limits = 'It compares names only: a pair may still be of two different scenes.'
    advice = (
        'A label file has the name of its image without `img_suffix`, plus `seg_map_suffix`. Compare one image with '
        'its label file, letter by letter (case, leading zeros), write both endings and both folders in `data_prefix`. '
        'If only some lack a partner, complete or remove them, or name the complete pairs in `ann_file=...`.'
    )

    def certainty(self, facts: LabelFacts) -> Optional[str]:
        return PROVEN if self._has_no_pair(facts) else LIKELY if self._parts(facts) else None

    def edits(self, finding: Finding, facts: Facts) -> Iterator[Edit]:
        if facts.labels is not None and self._has_no_pair(facts.labels):
            yield from set_places(self, facts, lambda labels: maps_of(labels).missing_labels, elsewhere=False)

    def severity_of(self, facts: LabelFacts) -> str:
        # An image without its label file ends a training; a label file too many does not.
        return 'error' if has_config(facts) and number_of(maps_of(facts), 'missing_labels') else self.severity

    def _has_no_pair(self, facts: LabelFacts) -> bool:
        """True if no pair was found at all, in a config or in two folders."""
        maps = maps_of(facts)
        lacking = number_of(maps, 'missing_labels') or number_of(maps, 'missing_images')
        if has_config(facts):
            return bool(lacking) and not maps.forms
        labels = sum(maps.forms.values())
        return bool(labels) and number_of(maps, 'missing_images') == labels

    def choose_title(self, facts: LabelFacts) -> str:
        return self.title_none if self._has_no_pair(facts) else self.title

    def describe(self, facts: LabelFacts) -> Dict[str, str]:
        return {'number': quantity(sum(number_of(maps_of(facts), name) for name, _, _ in NAMED), 'name')}

    def evidence(self, facts: LabelFacts) -> str:
        return '; '.join(self._parts(facts))

    def files(self, facts: LabelFacts) -> List[str]:
        maps = maps_of(facts)
        return maps.missing_labels + maps.missing_images + maps.duplicates

    def _parts(self, facts: LabelFacts) -> List[str]:
        maps = maps_of(facts)
        return [
            f'{quantity(number_of(maps, name), one, many)}: {listing(getattr(maps, name), 3)}'
            for name, one, many in NAMED
            if number_of(maps, name)
        ]
