from __future__ import annotations

from typing import Dict, List, Optional, Tuple

from mmguard.findings.facts import LabelFacts
from mmguard.findings.finding import LIKELY, PROVEN
from mmguard.findings.rule import DataRule, Example
from mmguard.findings.views import annotations_of, maps_of, number_of
from mmguard.text import quantity


class SizeMismatch(DataRule):
    """Labels of another size than their images."""

    code = 'MG130'
    aliases = ('MG175',)
    shows_values = False
    kinds = ('pixels', 'instances')
    needs = ()
    summary = 'Labels have another size than their images.'
    title = 'Label maps have another size than their images: {number}.'
    title_swapped = 'Label maps have height and width of their images swapped: {number}.'
    title_other = 'Label maps have neither the size nor the proportions of their images: {number}.'
    title_boxes = 'Images have another size on disk than in the annotations: {number}.'
    why = 'Crops of image and label show different places, or the shapes clash in the loss; boxes are somewhere else.'
    example = Example(
        wrong='image 2048 x 1024, label map 1024 x 512',
        right='cv2.resize(label, (2048, 1024), interpolation=cv2.INTER_NEAREST)',
    )
    limits = 'It compares sizes only; a label of the right size may belong to another image.'
    advice = (
        'Look at one image with its label. If it is a smaller copy, scale the label: maps with INTER_NEAREST, boxes by '
        'width_on_disk / width and height_on_disk / height. If height and width are swapped, write `label.T`, or '
        'remove the EXIF tag that turns the image: `Image.fromarray(np.array(Image.open(path))).save(path)`. If not, '
        'or with other proportions, label and image do not belong together: resize nothing, use the images that were '
        'annotated.'
    )

    def certainty(self, facts: LabelFacts) -> Optional[str]:
        # One or two may be slips of the list; they spoil as many images.
        return LIKELY if maps_of(facts).size_mismatches else PROVEN if self._mismatches(facts) else None

    def choose_title(self, facts: LabelFacts) -> str:
        if facts.annotations is not None:
            return self.title_boxes
        sizes = [(label, image) for _, label, image in self._mismatches(facts)]
        if all(tuple(label) == tuple(image)[::-1] for label, image in sizes):
            return self.title_swapped
        return self.title_other if not any(_are_copies(*both) for both in sizes) else self.title

    def describe(self, facts: LabelFacts) -> Dict[str, str]:
        number = number_of(maps_of(facts), 'size_mismatches') or len(self._mismatches(facts))
        return {'number': quantity(number, 'file')}

    def evidence(self, facts: LabelFacts) -> str:
        found = self._mismatches(facts)
        path, first, second = found[0]
        if facts.annotations is not None:
            sizes = f'{first[1]} x {first[0]} on disk, {second[1]} x {second[0]} in the annotations'
            return f'{len(found):,} of {facts.annotations.sizes_compared:,} images compared, e.g. {path}: {sizes}'
        number = quantity(number_of(maps_of(facts), 'size_mismatches'), 'file')
        sizes = f'label {first[0]}x{first[1]}, image {second[0]}x{second[1]} (height x width)'
        return f'{number}, e.g. {path}: {sizes}'

    def files(self, facts: LabelFacts) -> List[str]:
        return [path for path, _, _ in self._mismatches(facts)]

    def _mismatches(self, facts: LabelFacts) -> List[Tuple[str, Tuple[int, int], Tuple[int, int]]]:
        return maps_of(facts).size_mismatches or annotations_of(facts).size_mismatches


def _are_copies(label: Tuple[int, int], image: Tuple[int, int]) -> bool:
    """True if one is the other at another scale: the smaller side may be rounded."""
    (height, width), (of_image, wide) = sorted((label, image))
    return abs(height * wide - width * of_image) <= max(of_image, wide)
