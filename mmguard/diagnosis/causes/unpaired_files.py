from __future__ import annotations

from typing import List

from mmguard.diagnosis.facts import LabelFacts
from mmguard.diagnosis.finding import Cause
from mmguard.diagnosis.views import counted, listing, maps_of, number_of


class UnpairedFiles(Cause):
    """Images without a label file, labels without an image, two for one."""

    code = 'MG129'
    needs = ('maps',)
    severity = 'warning'
    summary = 'Images and label files do not pair up.'
    why = 'A missing label file ends the training at the iteration that draws it; of two with one stem one is lost.'
    advice = (
        'Check `img_suffix=...` and `seg_map_suffix=...` of the dataset against the file names, then remove or '
        'complete the files listed, or name the complete pairs in `ann_file=...`.'
    )

    def likelihood(self, facts: LabelFacts) -> float:
        return 0.55 if self._parts(facts) else 0.0

    def evidence(self, facts: LabelFacts) -> str:
        return '; '.join(self._parts(facts))

    def files(self, facts: LabelFacts) -> List[str]:
        maps = maps_of(facts)
        return maps.missing_labels + maps.missing_images + maps.duplicates

    def values(self, facts: LabelFacts) -> dict:
        return {}

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
