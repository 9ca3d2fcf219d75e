"""Rules about labels outside the class range, with one rule for each possible cause."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Dict, Iterator, List, Sequence

from mmguard.facts.labels import LabelFacts
from mmguard.findings.config_edits import set_num_classes
from mmguard.findings.edits import Edit
from mmguard.findings.file_edits import (
    convert_files,
    drop_rows,
    list_splits,
    list_stored_values,
    number_rows,
    propose_more_classes,
    renumber,
    shift_down,
)
from mmguard.findings.finding import LIKELY, POSSIBLE, PROVEN, Finding
from mmguard.findings.rule import DataRule, Example, Facts
from mmguard.findings.views import (
    VOID,
    as_map,
    compute_label_share,
    compute_share,
    count_trained,
    get_annotations,
    get_maps,
    is_rare,
    join_items,
    rate_share,
    select_ids,
)
from mmguard.labels.numbering import POSITIONS, get_framework_titles
from mmguard.language import Message

#: Numbers of classes of data sets in which 0 is not a class (Pascal Context).
COUNTED_WITHOUT_ZERO = (59,)

#: Numbers of classes of CamVid, Cityscapes and Mapillary (1.2, 2.0), whose void (unlabeled) label is this number.
VOID_EQUALS_NUM_CLASSES = (11, 19, 65, 123)

#: First classes of data sets whose files keep 0 for "no class": ADE20K, LoveDA, Potsdam, Vaihingen.
_FROM_ONE = (
    ('wall', 'building', 'sky'),
    ('background', 'building', 'road', 'water', 'barren'),
    ('impervious_surface', 'building', 'low_vegetation'),
)

#: Maximum number of distinct invalid values that may be annotation mistakes.
FEW_VALUES = 4
#: Minimum number of files, and maximum shares of the files and of the elements with an annotation mistake.
SEVERAL_FILES, FEW_FILES, FEW_ELEMENTS = 10, 0.2, 0.03
#: Lowest id that is too high for a numbering with gaps.
MOST_IDS = 1000


class OutsideRule(DataRule):
    """Base class of rules that each detect one pattern of labels outside the class range."""

    kinds = ('pixels', 'instances')

    def look(self, facts: Facts, labels: LabelFacts) -> Iterator[Finding]:
        certainty = read_pattern(labels).get(self.code)
        if certainty is not None:
            ids = list_ids(labels) or [0]
            words: Dict[str, Any] = {'ids': join_items(ids), 'number': len(ids), 'least': ids[0], 'most': ids[-1]}
            words['enough'] = ids[-1] + labels.num_classes - labels.last
            words['pairs'] = as_map({value: label for label, value in enumerate(ids) if value != label}, 8)
            yield self.report_in(facts, certainty, words=words)


def read_pattern(labels: LabelFacts) -> Dict[str, str]:
    """Return {code: certainty} of the rules that may explain labels outside the class range, as MG107 always may."""
    values, classes, listed = set(labels.values), labels.num_classes, len(labels.class_names)
    found: Dict[str, str] = {}
    if counts_from_one(labels):
        found['MG115'] = PROVEN
    if not values:
        return found
    if classes <= min(values) and max(values) < listed:
        # A list of names does not prove that the files use its numbering.
        found['MG108'] = PROVEN if labels.kind == 'instances' or max(values) == listed - 1 else LIKELY
    # The first value after the classes is often a forgotten class, but not if it has only a handful of pixels.
    is_sure = values == {classes} and is_rare(labels, files=0.01, elements=1e-4)
    # A tumor fills few voxels of few cases.
    if is_sure or values != {classes} or 'volume' not in get_maps(labels).forms:
        if is_sure or _is_rarer_than_classes(labels):
            found['MG127'] = PROVEN
        elif is_rare(labels) and len(values) <= FEW_VALUES:
            found['MG127'] = LIKELY
    if _has_gaps(labels):
        # Not proven in three cases. The last id may be the void of a known set, and the gap a class without files; a
        # rare last id may be a mistake, and the gap the last class; ids far apart may not be a numbering at all.
        ids = list_ids(labels)
        is_void_behind = ids[-1] == classes and classes in VOID_EQUALS_NUM_CLASSES
        found['MG116'] = LIKELY if is_void_behind or is_rare(labels) or are_far(ids) else PROVEN
    if values == {classes}:
        certainty = rate_share(compute_label_share(labels)) if labels.kind == 'instances' else PROVEN
        found.update({'MG102': certainty} if certainty is not None else {})
    if max(values) < 0:
        found['MG105'] = PROVEN
    return {**found, 'MG107': POSSIBLE}


def list_ids(labels: LabelFacts) -> List[int]:
    """Return the labels in ascending order, without negative labels, 255 and the ignored label."""
    return sorted(select_ids(count_trained(labels)) - {labels.ignore_index})


def are_far(ids: Sequence[int]) -> bool:
    """Return True if ids are too far apart for a numbering with gaps."""
    return ids[-1] > 4 * len(ids) + 8


def counts_from_one(labels: LabelFacts) -> bool:
    """Return True if labels seem to count from 1: 0 is missing, and the highest is 1 or 2 above the last class."""
    ids, last = select_ids(count_trained(labels)) if labels.histogram else set(), labels.last
    if 0 in ids or 1 not in ids or any(value < 0 for value in labels.values):
        return False
    return last < max(ids) <= last + 2 and len(ids) >= 0.5 * max(ids)


def _has_gaps(labels: LabelFacts) -> bool:
    """Return True if there are as many ids as classes, but the highest is out of range."""
    ids = list_ids(labels)
    if not labels.histogram or len(ids) < 2 or min(labels.values) < 0 or ids[-1] >= MOST_IDS:
        return False
    ignored = labels.ignore_index is not None and labels.histogram.get(labels.ignore_index, 0) > 0
    span = ids[-1] - ids[0] + 1
    if ignored and len(ids) < len({*ids, labels.ignore_index} & set(range(ids[0], ids[-1] + 1))) == span:
        return False  # the ignored label fills the gap
    return len(ids) == labels.num_classes and ids[0] <= 1 and ids[-1] >= len(ids) + (ids[0] == 1)


def _is_rarer_than_classes(labels: LabelFacts) -> bool:
    """Return True if the label ``num_classes`` occurs in fewer files than any class, and in few files.

    A class that the list lacks would be drawn as often as the others; a value that the list names is not a mistake.
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


#: Share of the pixels above which a value does not mean void (unlabeled).
MUCH_INVALID = 0.25


class OutOfRange(OutsideRule):
    code = 'MG107'
    summary = 'Labels are outside the class range.'
    title = 'Labels outside 0..{last}: {values}.'
    why = (
        'Losses index by label: an invalid label ends the run with a device-side assert, or, in focal losses without a '
        'range check, is trained as background.'
    )
    example = Example(
        wrong='head: num_classes=19; labels in the files: 0..18 and 33',
        right='33 corrected in the files, or mapped: label_map={33: 255}',
    )
    limits = 'Cannot tell an annotation mistake from a class that is not counted: each edit asks you which it is.'
    advice = (
        'Open one of these files: correct the annotation mistake, or add the missing class to metainfo.classes and to '
        'num_classes of every head. If the files have another numbering, write one label_map from value to class.'
    )
    pytorch = (
        'Valid labels are 0..{last}; others are annotation mistakes, an uncounted class, or ids of another numbering. '
        'A class needs a model output (in YOLO a name in data.yaml); other ids need a table from id to class.'
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
            question: str = Message('Should only the classes {first} be trained?', first=first)
            if named:
                wanted = join_items(labels.class_names)
                question = Message(
                    'Are the labels {first} the classes {wanted}, in this order, and should higher values be ignored?',
                    first=first,
                    wanted=wanted,
                )
            others = renumber(facts, dict.fromkeys(beyond, labels.void), question)
            # With as many names as the head has classes, no further classes are wanted.
            yield from (*others, counted) if named else (counted, *others)
            if labels.num_classes == 2 and VOID not in list_stored_values(facts):
                question = 'Do all values above 0 mean the same class (they only number objects or annotators)?'
                yield from convert_files(facts, 'Replace every value above 0 in the files by 1.', question, threshold=0)
        if compute_share(sum(labels.values.values()), sum(count_trained(labels).values())) <= MUCH_INVALID:
            question = Message('Is {seen} void (unlabeled) or a mistake, and not a class?', seen=join_items(seen))
            yield from renumber(facts, dict.fromkeys(seen, labels.void), question)

    def _continues(self, labels: LabelFacts) -> bool:
        """True if the labels continue after num_classes in many files, so they are classes, not annotation mistakes."""
        ids = select_ids(count_trained(labels))
        whole = bool(labels.histogram) and ids == set(range(len(ids)))
        return whole and len(labels.values) > 1 and not is_rare(labels) and set(labels.values) <= ids


class NegativeLabels(OutsideRule):
    code = 'MG105'
    follows = ('MG107',)
    summary = 'Labels below 0.'
    title = 'Labels below 0: {values}.'
    why = 'A negative label is out of range in a softmax loss; as an index of a table, it counts from the end.'
    example = Example(
        wrong='label - 1 in a transform of your own, reduce_zero_label=True in the data set',
        right='reduce_zero_label=True, without the transform',
    )
    limits = 'Cannot tell an ignored value from a label from which 1 was subtracted twice.'
    advice = (
        'Find the cause: an ignored value of another framework, a label_map to a negative label, or 1 subtracted from '
        'labels that count from 0. If -1 marks ignored pixels, map it: `label_map={{-1: {void}}}`.'
    )
    pytorch = (
        'If 1 is subtracted from ids that count from 0, do not subtract it. If pixels with negative labels should be '
        'ignored, pass one ignore_index to loss, metric and transforms, and map {values} to it.'
    )
    advice_boxes = (
        'A converter writes -1 for a name that it does not find (another spelling, a blank), or subtracts 1 from ids '
        'that count from 0. Correct the converter, and convert the originals again.'
    )

    def advise(self, facts: Facts) -> str:
        is_boxes = facts.labels is not None and facts.labels.kind == 'instances'
        return self.advice_boxes if is_boxes else super().advise(facts)


#: Share of the pixels below which 0 may be unlabeled.
CLASS_SHARE = 0.05
#: Minimum share of the files with a void value; a forgotten last class (LIP has 19 and the background) is in fewer.
HALF = 0.5


class OneTooMany(OutsideRule):
    code = 'MG102'
    follows = ('MG107',)
    summary = 'The only invalid label equals num_classes.'
    title = 'The only invalid label equals num_classes={num_classes}; valid labels are 0..{last}.'
    why = (
        'A softmax loss fails at such a label (a device-side assert on a GPU); the heads of mmdet silently train it as '
        'background. Usual reasons: the background was not counted, void (unlabeled) is not ignored, the class list '
        'lacks one class, or labels count from 1.'
    )
    example = Example(
        wrong='num_classes=11, labels 0..11',
        right='num_classes=12; or, if 11 is void, label_map={11: 255}',
    )
    limits = 'Cannot tell a class from void (unlabeled): each edit asks you which it is.'
    advice = (
        'Look at label {num_classes} in one of the files: a class (often the background) needs `num_classes={more}` '
        'in every head, void (unlabeled) needs `label_map={{{num_classes}: {void}}}`. If the classes are '
        '1..{num_classes}, write `reduce_zero_label=True`, or subtract 1 from category ids.'
    )
    pytorch = (
        'Look at label {num_classes} in the data: a class (often the background) needs {more} outputs, void '
        '(unlabeled) needs ignore_index={num_classes}. If the ids count from 1, subtract 1; one output with a sigmoid '
        'takes 0 and 1 (scan with `--num-classes 2`).'
    )

    def offer(self, facts: Facts, labels: LabelFacts) -> Iterator[Edit]:
        beyond = labels.num_classes
        lacks = Message('Is {beyond} a class that the class list lacks (often the background)?', beyond=beyond)
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
    summary = 'Only a few files contain an invalid label: an annotation mistake, not a class.'
    title = 'Only a few files contain {values}: an annotation mistake, not a class.'
    why = 'Without a guard, one such label ends the training when its file is loaded.'
    example = Example(
        wrong='num_classes=2, value 77 in 9 pixels of one file',
        right='the 9 pixels corrected; num_classes=2',
    )
    limits = 'A class that occurs in very few files looks like a mistake.'
    advice = (
        'Correct the files (the scan lists all of them); num_classes is correct. Until then, exclude these labels with '
        'GuardSegLabels or GuardInstanceLabels.'
    )
    pytorch = (
        'Correct these labels; the number of classes is correct. Until then, exclude such pixels with mmguard.nn, and '
        'such boxes with guard_targets.'
    )

    def offer(self, facts: Facts, labels: LabelFacts) -> Iterator[Edit]:
        question = Message(
            'Is {values} an annotation mistake (then num_classes is right)?', values=join_items(sorted(labels.values))
        )
        table = dict.fromkeys(labels.values, labels.void)
        is_map = labels.kind == 'pixels'
        ways = list(renumber(facts, table, question) if is_map else drop_rows(self, facts, question))
        yield from ways
        if ways and set(labels.values) == {labels.num_classes}:
            lacks = Message('Is {num_classes} a rare class that the class list lacks?', num_classes=labels.num_classes)
            yield propose_more_classes(facts, labels.num_classes + 1, lacks)


class MoreClassesThanHead(OutsideRule):
    code = 'MG108'
    follows = ('MG102', 'MG107')
    summary = 'The data set lists more classes than the head has.'
    title = 'The data set lists {classes} classes, but the head has {num_classes} and lacks {extra}.'
    why = (
        'Labels are positions in the class list of the data set. In mmdet the first label that the head lacks is '
        'silently trained as background; in mmseg it ends the run.'
    )
    example = Example(
        wrong="num_classes=2 in the head, metainfo=dict(classes=('cat', 'dog', 'cow')) in the data set",
        right='num_classes=3 in the head',
    )
    limits = 'Cannot tell whether the class list or num_classes is right, or whether label maps follow the class list.'
    advice = (
        'If all {classes} should be learned, write `num_classes={classes}` wherever the model counts its classes. If '
        "not, list only the model's classes, in its order (`metainfo=dict(classes=(...))`; if each folder is a class, "
        'move the others out).'
    )

    def offer(self, facts: Facts, labels: LabelFacts) -> Iterator[Edit]:
        listed = len(labels.class_names)
        if labels.annotations is not None and labels.annotations.labelled_by == 'unknown':
            question: str = Message(
                'Does your training code renumber the categories, as in {frameworks}?',
                frameworks=get_framework_titles(POSITIONS),
            )
            edit = set_num_classes(facts, listed, question)
            yield replace(edit, options={**edit.options, 'labels': POSITIONS})
            return
        sure = labels.kind == 'instances' or max(labels.values) == listed - 1
        yield set_num_classes(facts, listed, '' if sure else 'Are the files numbered by this class list?')


def reserves_zero(names: Sequence[str]) -> bool:
    """Return True if a class list belongs to a data set whose files use 0 for "no class" and 1..N for classes.

    Example:
        >>> reserves_zero(['wall', 'building', 'sky', 'floor']), reserves_zero(['cat', 'dog'])
        (True, False)
    """
    return any(tuple(names[: len(first)]) == first for first in _FROM_ONE)
