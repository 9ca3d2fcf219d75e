from __future__ import annotations

from typing import Dict, Iterator, List, Optional

from mmguard.findings.edits import ASKS, Edit
from mmguard.findings.facts import LabelFacts
from mmguard.findings.file_edits import rewrite
from mmguard.findings.finding import ERROR, LIKELY, WARNING
from mmguard.findings.rule import AnnotationRule, Example, Facts
from mmguard.findings.views import annotations_of, listing
from mmguard.text import quantity

#: Faults in COCO panoptic.
AREA = 'the area of a segment is not the number of its pixels'
#: Faults in Labelme.
THIN = 'a point or a line encloses no area'
SHORT = 'a polygon has fewer than 6 numbers, or an odd count'
NO_PIXEL = 'polygons cover no pixel'


class UnusableMasks(AnnotationRule):
    """Masks that cannot be decoded, or do not fit their image."""

    code = 'MG179'
    kinds = ('instances',)
    summary = 'Masks cannot be decoded, or do not fit their image.'
    title = 'Masks cannot be used: {reasons}.'
    why = (
        "mmdet stops at an object without a mask (KeyError: 'mask') and at a mask that pycocotools cannot decode; "
        'it silently ignores objects whose polygons are all too short. A mask that differs in size from its image '
        'fails in the middle of an epoch, or labels the wrong pixels.'
    )
    example = Example(
        wrong='"segmentation": [[10, 10, 20, 20]]',
        right='"segmentation": [[10, 10, 20, 20, 10, 20]]',
    )
    limits = 'A mask that can be decoded may still be that of another object.'
    advice = (
        'Draw or export these masks again; if only a few are missing, you can remove their annotations. If no object '
        'has one, train on boxes: with_mask=False, no mask_head (Faster R-CNN instead of Mask R-CNN). A mask is a '
        'list of flat polygons, `[x1, y1, x2, y2, ...]` of three points or more, or an RLE with "size" [height, '
        'width] of the image, `pycocotools.mask.encode`. Labelme: a rectangle is two corners, a circle centre and '
        'edge. Panoptic: write PNG and JSON in one go, id = R + 256 G + 65536 B.'
    )

    def certainty(self, facts: LabelFacts) -> Optional[str]:
        return LIKELY if annotations_of(facts).mask_faults else None

    def offer(self, facts: Facts, labels: LabelFacts) -> Iterator[Edit]:
        found = annotations_of(labels)
        if not found.names_from and THIN not in found.mask_faults:
            question = 'Can these shapes be dropped, with their objects?'
            yield from rewrite(self, facts, 'Leave these masks out.', ASKS, question)

    def severity_of(self, facts: LabelFacts) -> str:
        return WARNING if set(annotations_of(facts).mask_faults) <= {SHORT, THIN, AREA, NO_PIXEL} else ERROR

    def describe(self, facts: LabelFacts) -> Dict[str, str]:
        faults = annotations_of(facts).mask_faults
        return {'reasons': listing(faults, 4)}

    def evidence(self, facts: LabelFacts) -> str:
        known = annotations_of(facts)
        found = [
            f'{fault}: {quantity(count, "annotation")} ({listing(known.mask_examples.get(fault, []), 3)})'
            for fault, count in known.mask_faults.items()
        ]
        return '; '.join(found)

    def files(self, facts: LabelFacts) -> List[str]:
        return [one for examples in annotations_of(facts).mask_examples.values() for one in examples]
