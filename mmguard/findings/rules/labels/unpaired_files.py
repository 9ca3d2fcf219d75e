from __future__ import annotations

from typing import Iterator, List, Optional

from mmguard.findings.edits import Edit
from mmguard.findings.facts import LabelFacts
from mmguard.findings.finding import LIKELY, PROVEN, Finding
from mmguard.findings.label_places import set_places
from mmguard.findings.rule import DataRule, Facts
from mmguard.findings.views import has_config, listing, maps_of, number_of
from mmguard.text.words import counted


class UnpairedFiles(DataRule):
    """Images without a label file, labels without an image, two for one."""

    code = 'MG129'
    shows_values = False
    kinds = ('pixels',)
    needs = ('maps',)
    severity = 'warning'
    summary = 'Images and label files do not pair up.'
    why = (
        'A missing label file ends the training at the iteration that draws it; of two with one stem one is never read.'
    )
    advice = (
        'Check `img_suffix=...` and `seg_map_suffix=...` of the dataset against the file names, then remove or '
        'complete the files listed, or name the complete pairs in `ann_file=...`.'
    )

    none = (
        'No label file has the name that the config makes up: that of the image without `img_suffix`, plus '
        '`seg_map_suffix`. Compare one image with its label file and write both endings as they are, e.g. '
        "`img_suffix='.jpg', seg_map_suffix='_mask.png'`; names must agree letter by letter (case, leading zeros), and "
        '`data_prefix` must name both folders.'
    )

    def certainty(self, facts: LabelFacts) -> Optional[str]:
        return PROVEN if self._none(facts) else LIKELY if self._parts(facts) else None

    otherwise = none

    def edits(self, finding: Finding, facts: Facts) -> Iterator[Edit]:
        if facts.labels is not None and self._none(facts.labels):
            yield from set_places(self, facts, lambda labels: maps_of(labels).missing_labels, elsewhere=False)

    def severity_of(self, facts: LabelFacts) -> str:
        # An image without its label file ends a training; a label file too many does not.
        return 'error' if has_config(facts) and number_of(maps_of(facts), 'missing_labels') else self.severity

    def advise(self, facts: LabelFacts) -> str:
        return self.none if self._none(facts) else self.advice

    def _none(self, facts: LabelFacts) -> bool:
        """Whether no pair was found at all, in a config or in two folders."""
        maps = maps_of(facts)
        lacking = number_of(maps, 'missing_labels') or number_of(maps, 'missing_images')
        if has_config(facts):
            return bool(lacking) and not maps.forms
        labels = sum(maps.forms.values())
        return bool(labels) and number_of(maps, 'missing_images') == labels

    def evidence(self, facts: LabelFacts) -> str:
        return '; '.join(self._parts(facts))

    def files(self, facts: LabelFacts) -> List[str]:
        maps = maps_of(facts)
        return maps.missing_labels + maps.missing_images + maps.duplicates

    def _parts(self, facts: LabelFacts) -> List[str]:
        maps = maps_of(facts)
        named = [
            ('missing_labels', 'image without a label file', 'images without a label file'),
            ('missing_images', 'label file without an image', 'label files without an image'),
            ('duplicates', 'name with two files', 'names with two files'),
        ]
        return [
            f'{counted(number_of(maps, name), one, many)}: {listing(getattr(maps, name), 3)}'
            for name, one, many in named
            if number_of(maps, name)
        ]
