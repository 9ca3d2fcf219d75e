from __future__ import annotations

from typing import ClassVar, Dict, List

from mmguard.findings.facts import LabelFacts
from mmguard.findings.finding import ERROR, WARNING
from mmguard.findings.rule import DataRule
from mmguard.findings.views import annotations_of, listing
from mmguard.words import counted

SHORT = 'a polygon has fewer than 6 numbers, or an odd count'


class UnusableMasks(DataRule):
    """Masks that cannot be decoded, or do not fit their image."""

    code = 'MG179'
    kinds = ('instances',)
    needs = ('annotations',)
    summary = 'Masks cannot be used: {reasons}.'
    why = (
        "mmdet stops at an object without a mask (KeyError: 'mask') and at a mask that pycocotools cannot decode; "
        'objects whose polygons are all too short it ignores without a word. A mask of another size than its image '
        'fails in the middle of an epoch, or teaches other pixels.'
    )
    advice = 'Draw or export these masks anew, or delete their annotations. {parts}'
    #: What is wrong -> what to do about it.
    part: ClassVar[Dict[str, str]] = {
        'there is no mask': 'Every object needs a "segmentation", also a crowd: write that of its box, `[[x, y, '
        'x + w, y, x + w, y + h, x, y + h]]`, or train boxes alone.',
        'neither polygons nor an RLE of "size" and "counts"': 'A mask is a list of polygons, each a flat list `[x1, '
        'y1, x2, y2, ...]`, or `{"size": [height, width], "counts": ...}`.',
        'a polygon is no list of finite numbers': 'Write each polygon as one flat list of numbers, `[x1, y1, x2, y2, '
        '...]`: no texts, no pairs, no NaN.',
        SHORT: 'Three points or more make a polygon; mmdet throws others away, and ignores the object if none is left.',
        'a polygon reaches far beyond the image': 'It was drawn on an image of another size: scale it, or delete it.',
        'the size of an RLE is not that of the image': 'The "size" of an RLE is `[height, width]` of the image: is it '
        'swapped, or was the image resized?',
        'the counts of an RLE do not add up to its size': 'Encode it anew with `pycocotools.mask.encode`, '
        '`rle["counts"].decode()`.',
        'an RLE is empty': 'Delete objects without a pixel.',
    }

    def likelihood(self, facts: LabelFacts) -> float:
        return 0.88 if annotations_of(facts).mask_faults else 0.0

    def severity_of(self, facts: LabelFacts) -> str:
        return WARNING if set(annotations_of(facts).mask_faults) == {SHORT} else ERROR

    def words(self, facts: LabelFacts) -> Dict[str, str]:
        faults = annotations_of(facts).mask_faults
        parts = [self.part[fault] for fault in faults if fault in self.part]
        return {'reasons': listing(faults, 4), 'parts': ' '.join(parts)}

    def evidence(self, facts: LabelFacts) -> str:
        known = annotations_of(facts)
        found = [
            f'{fault}: {counted(count, "annotation")} ({listing(known.mask_examples.get(fault, []), 3)})'
            for fault, count in known.mask_faults.items()
        ]
        return '; '.join(found)

    def values(self, facts: LabelFacts) -> Dict[int, int]:
        return {}

    def files(self, facts: LabelFacts) -> List[str]:
        return [one for examples in annotations_of(facts).mask_examples.values() for one in examples]
