from __future__ import annotations

from typing import Iterator, List, Optional

from mmguard.findings.edits import Edit
from mmguard.findings.facts import LabelFacts
from mmguard.findings.finding import PROVEN, Finding
from mmguard.findings.map_edits import set_places
from mmguard.findings.rule import DataRule, Example, Facts
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
    """Photographs in place of label maps, or among them."""

    code = 'MG131'
    shows_values = False
    needs = ('maps',)
    summary = 'The label files are photographs.'
    title_swapped = 'The label files are photographs; image and label folders seem to be swapped.'
    title_mixed = 'There are images among the label files.'
    why = 'The brightness of the photographs is trained on as if it were classes.'
    example = Example(wrong="seg_map_path='images'", right="seg_map_path='labels'")
    limits = 'Gray photographs of 8 bits among label maps are not seen.'
    advice = (
        'Name the folder of the label maps, not that of the images: '
        "`data_prefix=dict(img_path='images', seg_map_path='labels')`, or `mmguard scan labels --images images`. If "
        'images are in the folder of the labels, move them out (names, ending or size show which), or read only the '
        'labels: `seg_map_suffix` of the data set, `--suffix` of a scan.'
    )

    def certainty(self, facts: LabelFacts) -> Optional[str]:
        maps = maps_of(facts)
        photos = share(sum(maps.forms.get(form, 0) for form in PHOTO), sum(maps.forms.values()))
        if photos < 0.9:
            return PROVEN if self._strangers(facts) else None
        return PROVEN if self._is_swapped(facts) or self._is_photographed(facts) else None

    def choose_title(self, facts: LabelFacts) -> str:
        if self._strangers(facts):
            return self.title_mixed
        return self.title_swapped if self._is_swapped(facts) else self.summary

    def edits(self, finding: Finding, facts: Facts) -> Iterator[Edit]:
        if facts.labels is not None and self._strangers(facts.labels):
            return
        yield from set_places(self, facts, _files, elsewhere=True)

    def _strangers(self, facts: LabelFacts) -> List[str]:
        """List forms of files that are images among label maps: photographs, or intensities beyond 8 bits."""
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
        """Return True if no file has few colours, and the values are spread like light."""
        counts = sorted((n for value, n in facts.histogram.items() if value != VOID), reverse=True)
        spread = share(sum(counts[:FREQUENT]), sum(counts)) < DRAWN
        return bool(counts) and spread and not maps_of(facts).colours and not maps_of(facts).gray_in_colour

    def evidence(self, facts: LabelFacts) -> str:
        maps = maps_of(facts)

        def count(forms: dict) -> str:
            return ', '.join(f'{number:,} {form}' for form, number in sorted(forms.items()))

        images = f'; images: {count(maps.image_forms)}' if maps.image_forms else ''
        return f'label files: {count(maps.forms)} ({maps.lossy:,} JPEG){images}'


def _files(facts: LabelFacts) -> List[str]:
    return [file for files in maps_of(facts).form_examples.values() for file in files]
