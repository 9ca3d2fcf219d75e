"""Rules about classes, model outputs and images without a label to train on."""

from __future__ import annotations

from typing import Any, Dict, Iterator, List

from mmguard.config.parts import find_datasets
from mmguard.config.read import ReadConfig
from mmguard.facts.labels import LabelFacts
from mmguard.findings.config_edits import state_num_classes
from mmguard.findings.edits import Edit
from mmguard.findings.file_edits import rewrite
from mmguard.findings.finding import INFO, LIKELY, POSSIBLE, PROVEN, Finding
from mmguard.findings.rule import AnnotationRule, DataRule, Example, Facts
from mmguard.findings.views import (
    compute_share,
    count_stored,
    count_trained,
    get_annotations,
    get_config,
    get_maps,
    is_trained_on,
    join_items,
    select_ids,
)
from mmguard.language import Message
from mmguard.text import quantity


class OptionContradicted(DataRule):
    code = 'MG384'
    kinds = ('voxels',)
    needs = ()
    shows_values = False
    summary = '--num-classes contradicts the number of classes that the data set declares.'
    title = '--num-classes {said} contradicts dataset.json ({num_classes} classes): the scan used dataset.json.'
    why = 'A model with the wrong number of classes lacks outputs for some labels, or has outputs without a label.'
    example = Example(wrong='--num-classes 2, "labels": {"background": 0, "liver": 1, "tumor": 2}', right='3 classes')
    limits = 'Cannot tell which of the two numbers is right.'
    advice = 'If dataset.json is right, scan without --num-classes. If not, correct "labels" in dataset.json.'

    def look(self, facts: Facts, labels: LabelFacts) -> Iterator[Finding]:
        said = facts.options.get('num_classes')
        if said not in (None, labels.num_classes):
            yield self.report_in(facts, PROVEN, f'--num-classes {said}', {'said': said}, files=['dataset.json'])


#: Minimum number of files, because a single file may contain only one class.
ENOUGH_FILES = 5


class OnlyOneClass(DataRule):
    code = 'MG135'
    aliases = ('MG194',)
    shows_values = False
    kinds = ('pixels', 'instances', 'voxels')
    severity = 'warning'
    needs = ('histogram',)
    summary = 'Only one class occurs in the files, or some listed classes never occur.'
    title = 'Only 1 of {num_classes} classes occurs in the files: {only}.'
    title_never = '{missing} of {num_classes} listed classes never occur in the files: {never}.'
    why = 'With one class the loss falls to 0: nothing is learned. Usually the loader or a label_map merged the values.'
    example = Example(
        wrong='ToTensor() on a mask: k / 255 becomes 0',
        right='torch.as_tensor(np.array(mask), dtype=torch.int64)',
    )
    limits = 'A data set that lacks some of the listed classes on purpose is reported, too.'
    advice = (
        'With `mmguard trace CONFIG` find the step that loses classes: ToTensor on a mask, 16 bits read as 8, a '
        'foreground stored as the ignored value, or missing files. A class without any label cannot be learned.'
    )

    def look(self, facts: Facts, labels: LabelFacts) -> Iterator[Finding]:
        seen, never = select_ids(count_trained(labels)) - {labels.ignore_index}, _list_untrained(labels)
        if never:
            named = [f'{labels.name_of(label)} ({label})' for label in never]
            words = {'missing': len(never), 'never': join_items(named)}
            severity = INFO if labels.kind == 'instances' else None
            evidence = f'{sum(count_trained(labels).values()):,} {labels.kind} of {len(seen)} classes'
            yield self.report_in(facts, POSSIBLE, evidence, words, self.title_never, severity)
            return
        is_only_one = labels.kind == 'pixels' and len(seen) == 1 and not labels.values and labels.num_classes > 1
        if is_only_one and (len(select_ids(get_maps(labels).raw)) > 1 or labels.files >= ENOUGH_FILES):
            before, after = join_items(sorted(count_stored(labels))), join_items(sorted(count_trained(labels)))
            evidence = f'values as stored: {before}; as trained: {after}'
            yield self.report_in(facts, LIKELY, evidence, {'only': join_items(sorted(seen))})


def _list_untrained(labels: LabelFacts) -> List[int]:
    """List the classes that no volume contains or no training annotation has, or [] if this is unknown."""
    if labels.volumes is not None:
        return labels.volumes.never
    names = labels.class_names
    if labels.kind == 'pixels' or not names or len(names) != labels.num_classes or not is_trained_on(labels):
        return []
    return [] if labels.values else sorted(set(range(len(names))) - set(count_trained(labels)))


#: Numbers of outputs that frameworks have by default.
DEFAULTS = (20, 21, 80, 81, 90, 91, 365, 1203)
#: Minimum number of unused outputs (one may be the background), and their minimum share of the needed outputs.
ENOUGH, HALF = 2, 0.5


class OutputsNeverTrained(DataRule):
    code = 'MG161'
    severity = 'warning'
    kinds = ('instances',)
    needs = ('annotations', 'histogram')
    summary = 'The model has many more outputs than the file has categories.'
    title = 'The file has {categories}, but the model has {num_classes} outputs: {more} are never trained.'
    why = (
        'num_classes was probably left at the default of the framework or the checkpoint. Nothing crashes, but a '
        'classification loss over many unused outputs learns badly, and detections get names of another data set.'
    )
    example = Example(
        wrong='MODEL.ROI_HEADS.NUM_CLASSES left at 80, three categories',
        right='MODEL.ROI_HEADS.NUM_CLASSES = 3',
    )
    limits = 'Other files of the same training may contain more categories; only the given files are read.'
    advice = (
        'Count the categories of all training files together ({needed} outputs for this file), and write that number '
        'where the model reads it: num_classes, in detectron2 MODEL.RETINANET.NUM_CLASSES for RetinaNet and '
        'MODEL.ROI_HEADS.NUM_CLASSES for R-CNN. A checkpoint may set another number.'
    )

    def look(self, facts: Facts, labels: LabelFacts) -> Iterator[Finding]:
        found, needed = get_annotations(labels), self._count_needed(labels)
        if found.names_from != 'categories' or found.classes_counted or labels.has_config or not found.categories:
            return
        enough = max(needed, max(found.categories) + 1) if found.labelled_by == 'unknown' else needed
        more = labels.num_classes - enough
        far = more >= needed * HALF or labels.num_classes in DEFAULTS
        if more >= ENOUGH and far and not labels.values:
            names = list(found.categories.values())
            few = ', '.join(map(repr, names[:6])) + (', ...' if len(names) > 6 else '')
            evidence = f'num_classes={labels.num_classes}; categories: {few}; labels to {max(labels.histogram)}'
            more = labels.num_classes - needed
            words = {'categories': quantity(len(names), 'category'), 'needed': needed, 'more': more}
            yield self.report_in(facts, LIKELY, evidence, words)

    def offer(self, facts: Facts, labels: LabelFacts) -> Iterator[Edit]:
        edit = Edit('Set num_classes of the model.', 'Are these all the categories of the training?')
        yield state_num_classes(edit, self._count_needed(labels))

    def _count_needed(self, labels: LabelFacts) -> int:
        found = get_annotations(labels)
        if found.labelled_by == 'category id':
            return max(found.categories, default=0) + 1 - labels.coco.spare
        return len(labels.class_names or found.categories)


CROWD_REASON, IGNORED_REASON = 'iscrowd=1 (VOC: difficult)', 'ignore is set'
NO_IMAGE, NO_AREA = 'its image is not listed', 'area is 0'
SMALL_IMAGE_REASON = 'its image is smaller than min_size'
#: Reasons, reported by this rule, why annotations are left out; another rule reports names that the class list lacks.
REASONS = {NO_IMAGE, NO_AREA, IGNORED_REASON, 'thinner than one pixel', 'no part inside the image'}


class NoUsableInstance(AnnotationRule):
    code = 'MG174'
    follows = ('MG146',)
    aliases = ('MG145', 'MG148')
    summary = 'No image has an object to train on.'
    title = 'No image has an object to train on: {reasons}.'
    why = 'Training fails with "need at least one array to concatenate", or its box losses are 0 from the start.'
    example = Example(wrong='"iscrowd": 1 in every annotation', right='"iscrowd": 0')
    limits = 'Only the filters of mmdet are known; your own data set class may leave out more annotations.'
    advice = (
        'For single objects set "iscrowd" (VOC: difficult) and "ignore" to 0, compute "area", and correct image_id '
        '(1, not "1") and boxes (inside the image, at least one pixel wide). A file without annotations may be a test '
        'set: correct `ann_file`.'
    )

    def look(self, facts: Facts, labels: LabelFacts) -> Iterator[Finding]:
        found, reasons = get_annotations(labels), self._count_reasons(labels)
        none = found.images > 0 and found.images in (found.images_without_target, found.small_images)
        # Mistakes with more specific rules: other labels, unusable boxes, unnamed categories.
        elsewhere = labels.values or labels.reasons or labels.coco.unnamed or found.unreadable
        if none and is_trained_on(labels) and not elsewhere and reasons:
            numbers = ', '.join(f'{quantity(number, "annotation")}: {why}' for why, number in reasons.items())
            evidence = f'{quantity(found.images, "image")}; {numbers}'
            yield self.report_in(facts, PROVEN, evidence, {'reasons': join_items(reasons)})

    def offer(self, facts: Facts, labels: LabelFacts) -> Iterator[Edit]:
        if not get_annotations(labels).annotations:
            return
        reasons = self._count_reasons(labels)
        if SMALL_IMAGE_REASON in reasons and facts.config is not None:
            yield set_filter(facts.config, 'min_size', 1, 'Should the small images be trained on?')
        if NO_IMAGE in reasons:
            yield from rewrite(self, facts, 'Convert every image_id that is a string to a number.')
        if NO_AREA in reasons:
            yield from rewrite(self, facts, 'Where "area" is not above 0, write the area of the box.')
        if {CROWD_REASON, IGNORED_REASON} & set(reasons):
            question = 'Is each of these annotations one object, not a crowd?'
            yield from rewrite(self, facts, 'Train crowds as single objects.', question, no_crowds=True)

    def _count_reasons(self, labels: LabelFacts) -> Dict[str, int]:
        """Count the excluded annotations as {reason: count}, the most frequent reason first."""
        found = get_annotations(labels)
        if not found.annotations:
            return {'the file has no annotations': 0}
        known = {why: number for why, number in found.left_out.items() if why in REASONS}
        if found.small_images == found.images:
            known[SMALL_IMAGE_REASON] = found.annotations
        if found.crowds:
            known[CROWD_REASON] = found.crowds
        return dict(sorted(known.items(), key=lambda item: -item[1]))


#: Heads that build denoising queries from the targets of a batch.
DENOISING = ('detr', 'dino')
#: Heads of mmdet 3 for which it was measured that images without targets give losses with the same names that reach the
#: same parameters as other images. GridHead, CondInst, FoveaHead, CornerHead and YOLOFHead do not, and MaskPointHead
#: fails. RTMDetHead was not measured.
_HEAD_NAMES = """
ATSSHead AutoAssignHead CascadeRoIHead CenterNetUpdateHead ConditionalDETRHead DABDETRHead DDQDETRHead
DETRHead DeformableDETRHead DyHead FCNMaskHead FCOSHead FSAFHead FreeAnchorRetinaHead FusedSemanticHead
GARPNHead GFLHead HTCMaskHead HybridTaskCascadeRoIHead MaskIoUHead MaskScoringRoIHead NASFCOSHead
PISARetinaHead RPNHead RepPointsHead RetinaHead SABLRetinaHead SOLOHead Shared2FCBBoxHead StandardRoIHead
YOLOV3Head YOLOXHead
"""
SURVIVING_HEADS = frozenset(_HEAD_NAMES.split())
#: Share of images without a target above which such images are reported; in COCO it is 1 %.
MANY = 0.02


class ImagesWithoutTarget(AnnotationRule):
    code = 'MG146'
    aliases = ('MG221',)
    severity = 'warning'
    summary = 'Some images have no target: a rank that draws only such images has fewer losses than the others.'
    title_harmless = (
        'Images without a target are trained as background: every head returns the same set of losses for them as for '
        'other images.'
    )
    title_crowds = (
        'filter_empty_gt=True keeps images whose objects are all crowds, or are all dropped later; a rank that draws '
        'only such images has fewer losses than the others.'
    )
    why = (
        'Under DDP the ranks then reduce different sets of tensors: the run hangs, or crashes with a shape mismatch in '
        'ALLREDUCE. In DETR-like heads the denoising losses are missing on that rank. The labels are right.'
    )
    example = Example(
        wrong='if not len(targets): return {}',
        right="losses = align_losses(losses, model)  # or custom_hooks=[dict(type='RankGuardHook')]",
    )
    limits = (
        'Only heads of mmdet 3 are known: other heads are reported even if they return all losses. Training on one GPU '
        'is not affected.'
    )
    advice = (
        'Keep such images: the model learns the background from them. If a head skips a loss for a batch of such '
        'images, write `losses = mmguard.distributed.align_losses(losses, model)` in the loop (with mmengine: '
        'RankGuardHook in custom_hooks).'
    )

    def look(self, facts: Facts, labels: LabelFacts) -> Iterator[Finding]:
        found, config = get_annotations(labels), get_config(labels)
        is_filtered = _is_filtered(labels)
        # Images whose targets have faults of their own (MG109, MG149) are not empty.
        without = found.images_without_target - found.images_spoiled
        number = found.images_kept_empty if is_filtered else without
        part = compute_share(number, found.images)
        denoises = any(
            name in kind.lower() for kind in (config.framework, *config.heads.values()) for name in DENOISING
        )
        if not is_trained_on(labels) or not part or part == 1 or (part < MANY and not denoises):
            return
        evidence = Message(
            '{number:,} of {images:,} images ({part:.3g} %)', number=number, images=found.images, part=100 * part
        )
        if not _keeps_losses(labels):
            yield self.report_in(facts, LIKELY, evidence, title=self.title_crowds if is_filtered else '')
        elif not is_filtered:
            yield self.report_in(facts, POSSIBLE, evidence, title=self.title_harmless, severity=INFO)

    def offer(self, facts: Facts, labels: LabelFacts) -> Iterator[Edit]:
        if facts.config is None or _keeps_losses(labels):
            return
        question = 'Can images without an object be excluded from training?'
        if not _is_filtered(labels):
            yield set_filter(facts.config, 'filter_empty_gt', True, question)
        elif not labels.reasons:  # otherwise images may be empty because of invalid boxes
            yield from rewrite(self, facts, 'Leave these images out.', question, drop_empty=True)


def _keeps_losses(labels: LabelFacts) -> bool:
    """Return True if every head returns the same set of losses for images without targets as for other images."""
    heads = set(get_config(labels).heads.values())
    return get_config(labels).framework == 'mmdet' and bool(heads) and heads <= SURVIVING_HEADS


def _is_filtered(labels: LabelFacts) -> bool:
    """Return True if filter_empty_gt leaves out images without annotations."""
    kept = get_config(labels).filter_empty_gt
    return bool(kept) and all(kept.values())


def set_filter(config: ReadConfig, key: str, value: Any, question: str = '') -> Edit:
    """Return an edit that sets a key of ``filter_cfg`` in mmdet's training data sets."""
    places = tuple(
        (dataset.place('filter_cfg'), {**(dataset.config.get('filter_cfg') or {}), key: value})
        for dataset in find_datasets(config)
        if dataset.split == 'train'
    )
    return Edit(Message('Set {key} of the training data sets.', key=key), question, places)
