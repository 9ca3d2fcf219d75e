"""Images without an object to train on."""

from __future__ import annotations

from typing import Dict, Iterator

from mmguard.facts.labels import LabelFacts
from mmguard.findings.edits import Edit
from mmguard.findings.file_edits import rewrite
from mmguard.findings.finding import INFO, LIKELY, POSSIBLE, PROVEN, Finding
from mmguard.findings.rule import AnnotationRule, Example, Facts
from mmguard.findings.usual_edits import set_filter
from mmguard.findings.views import compute_share, get_annotations, get_config, is_trained_on, join_items
from mmguard.language import Message
from mmguard.text import quantity

CROWD_REASON, IGNORED_REASON = 'iscrowd=1 (VOC: difficult)', 'ignore is set'
NO_IMAGE, NO_AREA = 'its image is not listed', 'area is 0'
SMALL_IMAGE_REASON = 'its image is smaller than min_size'
#: Reasons to leave an annotation out that this rule explains; what the class list leaves out has a rule of its own.
REASONS = {NO_IMAGE, NO_AREA, IGNORED_REASON, 'thinner than one pixel', 'no part inside the image'}


class NoUsableInstance(AnnotationRule):
    """Annotation files without any trainable object."""

    code = 'MG174'
    follows = ('MG146',)
    aliases = ('MG145', 'MG148')
    kinds = ('instances',)
    summary = 'No image has an object to train on.'
    title = 'No image has an object to train on: {reasons}.'
    why = (
        'Training fails with "need at least one array to concatenate", or its box losses are 0 from the first '
        'iteration.'
    )
    example = Example(wrong='"iscrowd": 1 in every annotation', right='"iscrowd": 0')
    limits = 'It knows what mmdet leaves out; your own data set class may leave out more.'
    advice = (
        'An annotation is trained on if "iscrowd" (VOC: difficult) and "ignore" are 0 or missing, "area" is above 0, '
        'image_id is the id of a listed image (1 is not "1"), and the box is in pixels, inside the image and at least '
        'one pixel wide. Without any annotation, name the file of the training, `ann_file=...`, not that of a test set.'
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
            yield from rewrite(self, facts, 'Write the areas of the boxes.')
        if {CROWD_REASON, IGNORED_REASON} & set(reasons):
            question = 'Is each of them one object, not a crowd?'
            yield from rewrite(self, facts, 'Train them as single objects.', question, no_crowds=True)

    def _count_reasons(self, labels: LabelFacts) -> Dict[str, int]:
        """Return reason -> annotations excluded for it, the most frequent first."""
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
#: Share of images without a target above which they are reported; COCO itself has 1 %.
MANY = 0.02


class ImagesWithoutTarget(AnnotationRule):
    """Images without objects, so that a rank may draw only such images."""

    code = 'MG146'
    aliases = ('MG221',)
    severity = 'warning'
    summary = 'Images have no target: a rank that draws only such images has fewer losses than the others.'
    title_harmless = 'Images without any target are trained as background; the heads here give all losses for them.'
    title_crowds = (
        'filter_empty_gt=True keeps images whose objects are all crowds, or are all dropped individually; a rank that '
        'draws only such images has fewer losses than the others.'
    )
    why = (
        'Under DDP the ranks then reduce different sets of tensors: the run hangs, or dies with a shape mismatch in '
        'ALLREDUCE. In DETR-like heads the denoising part is missing on that rank. The labels are right.'
    )
    example = Example(
        wrong='if not len(targets): return {}',
        right="losses = align_losses(losses, model)  # or custom_hooks=[dict(type='RankGuardHook')]",
    )
    limits = 'It cannot judge a head that it does not know. Training on one GPU is not affected.'
    advice = (
        'Keep such images: the model learns the background from them. If a loss is missing for a batch of them, '
        'write `losses = mmguard.distributed.align_losses(losses, model)` in the loop (with mmengine: '
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
        if not _survives(labels):
            yield self.report_in(facts, LIKELY, evidence, title=self.title_crowds if is_filtered else '')
        elif not is_filtered:
            yield self.report_in(facts, POSSIBLE, evidence, title=self.title_harmless, severity=INFO)

    def offer(self, facts: Facts, labels: LabelFacts) -> Iterator[Edit]:
        if facts.config is None or _survives(labels):
            return
        question = 'Can images without an object be excluded from training?'
        if not _is_filtered(labels):
            yield set_filter(facts.config, 'filter_empty_gt', True, question)
        elif not labels.reasons:  # otherwise they may be empty because of their boxes
            yield from rewrite(self, facts, 'Leave these images out.', question, drop_empty=True)


def _survives(labels: LabelFacts) -> bool:
    """Return True if all heads give the same losses for images without targets."""
    heads = set(get_config(labels).heads.values())
    return get_config(labels).framework == 'mmdet' and bool(heads) and heads <= SURVIVING_HEADS


def _is_filtered(labels: LabelFacts) -> bool:
    """Return True if images without annotations are left out."""
    kept = get_config(labels).filter_empty_gt
    return bool(kept) and all(kept.values())
