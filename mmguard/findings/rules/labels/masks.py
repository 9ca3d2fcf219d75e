"""Masks of annotations that are missing or empty, differ in size from their image, or cannot be decoded."""

from __future__ import annotations

from mmguard.findings.rule import Example, Facts
from mmguard.findings.rules.labels.records import FaultRule
from mmguard.findings.views import get_annotations


class UndecodableMasks(FaultRule):
    """Masks that are neither polygons nor an RLE."""

    code = 'MG179'
    faults = ('neither polygons', 'a polygon is not a list', 'the counts of an RLE', 'too long to be checked')
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


class MissingMasks(FaultRule):
    """Annotations without a mask, where masks are loaded."""

    code = 'MG396'
    faults = ('the mask is missing',)
    summary = 'Annotations have no mask.'
    why = "mmdet stops at an object without a mask (KeyError: 'mask', or an index out of range for an empty list)."
    example = Example(wrong='"segmentation": []', right='with_mask=False, no mask_head')
    advice = 'Draw these masks, or remove these annotations. Do not make masks from the boxes.'
    advice_all = (
        'No object has a mask: train on boxes, with_mask=False and no mask_head (Faster R-CNN instead of Mask R-CNN). '
        'Do not make masks from the boxes.'
    )

    def advise(self, facts: Facts) -> str:
        labels = facts.labels
        is_all = labels is not None and sum(labels.coco.mask_faults.values()) >= get_annotations(labels).annotations
        return self.advice_all if is_all else self.advice


class MasksOfAnotherSize(FaultRule):
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


class EmptyMasks(FaultRule):
    """Masks without a pixel."""

    code = 'MG398'
    mild = ('a polygon has fewer', 'polygons cover no pixel')
    faults = (*mild, 'an RLE is empty')
    summary = 'Masks have no pixel.'
    title = 'Masks have no pixel: {reasons}.'
    why = 'mmdet silently ignores objects whose polygons are all too short; an empty mask is trained as background.'
    example = Example(wrong='"segmentation": [[10, 10, 20, 20]]', right='"segmentation": [[10, 10, 20, 20, 10, 20]]')
    advice = 'Remove these annotations, or draw their masks again with three points or more.'


class PanopticSegments(FaultRule):
    """PNG and JSON of a panoptic set that do not agree."""

    code = 'MG395'
    mild = ('the area of a segment',)
    faults = (*mild, 'a panoptic PNG', 'the PNG of a panoptic', 'a segment ', 'file_name of an annotation is not that')
    summary = 'PNG and JSON of a panoptic data set do not agree.'
    title = 'PNG and JSON of a panoptic data set do not agree: {reasons}.'
    why = 'A segment without a pixel has no box, and mmdet opens the PNG that is named like the image: it stops there.'
    example = Example(wrong='id 7 in the PNG, not in segments_info', right='{"id": 7, ...} in segments_info')
    advice = (
        'Write PNG and JSON again in one go: a PNG of three channels, id = R + 256 G + 65536 B, with the size of its '
        'image, named like it.'
    )
