"""Masks of annotations that are missing, empty, of another size than their image, or cannot be decoded."""

from __future__ import annotations

from typing import ClassVar, Dict, Iterator, Tuple

from mmguard.findings.facts import LabelFacts
from mmguard.findings.finding import ERROR, LIKELY, WARNING, Finding
from mmguard.findings.rule import AnnotationRule, Example, Facts
from mmguard.findings.views import get_annotations, join_items
from mmguard.text import quantity


class MaskRule(AnnotationRule):
    """Base class of rules about masks."""

    kinds = ('instances',)
    #: Beginnings of the faults that show it; empty: those of no other rule.
    faults: ClassVar[Tuple[str, ...]] = ()
    #: Beginnings of faults at which training does not stop.
    mild: ClassVar[Tuple[str, ...]] = ()

    def look(self, facts: Facts, labels: LabelFacts) -> Iterator[Finding]:
        examples, found = get_annotations(labels).mask_examples, self._select(labels)
        if found:
            texts = [
                f'{fault}: {quantity(count, "annotation")} ({join_items(examples.get(fault, []), 3)})'
                for fault, count in found.items()
            ]
            files = [place for fault in found for place in examples.get(fault, [])]
            severity = WARNING if all(fault.startswith(self.mild) for fault in found) else ERROR
            words = {'reasons': join_items(found, 4), 'number': quantity(sum(found.values()), 'annotation')}
            advice = self.choose_advice(labels, sum(found.values()))
            yield self.report_in(facts, LIKELY, '; '.join(texts), words, severity=severity, files=files, advice=advice)

    def choose_advice(self, labels: LabelFacts, number: int) -> str:
        """Return the advice for this number of annotations."""
        return self.advice

    def _select(self, labels: LabelFacts) -> Dict[str, int]:
        others = tuple(start for rule in MaskRule.__subclasses__() for start in rule.faults)
        return {
            fault: count
            for fault, count in get_annotations(labels).mask_faults.items()
            if (fault.startswith(self.faults) if self.faults else not fault.startswith(others))
        }


class UndecodableMasks(MaskRule):
    """Masks that are neither polygons nor an RLE."""

    code = 'MG179'
    summary = 'Masks cannot be decoded.'
    title = 'Masks cannot be decoded: {reasons}.'
    why = 'mmdet stops at a mask that pycocotools cannot decode.'
    example = Example(
        wrong='"segmentation": {"size": [2, 2], "counts": [1, 2]}',
        right='"segmentation": {"size": [2, 2], "counts": [1, 3]}',
    )
    limits = 'A mask that can be decoded may still be that of another object.'
    advice = (
        'Export these masks again. A mask is a list of flat polygons, `[x1, y1, x2, y2, ...]`, or an RLE of '
        '`pycocotools.mask.encode`.'
    )


class MissingMasks(MaskRule):
    """Annotations without a mask, where masks are loaded."""

    code = 'MG396'
    faults = ('the mask is missing',)
    summary = 'Annotations have no mask.'
    title = 'Masks are missing: {number} without one.'
    why = "mmdet stops at an object without a mask (KeyError: 'mask', or an index out of range for an empty list)."
    example = Example(wrong='"segmentation": []', right='with_mask=False, no mask_head')
    limits = 'A loader of your own may need no masks.'
    advice = 'Draw these masks, or remove these annotations. Do not make masks from the boxes.'
    advice_all = (
        'No object has a mask: train on boxes, with_mask=False and no mask_head (Faster R-CNN instead of Mask R-CNN). '
        'Do not make masks from the boxes.'
    )

    def choose_advice(self, labels: LabelFacts, number: int) -> str:
        return self.advice_all if number >= get_annotations(labels).annotations else self.advice


class MasksOfAnotherSize(MaskRule):
    """Masks that do not fit their image."""

    code = 'MG397'
    faults = ('the size of an RLE is not that of the image', 'a polygon reaches far beyond the image')
    summary = 'Masks do not fit their image.'
    title = 'Masks do not fit their image: {reasons}.'
    why = 'A mask that differs in size from its image fails in the middle of an epoch, or labels the wrong pixels.'
    example = Example(wrong='"size": [640, 480]  # image 640 x 480', right='"size": [480, 640]  # height, width')
    limits = 'A mask of the right size may still be that of another image.'
    advice = (
        'Open one of these images with its mask: "size" is [height, width], and images that were resized or turned '
        'after the masks were drawn have other pixels. Do not resize the masks before you know which it is.'
    )


class EmptyMasks(MaskRule):
    """Masks without a pixel."""

    code = 'MG398'
    mild = ('a polygon has fewer', 'polygons cover no pixel')
    faults = (*mild, 'an RLE is empty')
    summary = 'Masks have no pixel.'
    title = 'Masks have no pixel: {reasons}.'
    why = 'mmdet silently ignores objects whose polygons are all too short; an empty mask is trained as background.'
    example = Example(wrong='"segmentation": [[10, 10, 20, 20]]', right='"segmentation": [[10, 10, 20, 20, 10, 20]]')
    limits = 'A tiny object of a downscaled image may have no pixel, rightly.'
    advice = 'Remove these annotations, or draw their masks again with three points or more.'


class PanopticSegments(MaskRule):
    """PNG and JSON of a panoptic set that do not agree."""

    code = 'MG395'
    mild = ('the area of a segment',)
    faults = (*mild, 'a panoptic PNG', 'a segment ')
    summary = 'PNG and JSON of a panoptic data set do not agree.'
    title = 'PNG and JSON of a panoptic data set do not agree: {reasons}.'
    why = 'A segment without a pixel has no box, and pixels without a segment have no class: the loader stops there.'
    example = Example(wrong='id 7 in the PNG, not in segments_info', right='{"id": 7, ...} in segments_info')
    limits = 'Without `--masks` it reads a sample of the PNGs.'
    advice = 'Write PNG and JSON again in one go, id = R + 256 G + 65536 B, with the size of the image.'
