from __future__ import annotations

from typing import Dict

from mmguard.diagnosis.facts import LabelFacts
from mmguard.diagnosis.finding import Cause
from mmguard.diagnosis.views import VOID, maps_of, share

PHOTO = ('rgb', 'rgba')
INDEX = ('gray8', 'palette8', 'gray16', 'bool')
#: Of all channel values the 32 most frequent: of drawn colours they are nearly all, even after JPEG; of photographs
#: a part.
FREQUENT, DRAWN = 32, 0.7


class FoldersSwapped(Cause):
    """Photographs where labels should be."""

    code = 'MG131'
    explains = ('MG102', 'MG106', 'MG107', 'MG116', 'MG120', 'MG121', 'MG122', 'MG125', 'MG130', 'MG135', 'MG136')
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

    def likelihood(self, facts: LabelFacts) -> float:
        maps = maps_of(facts)
        photos = share(sum(maps.forms.get(form, 0) for form in PHOTO), sum(maps.forms.values()))
        if photos < 0.9:
            return 0.0
        return 0.98 if self._is_swapped(facts) or self._is_photographed(facts) else 0.0

    def advise(self, facts: LabelFacts) -> str:
        return self.advice if self._is_swapped(facts) else self.same

    def words(self, facts: LabelFacts) -> Dict[str, str]:
        return {'swapped': '; image and label folders seem to be swapped' if self._is_swapped(facts) else ''}

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

        def told(forms: dict) -> str:
            return ', '.join(f'{count:,} {form}' for form, count in sorted(forms.items()))

        images = f'; images: {told(maps.image_forms)}' if maps.image_forms else ''
        return f'label files: {told(maps.forms)} ({maps.lossy:,} JPEG){images}'

    def values(self, facts: LabelFacts) -> dict:
        return {}
