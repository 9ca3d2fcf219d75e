from __future__ import annotations

from typing import List

from mmguard.findings.facts import LabelFacts
from mmguard.findings.rule import DataRule
from mmguard.findings.views import maps_of, number_of
from mmguard.text.words import counted


class SizeMismatch(DataRule):
    """A label map of another size than its image."""

    code = 'MG130'
    kinds = ('pixels',)
    needs = ('maps',)
    summary = 'Label maps have another size than their images.'
    why = 'Crops of image and label show different places, or the shapes clash in the loss.'
    advice = (
        'Make the label maps anew at the size of the images; if they only are a smaller copy: '
        '`cv2.resize(label, (width, height), interpolation=cv2.INTER_NEAREST)`.'
    )
    turned = (
        'Height and width are swapped. If the image has an EXIF tag, `Image.open(path).getexif().get(274)`, loaders '
        'turn it, and the label was drawn on what is stored: save the image without the tag, '
        '`Image.fromarray(np.array(Image.open(path))).save(path)`. If not, the label was written transposed: `label.T`.'
    )

    def likelihood(self, facts: LabelFacts) -> float:
        return 0.8 if maps_of(facts).size_mismatches else 0.0

    def advise(self, facts: LabelFacts) -> str:
        turned = all(tuple(label) == tuple(image)[::-1] for _, label, image in maps_of(facts).size_mismatches)
        return self.turned if turned else self.advice

    def evidence(self, facts: LabelFacts) -> str:
        found = maps_of(facts).size_mismatches
        path, label, image = found[0]
        number = counted(number_of(maps_of(facts), 'size_mismatches'), 'file')
        sizes = f'label {label[0]}x{label[1]}, image {image[0]}x{image[1]} (height x width)'
        return f'{number}, e.g. {path}: {sizes}'

    def files(self, facts: LabelFacts) -> List[str]:
        return [path for path, _, _ in maps_of(facts).size_mismatches]

    def values(self, facts: LabelFacts) -> dict:
        return {}
