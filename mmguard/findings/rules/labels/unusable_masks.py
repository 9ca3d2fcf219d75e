from __future__ import annotations

from typing import ClassVar, Dict, Iterator, List, Optional

from mmguard.findings.edits import ASKS, Edit
from mmguard.findings.facts import LabelFacts
from mmguard.findings.file_edits import rewrite
from mmguard.findings.finding import ERROR, LIKELY, WARNING, Finding
from mmguard.findings.rule import DataRule, Facts
from mmguard.findings.views import annotations_of, listing
from mmguard.text.words import counted

#: Of COCO panoptic.
AREA = 'the area of a segment is not the number of its pixels'
#: Of Labelme.
POLYGON = 'a polygon has fewer than 3 points'
THIN = 'a point or a line encloses no area'
SHORT = 'a polygon has fewer than 6 numbers, or an odd count'


class UnusableMasks(DataRule):
    """Masks that cannot be decoded, or do not fit their image."""

    code = 'MG179'
    shows_values = False
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
        POLYGON: "Labelme's converters stop at a polygon of two clicks (AssertionError: Polygon must have points more "
        'than 2): draw it anew, or delete the shape.',
        'a rectangle or circle is not of 2 points': 'A rectangle is two corners, a circle its centre and a point on '
        'it: draw them anew.',
        'a mask is missing, or not as large as its corners say': 'The "mask" of a shape is a PNG of the box that its '
        'two points span, both included: save it anew in Labelme.',
        THIN: "Points and lines are of use for keypoints and lanes alone: Labelme's converters draw them 10 pixels "
        'wide. Give points the group_id of their object, delete what is left over, or draw outlines.',
        'a panoptic PNG holds ids without an entry in segments_info': 'Pixels of an id that the JSON does not list are '
        'no segment: mmdet leaves them void. Write PNG and JSON with the same tool, in one go (`panopticapi`).',
        'a segment has no pixel in its PNG': 'The segment was drawn over, or its id was written otherwise than '
        'R + 256 G + 65536 B (BGR of OpenCV?): write the PNG anew, or delete the entry.',
        AREA: 'Count them: `np.bincount(ids.ravel())[segment["id"]]`; the evaluation goes by the PNG.',
        'a panoptic PNG has another size than its image': 'Resize it with NEAREST, or take the images as they were '
        'annotated.',
        'a segment id stands twice in an image': 'Both entries get all pixels of that id: give each segment its own.',
        'an RLE is empty': 'Delete objects without a pixel.',
    }

    def certainty(self, facts: LabelFacts) -> Optional[str]:
        return LIKELY if annotations_of(facts).mask_faults else None

    def edits(self, finding: Finding, facts: Facts) -> Iterator[Edit]:
        found = annotations_of(facts.labels) if facts.labels is not None else None
        if found is not None and found.format == 'labelme' and THIN not in found.mask_faults:
            question = 'May these shapes go, with the objects that they stand for?'
            yield from rewrite(self, facts, 'Leave these masks out.', ASKS, question)

    def severity_of(self, facts: LabelFacts) -> str:
        return WARNING if set(annotations_of(facts).mask_faults) <= {SHORT, THIN, AREA} else ERROR

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

    def files(self, facts: LabelFacts) -> List[str]:
        return [one for examples in annotations_of(facts).mask_examples.values() for one in examples]
