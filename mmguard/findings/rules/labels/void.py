"""Rules about void (unlabeled) pixels: 255 is trained, 1 was subtracted, a class is ignored, or no label is left."""

from __future__ import annotations

from dataclasses import replace
from typing import Iterator, Optional

from mmguard.config.guards import is_guarded
from mmguard.config.parts import find_losses
from mmguard.facts.labels import LabelFacts
from mmguard.findings.config_edits import combine_pair, guard_losses, reduce_zero_label, set_ignore_index
from mmguard.findings.edits import Edit
from mmguard.findings.file_edits import list_stored_values, propose_more_classes, renumber
from mmguard.findings.finding import ERROR, LIKELY, POSSIBLE, PROVEN, WARNING, Finding
from mmguard.findings.rule import DataRule, Example, Facts
from mmguard.findings.rules.labels.gray import map_object, may_be_subtracted
from mmguard.findings.views import (
    VOID,
    compute_share,
    count_listed,
    count_stored,
    count_trained,
    get_config,
    get_maps,
    has_many_channels,
    has_num_classes,
    join_items,
    select_ids,
    starts_with_background,
    subtracts_one,
)
from mmguard.language import Message, as_message, join
from mmguard.text import quantity


class VoidNotIgnored(DataRule):
    code = 'MG104'
    follows = ('MG107', 'MG116')
    summary = '255, the usual void value, is not ignored.'
    title = '255 is the usual value of ignored pixels and of padding, but ignore_index is {ignore_index}.'
    why = 'Label 255 of unlabeled and padded pixels is out of range for the loss, which triggers a device-side assert.'
    example = Example(wrong='ignore_index=-100, labels 0..10 and 255', right='ignore_index=255')
    limits = '255 may be a class that was drawn in white.'
    advice = (
        'Look at one of the files: if 255 is void (unlabeled), set `ignore_index=255` in the head, the losses, the '
        'metric and GuardSegLabels, and `seg_pad_val=255` in the data preprocessor. If 255 is a class, map it to the '
        'index of that class: `label_map={{255: CLASS}}`.'
    )
    pytorch = (
        'If 255 marks unlabeled pixels, or pixels added by padding or rotation, pass ignore_index=255 to the loss, the '
        'metric and the transforms. If 255 is a class, map it to the index of that class.'
    )

    def look(self, facts: Facts, labels: LabelFacts) -> Iterator[Finding]:
        dropped = VOID in get_config(labels).label_map.values()  # by the data set class, see MG380
        if set(labels.values) == {VOID} and labels.num_classes > 2 and not dropped:
            yield self.report_in(facts, PROVEN)

    def offer(self, facts: Facts, labels: LabelFacts) -> Iterator[Edit]:
        # If a class never occurs, 255 may be that class.
        complete = set(range(labels.num_classes)) <= set(count_trained(labels))
        yield set_ignore_index(facts, VOID, '' if complete else 'Is 255 your void (unlabeled) value?')


#: Minimum shares of the pixels and of the files with 255 to regard 255 as a background.
MUCH_VOID, MOST_FILES = 0.25, 0.8
#: Minimum number of files; in fewer, a class may be missing by chance.
SEVERAL_FILES = 5
#: Rules about gray levels, which masks of 0 and 255 trigger as well.
GRAY_RULES = ('MG106', 'MG125', 'MG135')


class ShiftedVoid(DataRule):
    code = 'MG133'
    follows = ('MG102', 'MG104', 'MG106', 'MG107', 'MG116', 'MG125', 'MG135')
    needs = ()
    summary = '1 was subtracted from the ignored value 255, or from 0.'
    title = '1 was subtracted from the ignored value 255, so the labels contain 254.'
    title_wrapped = (
        '1 seems to have been subtracted from the labels in the files: the last class, {last}, never occurs, and 255 '
        'occurs in place of 0.'
    )
    title_either = (
        'The files contain only 0 and 255, mostly 255: either 1 was subtracted from labels 0 and 1 (in 8 bits 0 - 1 is '
        '255), or 255 is the object.'
    )
    why = (
        'A `label -= 1` also changes the ignored value 255 to 254, which is invalid; in 8 bits it changes 0 to 255, so '
        'that the background is ignored.'
    )
    example = Example(wrong='label -= 1', right='label = np.where(label == 255, 255, label - 1)')
    limits = '254 may be a second void (unlabeled) value, and many pixels may be unlabeled (255) on purpose.'
    advice = (
        'Remove the subtraction from the script that saved the files, or from the transform. Write '
        '`reduce_zero_label=True` (mmseg then subtracts 1 itself and keeps 255) if 0 is unlabeled, and '
        '`reduce_zero_label=False` if 0 is a class. If the saved files are shifted, map 254 back: '
        '`label_map={{254: {void}}}`.'
    )
    pytorch = (
        'If the ids start at 1, subtract 1 from all but 255, `target = torch.where(target == 255, 255, target - 1)`, '
        'and pass ignore_index=255. If the ids start at 0, or are those of COCO-Stuff, subtract nothing.'
    )

    def look(self, facts: Facts, labels: LabelFacts) -> Iterator[Finding]:
        is_mask, is_wrapped = _is_mask(labels), _is_wrapped(labels)
        follow = self.follows if is_mask else tuple(code for code in self.follows if code not in GRAY_RULES)
        if is_mask or is_wrapped:
            counts, files = count_stored(labels), get_maps(labels).files_with.get(VOID, 0)
            evidence = Message(
                'the files contain {held} and 255, num_classes={num_classes}; 255 is in {part:.3g} % '
                'of the pixels, and in {files:,} of {all_files:,} files',
                held=f'0..{labels.num_classes - 2}' if is_wrapped else '0',
                num_classes=labels.num_classes,
                part=100 * compute_share(counts[VOID], sum(counts.values())),
                files=files,
                all_files=labels.files,
            )
            title = self.title_either if is_mask else self.title_wrapped
            sure = not is_wrapped or labels.values or starts_with_background(labels.class_names)
            yield self.report_in(
                facts,
                PROVEN if is_mask or labels.values else LIKELY,
                evidence,
                title=title,
                severity=ERROR if sure else WARNING,
                values={VOID: counts[VOID]},
                follows=follow,
            )
        elif 254 in labels.values and len(labels.values) <= 2:
            is_both = bool(labels.histogram) and VOID in count_trained(labels)
            certainty = POSSIBLE if is_both else PROVEN if len(labels.values) == 1 else LIKELY
            yield self.report_in(facts, certainty, follows=follow)

    def offer(self, facts: Facts, labels: LabelFacts) -> Iterator[Edit]:
        if _is_mask(labels):
            yield from map_object(facts, labels)
        elif _is_wrapped(labels):
            table = {VOID: 0, **{value: value + 1 for value in range(labels.num_classes - 1)}}
            question = 'Was 1 subtracted when the files were made, so that the background, 0, became 255?'
            yield from renumber(facts, table, question)
            if labels.values:
                yield set_ignore_index(facts, VOID, 'Is 255 your void (unlabeled) value?')
        elif set(labels.values) == {254}:
            # If 255 occurs, too, 254 may be another kind of void, but never a class.
            question = 'Is 254 void (unlabeled), like 255?' if VOID in count_trained(labels) else ''
            yield from renumber(facts, {254: labels.void}, question)


def _is_mask(labels: LabelFacts) -> bool:
    """Return True if files have one channel and contain only 0 and 255, mostly 255, and no label map changes 255."""
    mapped = VOID in get_config(labels).label_map or bool(select_ids(count_trained(labels)) - {0})
    return may_be_subtracted(labels) and not mapped and not has_many_channels(labels)


def _is_wrapped(labels: LabelFacts) -> bool:
    """Return True if all classes except the last occur, and 255 is frequent enough to be a background."""
    counts, classes = count_stored(labels), labels.num_classes
    if set(labels.values) - {VOID} or classes < 3 or not has_num_classes(labels) or labels.files < SEVERAL_FILES:
        return False
    if subtracts_one(labels) or counts != count_trained(labels):
        return False
    named = get_config(labels).label_map or (labels.class_names and not starts_with_background(labels.class_names))
    if named or select_ids(counts) != set(range(classes - 1)):
        return False
    everywhere = compute_share(get_maps(labels).files_with.get(VOID, 0), labels.files) >= MOST_FILES
    return everywhere and compute_share(counts.get(VOID, 0), sum(counts.values())) >= MUCH_VOID


class NothingToTrainOn(DataRule):
    code = 'MG128'
    shows_values = False
    kinds = ('pixels',)
    needs = ()
    summary = 'Label files contain no pixel to train on.'
    title = 'No pixel to train on in {number} of {files}.'
    title_all = 'Every pixel of every file is ignored.'
    title_volumes = 'No voxel of any class in {number} of {files}: crops around labeled voxels fail.'
    why = (
        'A batch of such files has no valid pixel. OHEM then indexes an empty tensor, losses that divide by the number '
        'of valid pixels (avg_non_ignore, nn.CrossEntropyLoss) are nan, and under DDP a rank whose loss has no '
        'autograd graph hangs the others.'
    )
    example = Example(
        wrong='reduce_zero_label=True, files that contain only 0',
        right='reduce_zero_label=False, num_classes=20  # was 19',
    )
    limits = 'Cannot tell an unlabeled file from a file that shows no object.'
    advice = (
        'Compare the stored and the loaded values with `mmguard trace CONFIG`: usual causes are reduce_zero_label on '
        'files that contain only 0, and a label_map that maps to the ignored value. If the files contain no label, '
        'label them or leave them out; `cat_max_ratio=0.75` in RandomCrop avoids most crops without a label.'
    )

    def look(self, facts: Facts, labels: LabelFacts) -> Iterator[Finding]:
        maps, known, is_empty = get_maps(labels), get_config(labels).losses, self._is_empty(labels)
        number = max(count_listed(maps, 'all_void'), maps.void_files)
        # What a GuardedLoss wraps is at `.loss`.
        bare = {path: kind for path, kind in known.items() if 'Guarded' not in kind and not path.endswith('.loss')}
        if not is_empty and (not number or (known and not bare)):
            return
        void = count_trained(labels).get(labels.void, 0)
        evidence = f'{void:,} {labels.kind} are ignored; values as stored: {join_items(sorted(count_stored(labels)))}'
        words = {'number': number, 'files': quantity(labels.files, 'file')}
        certainty, title, severity = (PROVEN, self.title_all, ERROR) if is_empty else (LIKELY, '', WARNING)
        title = self.title_volumes if 'volume' in maps.forms else title
        yield self.report_in(facts, certainty, evidence, words, title, severity, files=maps.all_void)

    def offer(self, facts: Facts, labels: LabelFacts) -> Iterator[Edit]:
        if facts.config is None or self._is_empty(labels):
            return
        bare = [loss for loss in find_losses(facts.config) if not is_guarded(loss) and not loss.path.endswith('.loss')]
        if bare:
            title = 'Guard the losses until these files are labeled or left out.'
            note = 'The loss of a batch without a valid pixel is then 0, and backward() works.'
            yield replace(guard_losses(facts.config, [loss.path for loss in bare], title), notes=(note,))

    def _is_empty(self, labels: LabelFacts) -> bool:
        seen = select_ids(count_trained(labels)) - {labels.ignore_index}
        return bool(labels.histogram) and not seen and not labels.values


#: Minimum share of pixels with 0 to regard 0 as a background that was drawn on purpose.
MUCH_ZERO = 0.4
#: Classes of LoveDA, whose files keep 0 for 'no data' and number the background 1.
LOVEDA = ('background', 'building', 'road', 'water', 'barren', 'forest', 'agricultural')


class ReduceZeroHidesClass(DataRule):
    code = 'MG124'
    follows = ('MG128', 'MG135', 'MG211')
    needs = ('config',)
    summary = 'reduce_zero_label=True ignores 0, but 0 is a class.'
    title = 'reduce_zero_label=True, but 0 seems to be a class: 0 is ignored, and every other label is reduced by 1.'
    why = 'Nothing crashes, but class 0 is ignored, all other labels are one too low, and the last class never occurs.'
    example = Example(
        wrong="reduce_zero_label=True, metainfo=dict(classes=('background', 'road'))",
        right='reduce_zero_label=False',
    )
    limits = 'Cannot tell whether 0 is a class or a large unlabeled area: the edit asks you.'
    advice = (
        'Look at one of the files, and at the class list. If 0 is a class, write `reduce_zero_label=False` in the data '
        'sets and loaders of all splits, and `num_classes={enough}`. If 0 is unlabeled, keep `reduce_zero_label=True`, '
        'and remove the background, if any, from the class list.'
    )

    def look(self, facts: Facts, labels: LabelFacts) -> Iterator[Finding]:
        certainty, raw = self._judge(labels), get_maps(labels).raw
        if certainty is None:
            return
        ids, last = select_ids(raw), labels.num_classes - 1
        where = ', '.join(path for path, on in get_config(labels).reduce_zero_label.items() if on)
        texts = [f'{where}=True']
        if ids:
            texts.append(
                Message(
                    'the files contain {first}..{last}, num_classes={num_classes}',
                    first=min(ids),
                    last=max(ids),
                    num_classes=labels.num_classes,
                )
            )
        if ids or labels.histogram:
            texts.append(
                Message(
                    '{share:.3g} % of the pixels are 0 and ignored', share=100 * self._compute_share_of_zero(labels)
                )
            )
            if labels.histogram and last not in count_trained(labels):
                texts.append(Message('the last class, {last}, never occurs in training', last=last))
        words = {'enough': max(ids) + 1 if ids else labels.num_classes}
        severity = ERROR if certainty == PROVEN else WARNING
        values = {0: raw[0]} if raw.get(0) else {}
        yield self.report_in(facts, certainty, join('; ', texts), words, severity=severity, values=values)

    def _judge(self, labels: LabelFacts) -> Optional[str]:
        """Return the certainty that 0 is a class, or ``None`` if neither the files nor the class list suggest it."""
        if not subtracts_one(labels):
            return None
        names = labels.class_names or next(iter(get_config(labels).dataset_classes.values()), [])
        background = starts_with_background(names)
        raw = select_ids(get_maps(labels).raw)
        if raw:
            if 0 not in raw or max(raw) > labels.num_classes:
                return None
            # If there are as many names as values above 0, the list was made for the shift, whatever the head says.
            is_made_for_it = len(labels.class_names) == max(raw) < labels.num_classes and not background
            is_counted = max(raw) == labels.num_classes - 1 or (max(raw) < labels.num_classes and background)
            if is_counted and not is_made_for_it:
                return PROVEN
            return LIKELY if self._compute_share_drawn(labels) >= MUCH_ZERO else None
        if labels.histogram:
            if labels.num_classes - 1 in count_trained(labels) or labels.values:
                return None
            return PROVEN if background else LIKELY if self._compute_share_drawn(labels) >= MUCH_ZERO else None
        return LIKELY if background and tuple(names) != LOVEDA and not labels.values else None

    def offer(self, facts: Facts, labels: LabelFacts) -> Iterator[Edit]:
        raw = get_maps(labels).raw
        enough = max(select_ids(list_stored_values(facts)), default=0) + 1
        # Files with void whose last value is the last class are already shifted.
        is_shifted = VOID in raw and max(select_ids(raw), default=0) == labels.num_classes - 1
        has_background = starts_with_background(labels.class_names)
        clear = enough == labels.num_classes and (has_background or is_shifted)
        edit = reduce_zero_label(facts, False, '' if clear else 'Is 0 a class (often the background)?')
        if enough <= labels.num_classes:
            yield edit
            return
        # Class 0 comes back, so each name in the list moves up by one.
        first = [] if has_background else ['background']
        title = join(' ', (as_message(edit.title), Message('Set num_classes={enough} in every head.', enough=enough)))
        yield combine_pair(edit, propose_more_classes(facts, enough, '', first=first), title)

    def _compute_share_drawn(self, labels: LabelFacts) -> float:
        """Return the share of pixels that are 0, excluding files that contain only 0, such as tiles outside a map."""
        maps = get_maps(labels)
        empty = compute_share(max(count_listed(maps, 'all_void'), maps.void_files), labels.files)
        return (
            max(0.0, self._compute_share_of_zero(labels) - empty) / (1 - empty)
            if empty < 1
            else self._compute_share_of_zero(labels)
        )

    def _compute_share_of_zero(self, labels: LabelFacts) -> float:
        """Return the share of pixels that are 0 in the files, or void in training if the stored values are unknown."""
        raw = get_maps(labels).raw
        if raw:
            return compute_share(raw.get(0, 0), sum(raw.values()))
        counts = count_trained(labels)
        return compute_share(counts.get(labels.void, 0), sum(counts.values()))
