"""Labels hidden by reduce_zero_label, and label maps written for the values before it."""

from __future__ import annotations

from typing import Iterator, Optional

from mmguard.config.classes import starts_with_background
from mmguard.facts.labels import LabelFacts
from mmguard.findings.edits import Edit
from mmguard.findings.finding import ERROR, LIKELY, PROVEN, WARNING, Finding
from mmguard.findings.map_edits import list_stored_values, propose_more_classes
from mmguard.findings.rule import DataRule, Example, Facts
from mmguard.findings.usual_edits import combine_pair, reduce_zero_label
from mmguard.findings.views import (
    VOID,
    compute_share,
    count_listed,
    count_trained,
    get_config,
    get_maps,
    has_valid_counts,
    select_ids,
    subtracts_one,
)
from mmguard.language import Message, as_message, join

#: Share of 0 above which it is a background drawn on purpose.
MUCH_ZERO = 0.4
#: Classes of LoveDA, whose files keep 0 for 'no data' and number the background 1.
LOVEDA = ('background', 'building', 'road', 'water', 'barren', 'forest', 'agricultural')


class ReduceZeroHidesClass(DataRule):
    code = 'MG124'
    follows = ('MG128', 'MG135', 'MG211')
    needs = ('config',)
    summary = 'reduce_zero_label=True where 0 is a class.'
    title = 'reduce_zero_label=True, but 0 seems to be a class here: it is ignored, and every label moves down by 1.'
    why = 'Nothing crashes: class 0 is ignored, all others are trained one too low, and the last never occurs (nan).'
    example = Example(
        wrong="reduce_zero_label=True, metainfo=dict(classes=('background', 'road'))",
        right='reduce_zero_label=False',
    )
    limits = 'It cannot tell a class from a large unlabeled area: its edit asks.'
    advice = (
        'Look at one of the files, and at the class list. If 0 is a class, write `reduce_zero_label=False` in the data '
        'sets and loaders of all splits, and count it: `num_classes={enough}`. If 0 is unlabeled, keep the shift, and '
        'take a background out of the class list.'
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
                    'the files hold {first}..{last}, num_classes={num_classes}',
                    first=min(ids),
                    last=max(ids),
                    num_classes=labels.num_classes,
                )
            )
        if ids or has_valid_counts(labels):
            texts.append(
                Message(
                    '{share:.3g} % of the pixels are 0 and ignored', share=100 * self._compute_share_of_zero(labels)
                )
            )
            if has_valid_counts(labels) and last not in count_trained(labels):
                texts.append(Message('the last class, {last}, never occurs in training', last=last))
        words = {'enough': max(ids) + 1 if ids else labels.num_classes}
        severity = ERROR if certainty == PROVEN else WARNING
        values = {0: raw[0]} if raw.get(0) else {}
        yield self.report_in(facts, certainty, join('; ', texts), words, severity=severity, values=values)

    def _judge(self, labels: LabelFacts) -> Optional[str]:
        """Return the certainty that 0 is a class; ``None`` if nothing shows it."""
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
        if has_valid_counts(labels):
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
        """Return the share of pixels that are 0, without files that contain only 0, such as tiles outside a map."""
        maps = get_maps(labels)
        empty = compute_share(max(count_listed(maps, 'all_void'), maps.void_files), labels.files)
        return (
            max(0.0, self._compute_share_of_zero(labels) - empty) / (1 - empty)
            if empty < 1
            else self._compute_share_of_zero(labels)
        )

    def _compute_share_of_zero(self, labels: LabelFacts) -> float:
        """Return the share of pixels that are 0 in the files."""
        raw = get_maps(labels).raw
        if raw:
            return compute_share(raw.get(0, 0), sum(raw.values()))
        counts = count_trained(labels)
        return compute_share(counts.get(labels.void, 0), sum(counts.values()))
