from __future__ import annotations

from mmguard.diagnosis.facts import LabelFacts
from mmguard.diagnosis.finding import Cause
from mmguard.diagnosis.views import maps_of, share

PHOTO = ('rgb', 'rgba')
INDEX = ('gray8', 'palette8', 'gray16', 'bool')


class FoldersSwapped(Cause):
    """Photographs where labels should be."""

    code = 'MG131'
    needs = ('maps',)
    summary = 'Image and label folders seem to be swapped: the label files are photographs.'
    why = 'The brightness of the photographs is trained on as if it were classes.'
    advice = (
        "Write `data_prefix=dict(img_path='images', seg_map_path='labels')` with the folders the other way round, or "
        'name the two folders to the scan in the other order.'
    )

    def likelihood(self, facts: LabelFacts) -> float:
        maps = maps_of(facts)
        labels, images = sum(maps.forms.values()), sum(maps.image_forms.values())
        photos = share(sum(maps.forms.get(form, 0) for form in PHOTO), labels)
        indices = share(sum(maps.image_forms.get(form, 0) for form in INDEX), images)
        if photos >= 0.9 and indices >= 0.9 and not maps.image_lossy:
            return 0.98
        return 0.0

    def evidence(self, facts: LabelFacts) -> str:
        maps = maps_of(facts)

        def told(forms: dict) -> str:
            return ', '.join(f'{count:,} {form}' for form, count in sorted(forms.items()))

        return f'label files: {told(maps.forms)} ({maps.lossy:,} JPEG); images: {told(maps.image_forms)}'

    def values(self, facts: LabelFacts) -> dict:
        return {}
