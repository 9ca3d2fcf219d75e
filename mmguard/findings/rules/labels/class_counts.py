"""Classes that the head lacks, or that are never trained or never occur."""

from __future__ import annotations

from dataclasses import replace
from typing import Iterator, List

from mmguard.facts.labels import LabelFacts
from mmguard.findings.edits import Edit
from mmguard.findings.finding import INFO, LIKELY, POSSIBLE, PROVEN, Finding
from mmguard.findings.patterns import OutsideRule
from mmguard.findings.rule import DataRule, Example, Facts
from mmguard.findings.usual_edits import set_num_classes
from mmguard.findings.views import (
    count_stored,
    count_trained,
    get_annotations,
    get_maps,
    has_config,
    is_trained_on,
    join_items,
    select_ids,
)
from mmguard.labels.numbering import POSITIONS, get_framework_titles
from mmguard.language import Message
from mmguard.text import quantity


class OptionContradicted(DataRule):
    """``--num-classes`` next to a file that declares another number, which was used."""

    code = 'MG384'
    kinds = ('voxels',)
    needs = ()
    shows_values = False
    summary = '--num-classes contradicts the number of classes that the data set declares.'
    title = '--num-classes {said} contradicts dataset.json, which declares {num_classes} classes: these were used.'
    why = 'A model with the number of the option has no output for the other labels, or outputs without a label.'
    example = Example(wrong='--num-classes 2, "labels": {"background": 0, "liver": 1, "tumor": 2}', right='3 classes')
    limits = 'It cannot tell which of the two numbers is right.'
    advice = 'Scan without --num-classes if dataset.json is right. If the option is, correct "labels" in dataset.json.'

    def look(self, facts: Facts, labels: LabelFacts) -> Iterator[Finding]:
        said = facts.options.get('num_classes')
        if said not in (None, labels.num_classes):
            yield self.report_in(facts, PROVEN, f'--num-classes {said}', {'said': said}, files=['dataset.json'])


class MoreClassesThanHead(OutsideRule):
    """More class names in a data set than classes in the head."""

    code = 'MG108'
    follows = ('MG102', 'MG107')
    summary = 'The data set lists more classes than the head has.'
    title = 'The data set lists {classes} classes, but the head has {num_classes}. Too many for it: {extra}.'
    why = (
        'Data sets number the names in their class list. In mmdet the first label that the head does not know is '
        'trained as background, silently; in mmseg it ends the run.'
    )
    example = Example(
        wrong="num_classes=2 in the head, metainfo=dict(classes=('cat', 'dog', 'cow')) in the data set",
        right='num_classes=3 in the head',
    )
    limits = 'Whether the class list or num_classes is right is unknown, and so is whether label maps follow the list.'
    advice = (
        'If all {classes} should be learned, write `num_classes={classes}` wherever the model counts them. If not, '
        "list only the model's classes, in its order (`metainfo=dict(classes=(...))`; where folders are classes, "
        'move the others out).'
    )

    def offer(self, facts: Facts, labels: LabelFacts) -> Iterator[Edit]:
        listed = len(labels.class_names)
        if labels.annotations is not None and labels.annotations.labelled_by == 'unknown':
            question: str = Message(
                'Does your training code renumber the categories ({frameworks})?',
                frameworks=get_framework_titles(POSITIONS),
            )
            edit = set_num_classes(facts, listed, question)
            yield replace(edit, options=(*edit.options, ('labels', POSITIONS)))
            return
        sure = labels.kind == 'instances' or max(labels.values) == listed - 1
        yield set_num_classes(facts, listed, '' if sure else 'Are the files numbered by this list?')


#: Minimum number of files; a single one may well contain only one class.
ENOUGH_FILES = 5


class OnlyOneClass(DataRule):
    """A single label for all valid pixels, or classes without any object."""

    code = 'MG135'
    aliases = ('MG194',)
    shows_values = False
    kinds = ('pixels', 'instances', 'voxels')
    severity = 'warning'
    needs = ('histogram',)
    summary = 'Only one class occurs in all files, or classes of the list never do.'
    title = 'Only 1 of {num_classes} classes occurs in the files: {only}.'
    title_never = 'Classes of the list never occur in the files: {never}; {missing} of {num_classes}.'
    why = 'The loss falls to 0 and nothing is learned. Usually the loader, or a label_map, turned many values into one.'
    example = Example(
        wrong='ToTensor() on a mask: k / 255 becomes 0',
        right='torch.as_tensor(np.array(mask), dtype=torch.int64)',
    )
    limits = 'It also reports a set that lacks some of the listed classes on purpose.'
    advice = (
        'Compare the count of each class with that in the source of the labels, and after each step of the pipeline, '
        '`mmguard trace CONFIG`: ToTensor on a mask, 16 bits read as 8, a foreground stored as the ignored value, or '
        'files that were not copied lose classes. A class that really has no label cannot be learned.'
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
    """List the named classes without objects in training, and those that no volume contains."""
    if labels.volumes is not None:
        return labels.volumes.never
    names = labels.class_names
    if labels.kind == 'pixels' or not names or len(names) != labels.num_classes or not is_trained_on(labels):
        return []
    return [] if labels.values else sorted(set(range(len(names))) - set(count_trained(labels)))


#: Numbers of outputs that frameworks have by default.
DEFAULTS = (20, 21, 80, 81, 90, 91, 365, 1203)
#: Minimum number of outputs beyond the labels: one is the background or "no object".
ENOUGH, HALF = 2, 0.5


class OutputsNeverTrained(DataRule):
    """A model with many more outputs than the data have categories."""

    code = 'MG161'
    severity = 'warning'
    kinds = ('instances',)
    needs = ('annotations', 'histogram')
    summary = 'The model has many more outputs than the file has categories.'
    title = 'The file has {categories}, but the model {num_classes} outputs: {more} of them are never trained.'
    why = (
        'num_classes was left at what the framework, or the checkpoint, has. Nothing crashes; a classification loss '
        'over so many empty outputs learns badly, and detections carry names of another data set.'
    )
    example = Example(
        wrong='MODEL.ROI_HEADS.NUM_CLASSES left at 80, three categories',
        right='MODEL.ROI_HEADS.NUM_CLASSES = 3',
    )
    limits = 'Other files of the same training may hold the other categories: it sees the ones that it is given.'
    advice = (
        'Count the categories of all files of the training together ({needed} outputs for this file), and write that '
        'number where the model reads it: num_classes, in detectron2 MODEL.RETINANET.NUM_CLASSES for RetinaNet and '
        'MODEL.ROI_HEADS.NUM_CLASSES for R-CNN. A checkpoint may bring its own.'
    )

    def look(self, facts: Facts, labels: LabelFacts) -> Iterator[Finding]:
        found, needed = get_annotations(labels), self._count_needed(labels)
        if found.names_from != 'categories' or found.classes_counted or has_config(labels) or not found.categories:
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
        needed = self._count_needed(labels)
        yield Edit(
            'Set num_classes of the model.',
            'Are these all categories of the training?',
            options=(('num_classes', needed),),
            lines=(f'num_classes={needed}',),
        )

    def _count_needed(self, labels: LabelFacts) -> int:
        found = get_annotations(labels)
        if found.labelled_by == 'category id':
            return max(found.categories, default=0) + 1 - labels.coco.spare
        return len(labels.class_names or found.categories)
