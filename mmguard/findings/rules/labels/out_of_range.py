"""Labels outside the class range: equal to num_classes, negative, in a few files only, or any others."""

from __future__ import annotations

from typing import Iterator

from mmguard.findings.edits import Edit
from mmguard.findings.facts import LabelFacts
from mmguard.findings.file_edits import drop_rows
from mmguard.findings.finding import LIKELY, POSSIBLE, PROVEN, Finding
from mmguard.findings.known_sets import COUNTED_WITHOUT_ZERO, VOID_EQUALS_NUM_CLASSES, reserves_zero
from mmguard.findings.map_edits import (
    convert_files,
    list_splits,
    list_stored_values,
    propose_more_classes,
    renumber,
    shift_down,
)
from mmguard.findings.rule import DataRule, Example, Facts
from mmguard.findings.usual_edits import set_num_classes
from mmguard.findings.views import (
    VOID,
    compute_label_share,
    compute_share,
    count_trained,
    get_annotations,
    get_maps,
    has_valid_counts,
    is_rare,
    join_items,
    rate_share,
    select_ids,
)
from mmguard.language import Message

#: Share of the pixels above which a value is not void.
MUCH_INVALID = 0.25


class OutOfRange(DataRule):
    """Labels outside the class range, without a known pattern."""

    code = 'MG107'
    kinds = ('pixels', 'instances')
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
        'Open one of these files. If the value is a slip, correct it there. If it is a class, add it to '
        'metainfo.classes and to num_classes of every head. If the files have another numbering, write a label_map '
        'from value to class for all of them: numbers that look valid mean other classes then.'
    )
    pytorch = (
        'Valid labels are 0..{last}. Find what the others mean: a slip, a class that is not counted (it needs an '
        'output of the model, and in YOLO a name in data.yaml), or another numbering (COCO-Stuff with its gaps, a '
        'labeling tool with classes of its own before yours), which needs a table from id to class.'
    )

    def look(self, facts: Facts, labels: LabelFacts) -> Iterator[Finding]:
        yield self.report_in(facts, POSSIBLE)

    def offer(self, facts: Facts, labels: LabelFacts) -> Iterator[Edit]:
        if labels.kind != 'pixels':
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


class NegativeLabels(DataRule):
    """Labels below 0."""

    code = 'MG105'
    kinds = ('pixels', 'instances')
    summary = 'Labels below 0.'
    title = 'Labels below 0: {values}.'
    why = 'A negative label is out of range in a softmax loss, and counts from the end where it indexes a table.'
    example = Example(
        wrong='label - 1 in a transform of your own, reduce_zero_label=True in the data set',
        right='reduce_zero_label=True, without the transform',
    )
    limits = 'It cannot tell an ignored value from a label that was shifted twice.'
    advice = (
        'Find what makes them: an ignored value of another framework, a label_map that leads below 0, or 1 subtracted '
        'from labels that count from 0. Keep only one shift. If -1 marks ignored pixels, map it: `label_map={{-1: '
        '{void}}}`.'
    )
    pytorch = (
        'Find what makes them. If 1 is subtracted from ids that count from 0, do not subtract it. If such pixels '
        'should be ignored, pass one ignore_index to loss, metric and transforms, and map {values} to it if another '
        'value is ignored already.'
    )
    advice_boxes = (
        'Find what makes them: a converter writes -1 for a name that it does not find (another spelling, a blank), and '
        '1 subtracted from ids that count from 0 makes the first class -1. Correct it, and convert the originals again.'
    )

    def look(self, facts: Facts, labels: LabelFacts) -> Iterator[Finding]:
        if all(value < 0 for value in labels.values):
            advice = self.advice_boxes if labels.kind == 'instances' else self.advise(facts)
            yield self.report_in(facts, PROVEN, advice=advice)


#: Share of the pixels below which 0 may be unlabeled.
CLASS_SHARE = 0.05
#: Share of the files above which the value is void; a forgotten last class (LIP has 19 and the background) is in fewer.
HALF = 0.5


class OneTooMany(DataRule):
    """The largest label equals the number of classes."""

    kinds = ('pixels', 'instances')
    code = 'MG102'
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
        'Look at {num_classes} in one of the files, and at the class list. If it is a class (often the background was '
        'not counted), list it and write `num_classes={more}` in every head. If it is void: '
        '`label_map={{{num_classes}: {void}}}` in GuardSegLabels, or in LabelGuardHook if it has guard=True. If the '
        'classes are 1..{num_classes}: `reduce_zero_label=True`, or subtract 1 from ids. If it is a slip, correct it.'
    )
    pytorch = (
        'Look at {num_classes} in the data. If it is a class (often the background was not counted), the model needs '
        '{more} outputs; one output with a sigmoid takes 0 and 1 (scan with `--num-classes 2`). If the ids count from '
        '1, subtract 1. If it is void, pass ignore_index={num_classes}, or map it to the label that is ignored '
        'already. If it is a slip, correct it; until then mmguard.nn or guard_targets leaves it out.'
    )

    def look(self, facts: Facts, labels: LabelFacts) -> Iterator[Finding]:
        if set(labels.values) == {labels.num_classes}:
            certainty = rate_share(compute_label_share(labels)) if labels.kind == 'instances' else PROVEN
            if certainty is not None:
                yield self.report_in(facts, certainty)

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


FEW_VALUES = 4
#: For few files: their minimum number, and the maximum share of files and elements with a slip.
SEVERAL_FILES, FEW_FILES, FEW_ELEMENTS = 10, 0.2, 0.03


class StrayValue(DataRule):
    """A value in only a few files."""

    code = 'MG127'
    kinds = ('pixels', 'instances')
    summary = 'Only a few files hold an invalid label: a slip of the annotator, not a class.'
    title = 'Only a few files hold {values}: a slip of the annotator, not a class.'
    why = 'One such label ends a stock training, at the iteration that happens to draw its file.'
    example = Example(
        wrong='num_classes=2, value 77 in 9 pixels of one file',
        right='the 9 pixels corrected; num_classes=2',
    )
    limits = 'A class that hardly any file shows looks the same.'
    advice = (
        'Correct the files (the scan lists them all). num_classes is right as it is. Until then leave these labels out '
        'with a guard (GuardSegLabels, GuardInstanceLabels). If another split holds the same number often, '
        'check if it is a class that the list lacks.'
    )
    pytorch = (
        'Correct these labels. The number of classes is right as it is; until then, mmguard.nn leaves such pixels out, '
        'and guard_targets such boxes.'
    )

    def look(self, facts: Facts, labels: LabelFacts) -> Iterator[Finding]:
        # The first value after the classes is often a forgotten class, but not if it has only a handful of pixels.
        is_next = set(labels.values) == {labels.num_classes}
        is_sure = is_next and is_rare(labels, files=0.01, elements=1e-4)
        if is_next and not is_sure and 'volume' in get_maps(labels).forms:
            return  # a tumor fills few voxels of few cases
        if self._is_rarer_than_classes(labels):
            yield self.report_in(facts, PROVEN)
        elif is_rare(labels) and len(labels.values) <= FEW_VALUES:
            yield self.report_in(facts, PROVEN if is_sure else LIKELY)

    def _is_rarer_than_classes(self, labels: LabelFacts) -> bool:
        """True if the first value after the classes is in fewer files than any class, and in only a few.

        A class missing in the list is drawn as often as the others; a listed value is not a slip.
        """
        beyond, count, of_pixels = labels.num_classes, sum(labels.values.values()), labels.kind == 'pixels'
        if set(labels.values) != {beyond} or beyond < 1 + of_pixels or len(labels.class_names) > beyond:
            return False
        holders = (get_maps(labels) if of_pixels else get_annotations(labels)).files_with_class
        files = {label: number for label, number in holders.items() if 0 <= label < beyond and number}
        # Boxes are also compared by number, because a file may contain many.
        rarest = min((count_trained(labels).get(label, 0) for label in files), default=0)
        few = compute_share(labels.offending_files, labels.files) <= FEW_FILES and labels.files >= SEVERAL_FILES
        small = compute_share(count, labels.total) <= FEW_ELEMENTS and (of_pixels or count < rarest)
        return few and small and min(files.values(), default=0) > labels.offending_files

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
