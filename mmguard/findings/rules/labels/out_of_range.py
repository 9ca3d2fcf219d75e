"""Labels outside the class range: equal to num_classes, negative, in a few files only, or any others."""

from __future__ import annotations

from typing import Iterator

from mmguard.facts.labels import LabelFacts
from mmguard.findings.edits import Edit
from mmguard.findings.file_edits import drop_rows, number_rows
from mmguard.findings.known_sets import COUNTED_WITHOUT_ZERO, VOID_EQUALS_NUM_CLASSES, reserves_zero
from mmguard.findings.map_edits import (
    convert_files,
    list_splits,
    list_stored_values,
    propose_more_classes,
    renumber,
    shift_down,
)
from mmguard.findings.patterns import OutsideRule
from mmguard.findings.rule import Example, Facts
from mmguard.findings.usual_edits import set_num_classes
from mmguard.findings.views import (
    VOID,
    compute_share,
    count_trained,
    get_maps,
    has_valid_counts,
    is_rare,
    join_items,
    select_ids,
)
from mmguard.language import Message

#: Share of the pixels above which a value is not void.
MUCH_INVALID = 0.25


class OutOfRange(OutsideRule):
    code = 'MG107'
    summary = 'Labels outside the class range.'
    title = 'Labels outside 0..{last}: {values}.'
    why = (
        'Losses index by label: an invalid one ends the run with a device-side assert, or, in focal losses without a '
        'range check, is trained as background.'
    )
    example = Example(
        wrong='head: num_classes=19; labels in the files: 0..18 and 33',
        right='33 corrected in the files, or mapped: label_map={33: 255}',
    )
    limits = 'It cannot tell a slip from a class that the config does not count: that is the question of its edits.'
    advice = (
        'Open one of these files: correct a slip there, or add a class to metainfo.classes and to num_classes of '
        'every head. If the files have another numbering, write a label_map from value to class for all of them.'
    )
    pytorch = (
        'Valid labels are 0..{last}: find whether the others are slips, a class that is not counted, or another '
        'numbering. A class needs an output of the model (in YOLO a name in data.yaml), a numbering a table from '
        'id to class.'
    )

    def offer(self, facts: Facts, labels: LabelFacts) -> Iterator[Edit]:
        if labels.kind != 'pixels':
            yield from number_rows(self, facts)
            yield from drop_rows(self, facts)
            return
        seen = sorted(labels.values)
        if self._continues(labels):
            number = max(list_stored_values(facts) - {VOID}, default=0) + 1
            counted = propose_more_classes(
                facts, number, Message('Are {first} to {last} classes, too?', first=seen[0], last=number - 1)
            )
            beyond = sorted({value for split in list_splits(facts) for value in split.values} - {VOID})
            named = len(labels.class_names) == labels.num_classes
            first = Message('0 to {last}', last=labels.last)
            question: str = Message('Do you want {first} only, and no others?', first=first)
            if named:
                wanted = join_items(labels.class_names)
                question = Message(
                    'Are {first} in the files {wanted}, in this order, and the others not wanted?',
                    first=first,
                    wanted=wanted,
                )
            others = renumber(facts, dict.fromkeys(beyond, labels.void), question)
            # With as many names as the head has classes, no further classes are wanted.
            yield from (*others, counted) if named else (counted, *others)
            if labels.num_classes == 2 and VOID not in list_stored_values(facts):
                question = 'Is every value above 0 the same class (numbers of objects, or of annotators)?'
                yield from convert_files(facts, 'Rewrite the files, every value above 0 as 1.', question, threshold=0)
        if compute_share(sum(labels.values.values()), sum(count_trained(labels).values())) <= MUCH_INVALID:
            question = Message('Does {seen} mean no class (void, or slips of an annotator)?', seen=join_items(seen))
            yield from renumber(facts, dict.fromkeys(seen, labels.void), question)

    def _continues(self, labels: LabelFacts) -> bool:
        """True if the labels continue after num_classes in many files: classes, not slips."""
        ids = select_ids(count_trained(labels))
        whole = has_valid_counts(labels) and ids == set(range(len(ids)))
        return whole and len(labels.values) > 1 and not is_rare(labels) and set(labels.values) <= ids


class NegativeLabels(OutsideRule):
    code = 'MG105'
    follows = ('MG107',)
    summary = 'Labels below 0.'
    title = 'Labels below 0: {values}.'
    why = 'A negative label is out of range in a softmax loss, and counts from the end where it indexes a table.'
    example = Example(
        wrong='label - 1 in a transform of your own, reduce_zero_label=True in the data set',
        right='reduce_zero_label=True, without the transform',
    )
    limits = 'It cannot tell an ignored value from a label that was shifted twice.'
    advice = (
        'Find what makes them: an ignored value of another framework, a label_map that leads below 0, or 1 '
        'subtracted from labels that count from 0. If -1 marks ignored pixels, map it: `label_map={{-1: {void}}}`.'
    )
    pytorch = (
        'If 1 is subtracted from ids that count from 0, do not subtract it. If such pixels should be ignored, pass '
        'one ignore_index to loss, metric and transforms, and map {values} to it.'
    )
    advice_boxes = (
        'A converter writes -1 for a name that it does not find (another spelling, a blank), and 1 subtracted from '
        'ids that count from 0 makes the first class -1. Correct it, and convert the originals again.'
    )

    def advise(self, facts: Facts) -> str:
        is_boxes = facts.labels is not None and facts.labels.kind == 'instances'
        return self.advice_boxes if is_boxes else super().advise(facts)


#: Share of the pixels below which 0 may be unlabeled.
CLASS_SHARE = 0.05
#: Share of the files above which the value is void; a forgotten last class (LIP has 19 and the background) is in fewer.
HALF = 0.5


class OneTooMany(OutsideRule):
    code = 'MG102'
    follows = ('MG107',)
    summary = 'The only invalid label equals num_classes.'
    title = 'The only invalid label equals num_classes={num_classes}; valid labels are 0..{last}.'
    why = (
        'A softmax loss fails at such a label (a device-side assert on a GPU); the heads of mmdet silently train it '
        'as background. Usual reasons: the background was not counted, void is not ignored, the class list is one '
        'short, or labels count from 1.'
    )
    example = Example(
        wrong='num_classes=11, labels 0..11',
        right='num_classes=12; or, if 11 is void, label_map={11: 255}',
    )
    limits = 'It cannot tell a class from void: that is the question of its edits.'
    advice = (
        'Look at {num_classes} in one of the files: a class (often the background) needs `num_classes={more}` in '
        'every head, void `label_map={{{num_classes}: {void}}}`. If the classes are 1..{num_classes}, write '
        '`reduce_zero_label=True`, or subtract 1 from ids.'
    )
    pytorch = (
        'Look at {num_classes} in the data: a class (often the background) needs {more} outputs, void '
        'ignore_index={num_classes}. If the ids count from 1, subtract 1; one output with a sigmoid takes 0 and 1 '
        '(scan with `--num-classes 2`).'
    )

    def offer(self, facts: Facts, labels: LabelFacts) -> Iterator[Edit]:
        beyond = labels.num_classes
        lacks = Message(
            'Is {beyond} a class that the list lacks (often the background was not counted)?', beyond=beyond
        )
        if len(labels.class_names) == beyond + 1:
            yield set_num_classes(facts, beyond + 1)
        elif labels.kind != 'pixels' or beyond == 1:
            yield propose_more_classes(facts, beyond + 1, lacks)
            yield from drop_rows(self, facts)
        else:
            yield from self._edit_pixels(facts, labels, propose_more_classes(facts, beyond + 1, lacks))

    def _edit_pixels(self, facts: Facts, labels: LabelFacts, counted: Edit) -> Iterator[Edit]:
        beyond, counts = labels.num_classes, count_trained(labels)
        known = reserves_zero(labels.class_names)
        zeros = compute_share(counts.get(0, 0), sum(counts.values()))
        # If 0 fills much of the files, it is unlabeled only in a known data set.
        is_void = Message('Is {beyond} your void (unlabeled) value?', beyond=beyond)
        ignored = list(renumber(facts, {beyond: labels.void}, is_void))
        # Hardly any other data set has exactly this number of classes if it is large.
        is_first = beyond in VOID_EQUALS_NUM_CLASSES[-2:] and not known
        if is_first:
            yield from ignored
        if known or 0 < zeros < CLASS_SHARE or beyond in COUNTED_WITHOUT_ZERO:
            question = '' if known else Message('Are the classes 1 to {beyond}, and is 0 unlabeled?', beyond=beyond)
            yield from shift_down(facts, question, (0,))
        if known:
            return
        # Void is in every file; a class is missing in some, unless all classes are in every file.
        files_with = get_maps(labels).files_with
        holders = compute_share(files_with.get(beyond, 0), labels.files)
        around = holders == 1 and any(files_with.get(value, 0) < labels.files for value in range(beyond))
        is_likely_void = around or (beyond in VOID_EQUALS_NUM_CLASSES and holders >= HALF)
        ignored = [] if is_first else ignored
        yield from (*ignored, counted) if is_likely_void else (counted, *ignored)


class StrayValue(OutsideRule):
    code = 'MG127'
    follows = ('MG102', 'MG107', 'MG116')
    summary = 'Only a few files hold an invalid label: a slip of the annotator, not a class.'
    title = 'Only a few files hold {values}: a slip of the annotator, not a class.'
    why = 'One such label ends a stock training, at the iteration that happens to draw its file.'
    example = Example(
        wrong='num_classes=2, value 77 in 9 pixels of one file',
        right='the 9 pixels corrected; num_classes=2',
    )
    limits = 'A class that hardly any file shows looks the same.'
    advice = (
        'Correct the files (the scan lists them all); num_classes is right as it is. Until then a guard leaves '
        'these labels out (GuardSegLabels, GuardInstanceLabels).'
    )
    pytorch = (
        'Correct these labels; the number of classes is right as it is. Until then, mmguard.nn leaves such pixels '
        'out, and guard_targets such boxes.'
    )

    def offer(self, facts: Facts, labels: LabelFacts) -> Iterator[Edit]:
        question = Message(
            'Is {values} a slip of the annotator (num_classes is right then)?', values=join_items(sorted(labels.values))
        )
        table = dict.fromkeys(labels.values, labels.void)
        is_map = labels.kind == 'pixels'
        ways = list(renumber(facts, table, question) if is_map else drop_rows(self, facts, question))
        yield from ways
        if ways and set(labels.values) == {labels.num_classes}:
            lacks = Message(
                'Is {num_classes} a class that the list lacks (few files show it)?', num_classes=labels.num_classes
            )
            yield propose_more_classes(facts, labels.num_classes + 1, lacks)
