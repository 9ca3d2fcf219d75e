from __future__ import annotations

from typing import Dict, List

from mmguard.diagnosis.facts import LabelFacts
from mmguard.diagnosis.finding import Cause
from mmguard.diagnosis.views import annotations_of


class ImageSizeDiffers(Cause):
    """Images that were resized, or turned, after they were annotated."""

    code = 'MG175'
    explains = ('MG152',)
    kinds = ('instances',)
    needs = ('annotations',)
    summary = 'Images have another size on disk than in the annotations: the boxes lie somewhere else.'
    why = 'Loaders take the boxes as they are. Nothing crashes; what is learnt is displaced.'
    advice = (
        'Use the images that were annotated, or scale the boxes with them: `sx = width_on_disk / width; '
        'sy = height_on_disk / height` and `bbox = [x * sx, y * sy, w * sx, h * sy]`, then correct `"width"` and '
        '`"height"`.'
    )
    turned = (
        'Height and width are swapped: the image is turned by its EXIF tag, which some tools heed and some do not, or '
        'the two numbers were confused. Look at one image with its boxes. If only the numbers are wrong, correct '
        '`"width"` and `"height"`; if the boxes fit the image as it is stored, drop the tag: '
        '`Image.fromarray(np.asarray(image)).save(path)`.'
    )

    def likelihood(self, facts: LabelFacts) -> float:
        # One or two may be slips of the list; they spoil as many images.
        return 0.92 if annotations_of(facts).size_mismatches else 0.0

    def advise(self, facts: LabelFacts) -> str:
        turned = all(disk == told[::-1] for _, disk, told in annotations_of(facts).size_mismatches)
        return self.turned if turned else self.advice

    def evidence(self, facts: LabelFacts) -> str:
        found = annotations_of(facts)
        path, disk, told = found.size_mismatches[0]
        sizes = f'{disk[1]} x {disk[0]} on disk, {told[1]} x {told[0]} in the annotations'
        return f'{len(found.size_mismatches):,} of {found.sizes_compared:,} images compared, e.g. {path}: {sizes}'

    def values(self, facts: LabelFacts) -> Dict[int, int]:
        return {}

    def files(self, facts: LabelFacts) -> List[str]:
        return [path for path, _, _ in annotations_of(facts).size_mismatches]
