from __future__ import annotations

from typing import List, Optional, Tuple

from mmguard.findings.facts import LabelFacts
from mmguard.findings.finding import LIKELY, PROVEN
from mmguard.findings.rule import DataRule
from mmguard.findings.views import annotations_of, maps_of, number_of
from mmguard.text.words import counted


class SizeMismatch(DataRule):
    """Labels of another size than their images."""

    code = 'MG130'
    aliases = ('MG175',)
    shows_values = False
    kinds = ('pixels', 'instances')
    needs = ()
    summary = 'Label maps have another size than their images.'
    why = 'Crops of image and label show different places, or the shapes clash in the loss; boxes lie somewhere else.'
    advice = (
        'Make the label maps anew at the size of the images; if they only are a smaller copy: '
        '`cv2.resize(label, (width, height), interpolation=cv2.INTER_NEAREST)`.'
    )
    turned = (
        'Height and width are swapped. If the image has an EXIF tag, `Image.open(path).getexif().get(274)`, loaders '
        'turn it, and the label was drawn on what is stored: save the image without the tag, '
        '`Image.fromarray(np.array(Image.open(path))).save(path)`. If not, the label was written transposed: `label.T`.'
    )
    boxes = 'Images have another size on disk than in the annotations: the boxes lie somewhere else.'
    scaled = (
        'Use the images that were annotated, or scale the boxes with them: `sx = width_on_disk / width; '
        'sy = height_on_disk / height` and `bbox = [x * sx, y * sy, w * sx, h * sy]`, then correct `"width"` and '
        '`"height"`. Look at one image with its boxes first: the two numbers may be swapped.'
    )

    def certainty(self, facts: LabelFacts) -> Optional[str]:
        # One or two may be slips of the list; they spoil as many images.
        return LIKELY if maps_of(facts).size_mismatches else PROVEN if self._found(facts) else None

    def summarise(self, facts: LabelFacts) -> str:
        return self.summary if facts.annotations is None else self.boxes

    def advise(self, facts: LabelFacts) -> str:
        if facts.annotations is not None:
            return self.scaled
        turned = all(tuple(label) == tuple(image)[::-1] for _, label, image in self._found(facts))
        return self.turned if turned else self.advice

    def evidence(self, facts: LabelFacts) -> str:
        found = self._found(facts)
        path, first, second = found[0]
        if facts.annotations is not None:
            sizes = f'{first[1]} x {first[0]} on disk, {second[1]} x {second[0]} in the annotations'
            return f'{len(found):,} of {facts.annotations.sizes_compared:,} images compared, e.g. {path}: {sizes}'
        number = counted(number_of(maps_of(facts), 'size_mismatches'), 'file')
        sizes = f'label {first[0]}x{first[1]}, image {second[0]}x{second[1]} (height x width)'
        return f'{number}, e.g. {path}: {sizes}'

    def files(self, facts: LabelFacts) -> List[str]:
        return [path for path, _, _ in self._found(facts)]

    def _found(self, facts: LabelFacts) -> List[Tuple[str, Tuple[int, int], Tuple[int, int]]]:
        return maps_of(facts).size_mismatches or annotations_of(facts).size_mismatches
