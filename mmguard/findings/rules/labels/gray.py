"""Label maps of gray levels: two, or one per class."""

from __future__ import annotations

from dataclasses import replace
from typing import Dict, Iterator, Sequence

from mmguard.facts.labels import LabelFacts
from mmguard.findings.edits import Edit
from mmguard.findings.finding import LIKELY, PROVEN, Finding
from mmguard.findings.map_edits import convert_files, list_stored_values, renumber
from mmguard.findings.rule import DataRule, Example, Facts
from mmguard.findings.usual_edits import combine_pair, reduce_zero_label
from mmguard.findings.views import (
    VOID,
    compute_share,
    count_stored,
    count_trained,
    get_config,
    get_maps,
    has_many_channels,
    has_num_classes,
    has_valid_counts,
    is_rare,
    join_items,
    rise_evenly,
    select_ids,
    subtracts_one,
)
from mmguard.language import Message, as_message, join

#: Share of 255 above which it is equally likely void.
HALF = 0.5
_SUBTRACTED_QUESTION = 'Is 255 the background, from which 1 was subtracted (0 - 1 is 255 in 8 bits)?'


class BinaryMask(DataRule):
    code = 'MG103'
    follows = ('MG104', 'MG106', 'MG107', 'MG116', 'MG125', 'MG135')
    needs = ()
    summary = 'These look like 0/255 masks: the foreground is stored as 255, not as class 1.'
    why = (
        'Where 255 is the ignored value nothing crashes, but the foreground is never trained on: IoU 0, Acc nan. '
        'Elsewhere it is a device-side assert.'
    )
    example = Example(wrong='mask: 0 and 255, num_classes=2', right='label_map={255: 1}')
    limits = (
        'The values show neither whether 255 is the object or void, nor how a loader without a config converts them.'
    )
    advice = (
        "If 255 is the object, save the masks with 0 and 1, or write `dict(type='GuardSegLabels', num_classes=2, "
        'label_map={{255: 1}})` directly after LoadAnnotations, and do not ignore 255. Where the code that loads '
        'them divides by 255, or compares with 0, nothing needs to change.'
    )
    pytorch = 'If 255 is the object: target = (target > 0).long(). If it is void: ignore_index=255.'

    def look(self, facts: Facts, labels: LabelFacts) -> Iterator[Finding]:
        # Already mapped: training sees the foreground as a class. Files of many channels must first be converted to
        # one (MG120), which no label_map does.
        is_mapped = 255 in get_config(labels).label_map or select_ids(count_trained(labels)) - {0}
        if is_mapped or has_many_channels(labels):
            return
        counts, raw = count_stored(labels), get_maps(labels).raw
        known = raw or (has_valid_counts(labels) and not subtracts_one(labels))
        if known and set(counts) == {0, VOID}:
            is_mask = not may_be_subtracted(labels)
        else:  # in training only the invalid values are known
            is_mask = not known and set(labels.values) == {VOID} and labels.num_classes <= 2
        if not is_mask:
            return
        values, evidence = {VOID: counts.get(VOID, 0)}, None
        if has_valid_counts(labels) or raw:
            ignored = labels.ignore_index == VOID
            evidence = Message(
                'the files hold 0 and 255 only, 255 in {share:.3g} % of the pixels{swallowed}',
                share=100 * compute_share(values[VOID], sum(counts.values())),
                swallowed=Message('; 255 is ignored, and with it the whole foreground') if ignored else '',
            )
        yield self.report_in(facts, PROVEN, evidence, values=values)

    def offer(self, facts: Facts, labels: LabelFacts) -> Iterator[Edit]:
        yield from map_object(facts, labels)


def map_object(facts: Facts, labels: LabelFacts) -> Iterator[Edit]:
    """Yield edits for masks of 0 and 255, one value being the object."""
    counts = count_stored(labels)
    two = facts if has_num_classes(labels) else facts._replace(labels=replace(labels, num_classes=2))
    # Unlabeled pixels are also 255; if there are many, or other classes are known, only a look decides.
    few = labels.num_classes == 2 and compute_share(counts.get(VOID, 0), sum(counts.values())) < HALF
    clear = few and (facts.config is not None or subtracts_one(labels))  # the loader is known
    ways = [({0: 1, VOID: 0}, _SUBTRACTED_QUESTION)] * may_be_subtracted(labels)
    for table, question in [*ways, ({VOID: 1}, '' if clear else 'Is 255 the object in these files?')]:
        for edit in renumber(two, table, question):
            if subtracts_one(labels):
                edit = combine_pair(
                    edit,
                    reduce_zero_label(facts, False),
                    join(' ', (as_message(edit.title), Message('Unset reduce_zero_label.'))),
                )
            yield replace(edit, notes=(*edit.notes, 'Do not ignore 255.'))


def may_be_subtracted(labels: LabelFacts) -> bool:
    """True if files hold only 0 and 255, and 255 fills most: either 0 - 1, or an object."""
    counts = count_stored(labels) if labels.maps is not None else {}
    much = compute_share(counts.get(VOID, 0), sum(counts.values())) >= HALF
    return set(counts) == {0, VOID} and labels.num_classes <= 2 and much and not subtracts_one(labels)


#: Number of distinct invalid values above which they are neither slips nor forgotten classes.
MANY_VALUES = 16
#: More classes than any 8-bit data set has.
MOST_IDS = 190
#: Masks drawn in gray levels have brighter values somewhere.
BRIGHT = 128


class GrayLevels(DataRule):
    code = 'MG106'
    follows = ('MG107',)
    needs = ()
    summary = 'Many different values: colors, gray levels or interpolated labels.'
    title = 'Many different values ({values}, ...): colors, gray levels or interpolated labels.'
    why = 'The files are pictures of the labels, not labels: a value says how bright a class is drawn, not which one.'
    example = Example(wrong="label.save('1.jpg')", right="label.save('1.png')  # one channel, class indices")
    limits = 'Many class ids with gaps look the same, unless they are those of a known data set.'
    advice = (
        'Look at one of the files, and find where it was exported or resized. Save class indices as single-channel '
        'PNG (never JPEG), and resize them only with nearest-neighbor interpolation; decode colors to indices, and '
        'do not read palette PNGs as colors. Two classes in black and white: '
        '`Image.fromarray((mask > 127).astype(np.uint8)).save(path)`.'
    )
    pytorch = (
        'Load the masks as class indices: single-channel PNG, never JPEG, resized only with nearest-neighbor '
        'interpolation; colors need a table to classes. Two classes in black and white: target = (target > 127).long().'
    )

    def look(self, facts: Facts, labels: LabelFacts) -> Iterator[Finding]:
        counts = count_trained(labels)
        values = labels.values or counts
        evidence = labels.evidence or Message('{number} different values', number=len(counts))
        if len(labels.values) > MANY_VALUES:
            is_gray = not self._are_ids(labels)
        else:
            is_gray = not has_num_classes(labels) and len(counts) > MOST_IDS
        if is_gray:
            words = {'values': ', '.join(map(str, sorted(values)[:8]))}
            yield self.report_in(facts, LIKELY, evidence, words, values=values)

    def offer(self, facts: Facts, labels: LabelFacts) -> Iterator[Edit]:
        if labels.num_classes == 2:
            question = 'Are these masks of two classes, drawn in black and white?'
            yield from convert_files(facts, 'Rewrite the files with a threshold.', question, threshold=127)

    def _are_ids(self, labels: LabelFacts) -> bool:
        """Return True if the values, except void, are ids 0..N without gaps: more classes than the head has."""
        ids = select_ids(count_trained(labels))
        return (
            has_valid_counts(labels) and len(ids) < BRIGHT and ids == set(range(len(ids))) and set(labels.values) <= ids
        )


#: Minimum distance between gray levels of classes; class ids are closer.
STEP = 8
MAX_LEVELS = 24


class ScaledGray(DataRule):
    code = 'MG125'
    follows = ('MG106', 'MG107', 'MG116')
    needs = ()
    summary = 'The labels are gray levels of a picture, one per class.'
    title = 'The labels are gray levels of a picture, one per class: {levels}.'
    why = 'A label is used as an index: 128 is not "class 1, drawn in gray", but class 128.'
    example = Example(wrong='files with 0, 128 and 254, num_classes=3', right='label_map={128: 1, 254: 2}')
    limits = (
        'It cannot know which class a level is; if the steps are equal, its edit asks if they ascend with the list.'
    )
    advice = (
        'Look up which class each gray level is, and write one table from level to class for all splits, directly '
        "after LoadAnnotations (before anything pads with 255): `dict(type='GuardSegLabels', "
        'num_classes={num_classes}, label_map=...)`. Compare it with one image. Or save the files with 0..{last}.'
    )
    pytorch = (
        'Map each gray level to its class, with one table for all files: no batch holds every level. `mmguard scan '
        'FOLDER --num-classes {num_classes}` counts the levels of all.'
    )

    def look(self, facts: Facts, labels: LabelFacts) -> Iterator[Finding]:
        stored, trained = count_stored(labels), count_trained(labels)
        is_known = has_valid_counts(labels) or get_maps(labels).raw
        is_seen = labels.values or (not has_num_classes(labels) and set(trained) == set(stored))
        levels = sorted(value for value in (stored or trained) if value >= 0)
        if not is_known or not is_seen or not 2 <= len(levels) <= min(max(labels.num_classes, 2) + 1, MAX_LEVELS):
            return
        steps = [high - low for low, high in zip(levels, levels[1:])]
        if levels[0] == 0 and 64 <= levels[-1] <= VOID and min(steps) >= STEP and not is_rare(labels):
            classes = labels.num_classes if has_num_classes(labels) else len(levels)
            words = {'num_classes': classes, 'last': classes - 1, 'levels': join_items(levels)}
            evidence = labels.evidence or Message('only the values {levels} occur', levels=join_items(levels))
            yield self.report_in(facts, PROVEN, evidence, words)

    def offer(self, facts: Facts, labels: LabelFacts) -> Iterator[Edit]:
        levels = sorted(value for value in list_stored_values(facts) if value >= 0)
        table = _build_table(levels, labels.num_classes if has_num_classes(labels) else len(levels))
        clear = len(levels) == labels.num_classes == 2
        question = (
            '' if clear else Message('Are {levels} the classes, in the order of your list?', levels=join_items(levels))
        )
        moved = {level: label for level, label in table.items() if level != label}
        if moved:
            yield from renumber(facts, moved, question)


def _build_table(levels: Sequence[int], classes: int) -> Dict[int, int]:
    """Map levels to classes; nothing if the levels are irregular, as the gray levels of colors are."""
    if len(levels) == classes and rise_evenly(levels):
        return {level: label for label, level in enumerate(levels)}
    if len(levels) == classes + 1 and levels[-1] == VOID and rise_evenly(levels[:-1]):
        return {level: label for label, level in enumerate(levels[:-1])}
    step = min((high - low for low, high in zip(levels, levels[1:])), default=0)
    if step and len(levels) > 2 and all(level % step == 0 for level in levels) and levels[-1] // step < classes:
        return {level: level // step for level in levels}  # skip the level of a class that no file contains
    return {}
