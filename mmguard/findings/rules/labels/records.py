"""Rules about records that are duplicate or incomplete, and about masks that are missing, wrong or undecodable."""

from __future__ import annotations

from typing import ClassVar, Dict, Iterator, Tuple

from mmguard.facts.labels import NO_LABEL_MAP, LabelFacts
from mmguard.findings.edits import Edit
from mmguard.findings.file_edits import rewrite
from mmguard.findings.finding import ERROR, LIKELY, PROVEN, WARNING, Finding
from mmguard.findings.rule import AnnotationRule, Example, Facts, get_fact
from mmguard.findings.views import compute_share, get_annotations, join_items
from mmguard.language import as_message
from mmguard.text import quantity, shorten


class DuplicateIds(AnnotationRule):
    code = 'MG147'
    #: What may be listed twice -> fact with the first of those that are.
    lists: ClassVar[Dict[str, str]] = {
        'image ids': 'coco.duplicate_image_ids',
        'annotation ids': 'coco.duplicate_annotation_ids',
        'category ids': 'coco.duplicate_category_ids',
        'category names': 'annotations.duplicate_names',
        'image files': 'annotations.duplicate_files',
    }
    needs = ('annotations', ' or '.join(lists.values()))
    summary = 'Images, annotations or categories are listed twice.'
    title_names = 'Categories with different ids share a name.'
    why = 'Records are looked up by id: if two share an id, only the later one is read, and the evaluation is wrong.'
    example = Example(wrong='"images": [{"id": 1}, {"id": 1}]', right='"images": [{"id": 1}, {"id": 2}]')
    limits = 'If two images share an id, the file does not show to which image an annotation belongs.'
    advice = (
        'Give every image, annotation and category of the original files a unique id (adapt image_id and '
        'category_id), then merge the files again. If two categories share a name, rename one or merge them.'
    )

    def look(self, facts: Facts, labels: LabelFacts) -> Iterator[Finding]:
        twice = {what: get_fact(labels, name) for what, name in self.lists.items()}
        parts = [f'{what} used twice: {join_items(found)}' for what, found in twice.items() if found]
        # A name with two ids gets two labels: one label more than names, which is then out of range.
        certainty = PROVEN if twice['category names'] and labels.values else LIKELY
        title = self.title_names if twice['category names'] and len(parts) == 1 else ''
        yield self.report_in(facts, certainty, '; '.join(parts), title=title)

    def offer(self, facts: Facts, labels: LabelFacts) -> Iterator[Edit]:
        if not get_annotations(labels).duplicate_names:
            yield from rewrite(self, facts, 'Renumber the annotations.')


class RecordsWithoutKey(AnnotationRule):
    code = 'MG153'
    needs = ('annotations.without_key',)
    summary = 'Records of the annotation file lack keys that mmdet needs.'
    title = 'Records of the annotation file lack keys that mmdet needs: {keys}.'
    why = 'mmdet raises a KeyError when it builds the data set, or when it evaluates.'
    example = Example(
        wrong='{"id": 7, "image_id": 1, "category_id": 1, "bbox": [10, 20, 30, 40]}',
        right='{"id": 7, "image_id": 1, "category_id": 1, "bbox": [10, 20, 30, 40], "area": 1200, "iscrowd": 0}',
    )
    limits = 'Programs other than mmdet may need fewer keys, or more.'
    advice = (
        'An image needs id, file_name, width and height; an annotation needs id, image_id, category_id and bbox: if '
        'one is missing, export the file again. Compute the other keys: `ann.setdefault("iscrowd", 0); '
        'ann.setdefault("area", ann["bbox"][2] * ann["bbox"][3])`.'
    )

    def look(self, facts: Facts, labels: LabelFacts) -> Iterator[Finding]:
        without = get_annotations(labels).without_key
        evidence = join_items(f'{key} in {quantity(number, "record")}' for key, number in without.items())
        yield self.report_in(facts, LIKELY, evidence, {'keys': join_items(without)})

    def offer(self, facts: Facts, labels: LabelFacts) -> Iterator[Edit]:
        yield from rewrite(self, facts, 'Add the missing id, bbox (around the polygons) and area (of the box).')


#: Prefixes of faults of a whole file, which must be copied or exported again, not corrected.
WHOLE_FILE = (
    'cannot be',
    'does not fit',
    'the file is',
    'is not UTF-8',
    'is nested',
    'is damaged',
    'ends in the middle',
    'is not XML',
    'is not JSON',
    'is not a file of',
    'is larger',
    'declares an XML entity',
    'the list of images',
    'the folder',
    'data sets of type',
)
NO_FOLDER_FAULT = 'the folder of images does not exist'


class FaultRule(AnnotationRule):
    """Base class of rules about faults in records and masks; each rule selects faults by their first words."""

    needs = ('annotations', 'annotations.unreadable or coco.mask_faults')
    #: Prefixes of the faults that the rule reports; an empty rule reports all faults in records that no other does.
    faults: ClassVar[Tuple[str, ...]] = ()
    #: Prefixes of the faults that do not stop a training.
    mild: ClassVar[Tuple[str, ...]] = ()

    def look(self, facts: Facts, labels: LabelFacts) -> Iterator[Finding]:
        found = labels.coco
        unreadable = get_annotations(labels).unreadable
        texts = {fault: join_items(places, 3) for fault, places in unreadable.items() if places}
        for fault, count in found.mask_faults.items():
            texts[fault] = f'{quantity(count, "annotation")} ({join_items(found.mask_examples.get(fault, []), 3)})'
        shown = [
            fault for fault in texts if (fault.startswith(self.faults) if self.faults else is_about_records(fault))
        ]
        if shown:
            evidence = '; '.join(f'{fault}: {texts[fault]}' for fault in shown)
            files = [place for fault in shown for place in found.mask_examples.get(fault, [])]
            severity = WARNING if all(fault.startswith(self.mild) for fault in shown) else ERROR
            words = {'reasons': join_items(shown, 4)}
            certainty = LIKELY if shown[0] in found.mask_faults else PROVEN  # a loader may leave masks out
            yield self.report_in(facts, certainty, evidence, words, severity=severity, files=files)


def is_about_records(reason: str) -> bool:
    """True if a fault is in single records, not in the whole file, and no other rule reports the fault.

    Example:
        >>> is_about_records('bbox is not four numbers'), is_about_records('is damaged: invalid literal')
        (True, False)
    """
    others = tuple(start for rule in FaultRule.__subclasses__() for start in rule.faults)
    return not reason.startswith((*WHOLE_FILE, *others))


class WrongRecords(FaultRule):
    code = 'MG176'
    summary = 'Records of the annotation file have values of wrong types or lack entries.'
    title = 'Records of the annotation file have values of wrong types or lack entries: {reasons}.'
    why = 'A reader stops at such a record, or leaves it out silently.'
    example = Example(
        wrong='"bbox": ["10", "20", "4", "5"], "category_id": "1"',
        right='"bbox": [10, 20, 4, 5], "category_id": 1',
    )
    limits = 'Records are checked as the usual readers of each format do; your own reader may accept such records.'
    advice = 'Correct the records listed, or export the file again.'

    def advise(self, facts: Facts) -> str:
        advice = '' if facts.labels is None else get_annotations(facts.labels).record_advice
        return as_message(advice or self.advice).template

    def offer(self, facts: Facts, labels: LabelFacts) -> Iterator[Edit]:
        names_from = get_annotations(labels).names_from
        if names_from == 'categories':
            title = 'Convert ids and "bbox" to numbers and "name" to a string, and leave out records that stay wrong.'
            yield from rewrite(self, facts, title)
        elif not names_from:
            question = 'Are the images fully labeled without the unreadable records?'
            yield from rewrite(self, facts, 'Leave these records out.', question)


class ClassFolders(FaultRule):
    code = 'MG393'
    follows = ('MG102', 'MG107', 'MG108', 'MG115', 'MG116', 'MG127', 'MG161')
    faults = ('a hidden folder', 'the class folders', 'there are fewer class folders')
    summary = 'The class folders do not match the class list.'
    title = 'The class folders do not match the class list: {reasons}.'
    why = 'Folders are numbered in alphabetical order: a missing or extra folder shifts all later labels.'
    example = Example(wrong='train/.ipynb_checkpoints, train/cat, train/dog', right='train/cat, train/dog')
    advice = 'Keep the same class folders in each split, and remove hidden folders.'


class CategoriesWithoutLabel(FaultRule):
    code = 'MG394'
    faults = ('RF-DETR has no label',)
    summary = 'RF-DETR has no label for a category that no annotation of train uses.'
    title = 'RF-DETR has no label for some categories of this file: no annotation of train uses them.'
    why = 'RF-DETR numbers only categories with objects in train; an object of another category raises a KeyError.'
    example = Example(wrong='valid has objects of "cow", train has none', right='objects of "cow" in train, too')
    advice = 'Move images of these categories to train, or remove their annotations from this file.'


class MissingLabelMaps(FaultRule):
    code = 'MG157'
    faults = (NO_LABEL_MAP,)
    summary = 'The label maps of a semantic branch are missing.'
    title = 'with_seg=True loads label maps for a semantic branch, but they are missing. The annotation file is right.'
    why = 'HTC and similar models also train a semantic head: the first batch fails because its label map is missing.'
    example = Example(
        wrong='LoadAnnotations(with_bbox=True, with_seg=True), without label maps',
        right='with_seg=False, no semantic_head',
    )
    limits = 'A loader of your own may create the label maps.'
    advice = (
        'Use the config without the semantic branch (with_seg=False, no semantic_head), or create real label maps. Do '
        'not write empty maps: 0 is a class.'
    )


#: Share of annotations with an unnamed category above which the list of categories is probably wrong.
MANY_UNNAMED = 0.2


class UnnamedCategories(AnnotationRule):
    code = 'MG149'
    needs = ('annotations', 'coco.unnamed')
    follows = ('MG102', 'MG107', 'MG115', 'MG116', 'MG127')
    summary = 'Annotations use category ids that the file does not name.'
    title = 'Annotations use category ids that the file does not name: {ids}.'
    why = 'mmdet silently leaves such annotations out; other loaders use the id as a label, which is out of range.'
    example = Example(
        wrong='"category_id": 9, "categories": [{"id": 1, "name": "cat"}]',
        right='"categories": [{"id": 1, "name": "cat"}, {"id": 9, "name": "dog"}]',
    )
    limits = 'Cannot tell whether the list of categories or the annotations are wrong.'
    advice = (
        'Look up these ids in the tool that wrote the file, and add them to "categories", `{{"id": {first}, "name": '
        '"..."}}`, or correct category_id. If every category_id is one less, or one more, than the id of its category, '
        'shift all of them: `ann["category_id"] += 1`, or `-= 1`.'
    )

    def look(self, facts: Facts, labels: LabelFacts) -> Iterator[Finding]:
        unnamed = labels.coco.unnamed
        ids = sorted(unnamed)
        evidence = join_items(f'id {value} in {quantity(unnamed[value], "annotation")}' for value in ids)
        words, files = {'ids': join_items(ids), 'first': ids[0]}, labels.coco.unnamed_examples
        is_label = get_annotations(labels).labelled_by == 'category id'  # else the values are positions
        certainty, follow = (PROVEN, self.follows) if is_label and set(labels.values) & set(unnamed) else (LIKELY, ())
        yield self.report_in(facts, certainty, evidence, words, values=unnamed, files=files, follows=follow)

    def offer(self, facts: Facts, labels: LabelFacts) -> Iterator[Edit]:
        found = get_annotations(labels)
        unnamed, ids = sum(labels.coco.unnamed.values()), sorted(found.categories)
        step = self._find_shift(labels)
        if step:
            first = shorten(found.categories[ids[0]])
            counts = f'count from {ids[0] - step} where "categories" count from {ids[0]}'
            question = f'Do category_ids {counts} (is {ids[0] - step} {first})?'
            title = f'{"Add 1 to" if step > 0 else "Subtract 1 from"} every category_id.'
            shift = {number - step: number for number in ids}
            yield from rewrite(self, facts, title, question, label_map=shift)
        elif compute_share(unnamed, found.annotations) < MANY_UNNAMED:
            question = 'Are these annotations of objects that should not be learned?'
            yield from rewrite(self, facts, 'Leave these annotations out.', question)

    def _find_shift(self, labels: LabelFacts) -> int:
        """Return the only shift of ``category_id``, 1 or -1, that makes all annotations fit the categories, else 0."""
        ids = sorted(get_annotations(labels).categories)
        if not ids or ids[-1] - ids[0] >= len(ids):
            return 0
        unnamed, used = set(labels.coco.unnamed), get_annotations(labels).instances_of
        if unnamed == {ids[0] - 1} and not used.get(str(ids[-1])):
            return 1
        return -1 if unnamed == {ids[-1] + 1} and not used.get(str(ids[0])) else 0


class UndecodableMasks(FaultRule):
    code = 'MG179'
    faults = ('neither polygons', 'a polygon is not a list', 'the counts of an RLE', 'too long to be checked')
    summary = 'Masks cannot be decoded.'
    title = 'Masks cannot be decoded: {reasons}.'
    why = 'mmdet stops at a mask that pycocotools cannot decode.'
    example = Example(
        wrong='"segmentation": {"size": [2, 2], "counts": [1, 2]}',
        right='"segmentation": {"size": [2, 2], "counts": [1, 3]}',
    )
    limits = 'A mask that can be decoded may still belong to another object.'
    advice = (
        'Export these masks again. A mask is a list of flat polygons, `[x1, y1, x2, y2, ...]`, or an RLE of '
        '`pycocotools.mask.encode`.'
    )


class MissingMasks(FaultRule):
    code = 'MG396'
    faults = ('the mask is missing',)
    summary = 'Annotations have no mask.'
    why = "mmdet stops at an object without a mask (KeyError: 'mask', or an index out of range for an empty list)."
    example = Example(wrong='"segmentation": []', right='with_mask=False, no mask_head')
    advice = 'Draw these masks, or remove these annotations. Do not make masks from the boxes.'
    advice_all = (
        'No object has a mask: train a box detector (set with_mask=False and remove mask_head, as in Faster R-CNN). Do '
        'not make masks from the boxes.'
    )

    def advise(self, facts: Facts) -> str:
        labels = facts.labels
        is_all = labels is not None and sum(labels.coco.mask_faults.values()) >= get_annotations(labels).annotations
        return self.advice_all if is_all else self.advice


class MasksOfAnotherSize(FaultRule):
    code = 'MG397'
    faults = ('the size of an RLE is not that of the image', 'a polygon reaches far beyond the image')
    summary = 'Masks do not fit their image.'
    title = 'Masks do not fit their image: {reasons}.'
    why = 'A mask that differs in size from its image fails in the middle of an epoch, or labels the wrong pixels.'
    example = Example(wrong='"size": [640, 480]  # image 640 x 480', right='"size": [480, 640]  # height, width')
    limits = 'A mask of the right size may still belong to another image.'
    advice = (
        'Open one of these images with its mask: "size" must be [height, width], and the image must not have been '
        'resized or rotated after its masks were drawn. Find the cause before you resize any mask.'
    )


class EmptyMasks(FaultRule):
    code = 'MG398'
    mild = ('a polygon has fewer', 'polygons cover no pixel')
    faults = (*mild, 'an RLE is empty')
    summary = 'Masks are empty.'
    title = 'Masks are empty: {reasons}.'
    why = 'mmdet silently ignores objects whose polygons are all too short; an empty mask is trained as background.'
    example = Example(wrong='"segmentation": [[10, 10, 20, 20]]', right='"segmentation": [[10, 10, 20, 20, 10, 20]]')
    advice = 'Remove these annotations, or draw their masks again with three points or more.'


class PanopticSegments(FaultRule):
    code = 'MG395'
    mild = ('the area of a segment',)
    faults = (*mild, 'a panoptic PNG', 'the PNG of a panoptic', 'a segment ', 'file_name of an annotation is not that')
    summary = 'PNG and JSON of a panoptic data set do not agree.'
    title = 'PNG and JSON of a panoptic data set do not agree: {reasons}.'
    why = 'mmdet stops at a segment without pixels, which has no box, and at a PNG that is not named like its image.'
    example = Example(wrong='id 7 in the PNG, not in segments_info', right='{"id": 7, ...} in segments_info')
    advice = (
        'Export PNG and JSON again together. Each PNG must have the size and the name of its image, and three channels '
        'that encode the id: R + 256 G + 65536 B.'
    )
