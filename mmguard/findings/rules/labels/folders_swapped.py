from __future__ import annotations

from typing import Dict, Iterator, List, Optional

from mmguard.findings.edits import Edit
from mmguard.findings.facts import LabelFacts
from mmguard.findings.finding import PROVEN, Finding
from mmguard.findings.label_places import set_places
from mmguard.findings.rule import DataRule, Facts
from mmguard.findings.views import VOID, maps_of, share

PHOTO = ('rgb', 'rgba')
PLAIN, WIDE = ('gray8', 'palette8', 'bool'), ('gray16', 'gray32', 'float')
#: Values beyond 8 bits: ids of a few classes or instances are fewer.
MANY_VALUES = 200
INDEX = ('gray8', 'palette8', 'gray16', 'bool')
#: Of all channel values the 32 most frequent: of drawn colours they are nearly all, even after JPEG; of photographs
#: a part.
FREQUENT, DRAWN = 32, 0.7


class FoldersSwapped(DataRule):
    """Photographs where labels should be."""

    code = 'MG131'
    shows_values = False
    needs = ('maps',)
    summary = 'The label files are photographs{swapped}.'
    why = 'The brightness of the photographs is trained on as if it were classes.'
    advice = (
        "Write `data_prefix=dict(img_path='images', seg_map_path='labels')` with the folders the other way round, or "
        'name the two folders to the scan in the other order.'
    )
    same = (
        'Name the folder of the label maps, not that of the images: '
        "`data_prefix=dict(img_path='images', seg_map_path='labels')` and `seg_map_suffix='.png'`; a scan of a folder "
        'takes the label maps, `mmguard scan labels --images images`.'
    )

    def certainty(self, facts: LabelFacts) -> Optional[str]:
        maps = maps_of(facts)
        photos = share(sum(maps.forms.get(form, 0) for form in PHOTO), sum(maps.forms.values()))
        if photos < 0.9:
            return PROVEN if self._strangers(facts) else None
        return PROVEN if self._is_swapped(facts) or self._is_photographed(facts) else None

    def summarise(self, facts: LabelFacts) -> str:
        return self.mixed if self._strangers(facts) else self.summary

    def advise(self, facts: LabelFacts) -> str:
        if self._strangers(facts):
            return self.apart
        return self.advice if self._is_swapped(facts) else self.same

    mixed = 'Images lie among the label files{swapped}.'
    apart = (
        'Move them out of the folder of the labels (the first are named; their names, ending or size show the others), '
        'or let the loader read labels alone: `--suffix` of a scan, `seg_map_suffix` of a data set.'
    )
    otherwise = same

    def edits(self, finding: Finding, facts: Facts) -> Iterator[Edit]:
        if facts.labels is not None and self._strangers(facts.labels):
            return
        yield from set_places(self, facts, _files, elsewhere=True)

    def words(self, facts: LabelFacts) -> Dict[str, str]:
        return {'swapped': '; image and label folders seem to be swapped' if self._is_swapped(facts) else ''}

    def _strangers(self, facts: LabelFacts) -> List[str]:
        """Forms of files that are images among label maps of 8 bits: photographs, or intensities of 16 and more."""
        maps = maps_of(facts)
        plain = sum(maps.forms.get(form, 0) for form in PLAIN)
        photos = [form for form in PHOTO if maps.forms.get(form)]
        if not plain or (photos and (maps.colours or maps.gray_in_colour)):
            return []
        wide = [form for form in WIDE if maps.forms.get(form)]
        many = sum(1 for value in maps.raw if not 0 <= value <= VOID) >= MANY_VALUES
        return photos + (wide if many else [])

    def files(self, facts: LabelFacts) -> List[str]:
        strangers = self._strangers(facts)
        if not strangers:
            return super().files(facts)
        return [file for form in strangers for file in maps_of(facts).form_examples.get(form, [])]

    def _is_swapped(self, facts: LabelFacts) -> bool:
        maps = maps_of(facts)
        indices = share(sum(maps.image_forms.get(form, 0) for form in INDEX), sum(maps.image_forms.values()))
        return indices >= 0.9 and not maps.image_lossy

    def _is_photographed(self, facts: LabelFacts) -> bool:
        """Whether no file has few colours, and the values are spread as light is."""
        counts = sorted((n for value, n in facts.histogram.items() if value != VOID), reverse=True)
        spread = share(sum(counts[:FREQUENT]), sum(counts)) < DRAWN
        return bool(counts) and spread and not maps_of(facts).colours and not maps_of(facts).gray_in_colour

    def evidence(self, facts: LabelFacts) -> str:
        maps = maps_of(facts)

        def listed(forms: dict) -> str:
            return ', '.join(f'{count:,} {form}' for form, count in sorted(forms.items()))

        images = f'; images: {listed(maps.image_forms)}' if maps.image_forms else ''
        return f'label files: {listed(maps.forms)} ({maps.lossy:,} JPEG){images}'


def _files(facts: LabelFacts) -> List[str]:
    return [file for files in maps_of(facts).form_examples.values() for file in files]
