"""Rules about label maps that contain gray levels: 0 and 255, one level per class, or levels made by compression."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Dict, Iterator, Optional, Sequence

from mmguard.facts.labels import LabelFacts
from mmguard.findings.config_edits import combine_pair, reduce_zero_label, state_num_classes
from mmguard.findings.edits import Edit
from mmguard.findings.file_edits import convert_files, list_stored_values, renumber
from mmguard.findings.finding import LIKELY, PROVEN, Finding
from mmguard.findings.rule import DataRule, Example, Facts
from mmguard.findings.views import (
    VOID,
    compute_share,
    count_stored,
    count_trained,
    get_config,
    get_maps,
    has_many_channels,
    has_num_classes,
    is_rare,
    join_items,
    rise_evenly,
    select_ids,
    subtracts_one,
)
from mmguard.language import Message, as_message, join

#: Minimum share of pixels with 255 for which 255 may also mean void (unlabeled).
HALF = 0.5
_SUBTRACTED_QUESTION = 'Is 255 the background, from which 1 was subtracted (0 - 1 is 255 in 8 bits)?'


class BinaryMask(DataRule):
    code = 'MG103'
    follows = ('MG104', 'MG106', 'MG107', 'MG116', 'MG125', 'MG135')
    needs = ()
    summary = 'These look like 0/255 masks: the foreground is stored as 255, not as class 1.'
    why = (
        'If 255 is ignored, nothing crashes, but the foreground is never trained (its IoU is 0, its Acc nan). If not, '
        'the run ends with a device-side assert.'
    )
    example = Example(wrong='mask: 0 and 255, num_classes=2', right='label_map={255: 1}')
    limits = (
        'The values do not show whether 255 is the object or void (unlabeled), or how an unknown loader converts it.'
    )
    advice = (
        "If 255 is the object, save the masks with 0 and 1, or write `dict(type='GuardSegLabels', num_classes=2, "
        'label_map={{255: 1}})` after LoadAnnotations, and do not ignore 255. If your loading code divides by 255 or '
        'compares with 0, nothing needs to change.'
    )
    pytorch = 'If 255 is the object, write target = (target > 0).long(). If 255 is void, write ignore_index=255.'

    def look(self, facts: Facts, labels: LabelFacts) -> Iterator[Finding]:
        # Already mapped: training sees the foreground as a class. Files of many channels must first be converted to
        # one (MG120), which no label_map does.
        is_mapped = 255 in get_config(labels).label_map or select_ids(count_trained(labels)) - {0}
        if is_mapped or has_many_channels(labels):
            return
        counts, raw = count_stored(labels), get_maps(labels).raw
        known = raw or (labels.histogram and not subtracts_one(labels))
        if known and set(counts) == {0, VOID}:
            is_mask = not may_be_subtracted(labels)
        else:  # in training only the invalid values are known
            is_mask = not known and set(labels.values) == {VOID} and labels.num_classes <= 2
        if not is_mask:
            return
        values, evidence = {VOID: counts.get(VOID, 0)}, None
        if labels.histogram or raw:
            ignored = labels.ignore_index == VOID
            evidence = Message(
                'the files contain only 0 and 255, with 255 in {share:.3g} % of the pixels{swallowed}',
                share=100 * compute_share(values[VOID], sum(counts.values())),
                swallowed=Message('; 255 is ignored, and with it the whole foreground') if ignored else '',
            )
        yield self.report_in(facts, PROVEN, evidence, values=values)

    def offer(self, facts: Facts, labels: LabelFacts) -> Iterator[Edit]:
        yield from map_object(facts, labels)


def map_object(facts: Facts, labels: LabelFacts) -> Iterator[Edit]:
    """Yield edits that map masks of 0 and 255 to labels 0 and 1."""
    counts = count_stored(labels)
    two = facts if has_num_classes(labels) else facts._replace(labels=replace(labels, num_classes=2))
    # 255 may also mean unlabeled: ask if it is frequent, or if there are other classes.
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
    """Return True if files contain only 0 and 255, and mostly 255, which may be the background 0 minus 1."""
    counts = count_stored(labels) if labels.maps is not None else {}
    much = compute_share(counts.get(VOID, 0), sum(counts.values())) >= HALF
    return set(counts) == {0, VOID} and labels.num_classes <= 2 and much and not subtracts_one(labels)


#: Maximum number of distinct invalid values that may be annotation mistakes or forgotten classes.
MANY_VALUES = 16
#: Maximum number of distinct values that may be the classes of an 8-bit data set.
MOST_IDS = 190
#: Masks drawn in gray levels have values of at least this brightness.
BRIGHT = 128


class GrayLevels(DataRule):
    code = 'MG106'
    follows = ('MG107',)
    needs = ()
    summary = 'The label maps contain many different values: colors, gray levels or interpolated labels.'
    title = 'The label maps contain many different values ({values}, ...): colors, gray levels or interpolated labels.'
    why = 'The files are pictures of the labels, not labels: a value is the brightness of a class, not its number.'
    example = Example(wrong="label.save('1.jpg')", right="label.save('1.png')  # one channel, class indices")
    limits = 'Many class ids with gaps look like gray levels, unless they are the ids of a known data set.'
    advice = (
        'Find the step that exported or resized the files: save class indices as single-channel PNG (never JPEG), '
        'resize only by nearest neighbor, decode colors to indices, and read palette PNGs as indices. Rewrite '
        'black-and-white masks with `Image.fromarray((mask > 127).astype(np.uint8)).save(path)`.'
    )
    pytorch = (
        'Load the masks as class indices: single-channel PNG (not JPEG), resized only by nearest neighbor; map colors '
        'to classes with a table. For two classes in black and white, write target = (target > 127).long().'
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
            yield from convert_files(facts, 'Rewrite the files with 0 and 1, by a threshold.', question, threshold=127)

    def _are_ids(self, labels: LabelFacts) -> bool:
        """Return True if the values except 255 are ids 0..N without gaps, so the head may have too few classes."""
        ids = select_ids(count_trained(labels))
        return (
            bool(labels.histogram) and len(ids) < BRIGHT and ids == set(range(len(ids))) and set(labels.values) <= ids
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
        'The class of a level is unknown. If the steps between levels are equal, the edit asks whether levels and '
        'classes have the same order.'
    )
    advice = (
        'Look up the class of each gray level, and write one table for all splits directly after LoadAnnotations: '
        "`dict(type='GuardSegLabels', num_classes={num_classes}, label_map=...)`. Or save the files with 0..{last}."
    )
    pytorch = (
        'Map each gray level to its class, with one table for all files, because a batch may lack levels. `mmguard '
        'scan FOLDER --num-classes {num_classes}` counts the levels of all files.'
    )

    def look(self, facts: Facts, labels: LabelFacts) -> Iterator[Finding]:
        stored, trained = count_stored(labels), count_trained(labels)
        is_known = labels.histogram or get_maps(labels).raw
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
            ''
            if clear
            else Message('Are {levels} the classes, in the order of your class list?', levels=join_items(levels))
        )
        moved = {level: label for level, label in table.items() if level != label}
        if moved:
            yield from renumber(facts, moved, question)


def _build_table(levels: Sequence[int], classes: int) -> Dict[int, int]:
    """Return {gray level: label}, or {} if the levels are irregular, as the gray levels of colors are."""
    if len(levels) == classes and rise_evenly(levels):
        return {level: label for label, level in enumerate(levels)}
    if len(levels) == classes + 1 and levels[-1] == VOID and rise_evenly(levels[:-1]):
        return {level: label for label, level in enumerate(levels[:-1])}
    step = min((high - low for low, high in zip(levels, levels[1:])), default=0)
    if step and len(levels) > 2 and all(level % step == 0 for level in levels) and levels[-1] // step < classes:
        return {level: level // step for level in levels}  # skip the level of a class that no file contains
    return {}


#: Minimum number of values between labels; a single value may be a label itself, such as a drawn border.
FEW = 2
#: Share of the pixels below which a value is rare; minimum number of rare values; minimum number of files.
RARE, MANY_RARE, FEW_FILES = 0.02, 6, 3

#: Largest distance from black or white of a pixel in a two-class mask, and the share of pixels within it.
NEAR, BLACK_AND_WHITE = 32, 0.8
#: Minimum share of pixels near 0 or 255, and of the rarer of the two, in masks with an unknown number of classes.
PEAKS, A_LITTLE = 0.9, 0.002
#: Minimum share of the black pixels that are exactly 0; of the white pixels, half as many must be exactly 255.
EXACT = 0.7


class LossyOrInterpolated(DataRule):
    code = 'MG136'
    follows = ('MG102', 'MG106', 'MG107', 'MG116', 'MG125')
    needs = ()
    summary = 'Compression or interpolation changed the labels: values between labels occur at the edges of regions.'
    title = 'Compression or interpolation changed the labels: {number} different values occur.'
    why = 'The average of two labels is neither of them; some averages are valid ids and are trained as such.'
    example = Example(
        wrong="cv2.resize(label, size); cv2.imwrite('label.jpg', label)",
        right="cv2.resize(label, size, interpolation=cv2.INTER_NEAREST); cv2.imwrite('label.png', label)",
    )
    limits = 'Cannot tell an intentional anti-aliased border from compression.'
    advice = (
        'Export the labels again as PNG, never as JPEG, and resize them only with nearest-neighbor interpolation: '
        '`cv2.resize(label, size, interpolation=cv2.INTER_NEAREST)`, `label.resize(size, Image.NEAREST)`, or '
        'mask_interpolation of Albu. Only masks of two classes can be restored, with a threshold.'
    )
    pytorch = (
        'Resize masks only with nearest-neighbor interpolation (torch.nn.functional.interpolate(mask, size, '
        'mode="nearest"), InterpolationMode.NEAREST in torchvision), and save them as PNG. Convert masks of two '
        'classes drawn with 0 and 255 to 0 and 1: (target > 127).long().'
    )

    def look(self, facts: Facts, labels: LabelFacts) -> Iterator[Finding]:
        certainty, maps, counts = self._judge(labels), get_maps(labels), count_stored(labels)
        if certainty is None:
            return
        texts = [labels.evidence] if labels.values else []
        if maps.lossy:
            texts.append(Message('{lossy:,} label files are JPEG', lossy=maps.lossy))
        if maps.at_edges is not None:
            texts.append(
                Message(
                    '{share:.3g} % of the invalid pixels are between a lower and a higher neighbor',
                    share=100 * maps.at_edges,
                )
            )
        evidence = join('; ', texts) or Message('values {values}', values=join_items(sorted(counts), 24))
        yield self.report_in(facts, certainty, evidence, {'number': len(counts)})

    def _judge(self, labels: LabelFacts) -> Optional[str]:
        """Return the certainty that compression or interpolation changed the labels, or ``None`` without evidence."""
        maps = get_maps(labels)
        if maps.lossy:
            return PROVEN if labels.values else LIKELY
        if self._is_speckled(labels):
            return PROVEN
        if not labels.values and not has_num_classes(labels) and _is_black_and_white(labels):
            return LIKELY
        if len(labels.values) < FEW:
            return None
        if maps.at_edges is not None and min(labels.values) >= 0:
            return PROVEN if maps.at_edges >= 0.8 else None
        if not labels.histogram or len(labels.values) <= MANY_VALUES:
            return None
        # A few values have almost all pixels, many others hardly any.
        counts = sorted(count_stored(labels).values(), reverse=True)
        peaks = counts[: labels.num_classes + 1]
        return LIKELY if compute_share(sum(peaks), sum(counts)) >= 0.9 else None

    def offer(self, facts: Facts, labels: LabelFacts) -> Iterator[Edit]:
        yield from threshold(facts, labels)

    def _is_speckled(self, labels: LabelFacts) -> bool:
        """True if a few values fill the label maps, and many rare values occur in most files.

        A rare class is missing in most files, but values made by interpolation are not. Bicubic interpolation also
        makes values that are not between two labels, but above or below both.
        """
        counts, files = count_stored(labels), get_maps(labels).files_with
        if labels.files < FEW_FILES or not labels.values or not files:
            return False
        whole = sum(counts.values())
        rare = [value for value, count in counts.items() if compute_share(count, whole) < RARE]
        common = len(counts) - len(rare)
        if len(rare) < max(MANY_RARE, 2 * common) or min(labels.values) < 0:
            return False
        everywhere = sum(files.get(value, 0) for value in rare) >= 0.5 * labels.files * len(rare)
        return everywhere and compute_share(sum(counts[value] for value in rare), whole) <= 0.25


def write_two_classes(facts: Facts, title: str, question: str, **options: Any) -> Iterator[Edit]:
    """Yield an edit that rewrites masks as 0 and 1; see :func:`convert_files`."""
    assert facts.labels is not None
    two = facts._replace(labels=replace(facts.labels, num_classes=2))
    for edit in convert_files(two, title, question, **options):
        if facts.labels.num_classes == 1 and facts.config is None:
            # Background and object are two classes.
            edit = state_num_classes(edit, 2)
        yield edit


def threshold(facts: Facts, labels: LabelFacts) -> Iterator[Edit]:
    """Yield an edit that rewrites black-and-white masks with values between 0 and 255 as 0 and 1, by a threshold."""
    counts = count_stored(labels)
    ends = sum(count for value, count in counts.items() if not NEAR < value < 255 - NEAR)
    of_two = labels.num_classes <= 2 and max(counts, default=0) > 127
    of_two = of_two and compute_share(ends, sum(counts.values())) >= BLACK_AND_WHITE
    if of_two or _is_black_and_white(labels):
        question = 'Are these masks of two classes, drawn in black and white?'
        for edit in write_two_classes(facts, ('Write PNGs with 0 and 1, by a threshold.'), question, threshold=127):
            note = 'From now on, resize label maps with INTER_NEAREST only.'
            yield replace(edit, unlabelled=tuple(range(1, 255)), notes=(*edit.notes, note))


def _is_black_and_white(labels: LabelFacts) -> bool:
    """Return True if nearly all pixels are near 0 or near 255, with some noise between."""
    counts = count_stored(labels)
    whole = sum(counts.values())
    black = sum(count for value, count in counts.items() if 0 <= value <= NEAR)
    white = sum(count for value, count in counts.items() if 255 - NEAR <= value <= 255)
    # Classes below 32 and void would look the same, except for the values next to 255.
    around = sum(1 for value in counts if 255 - NEAR <= value < 255)
    exact = counts.get(0, 0) >= EXACT * black and counts.get(255, 0) >= EXACT * white / 2
    return (
        around >= FEW
        and max(counts, default=0) <= 255
        and compute_share(black + white, whole) >= PEAKS
        and min(compute_share(black, whole), compute_share(white, whole)) >= A_LITTLE
        and exact  # classes from 0 on, and void, have no peak at 0
        and (labels.num_classes <= 2 or not has_num_classes(labels))
    )
