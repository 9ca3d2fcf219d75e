"""Labels hidden by reduce_zero_label, and label maps written for the values before it."""

from __future__ import annotations

from typing import Dict, Iterator, Optional

from mmguard.config.classes import starts_with_background
from mmguard.findings.edits import ASKS, SAFE, Edit
from mmguard.findings.facts import LabelFacts
from mmguard.findings.finding import LIKELY, PROVEN
from mmguard.findings.map_edits import list_stored_values, more_classes
from mmguard.findings.rule import DataRule, Example, Facts
from mmguard.findings.usual_edits import both, reduce_zero_label
from mmguard.findings.views import (
    VOID,
    config_of,
    count_trained,
    ids_of,
    is_whole,
    maps_of,
    number_of,
    share,
    subtracts_one,
)
from mmguard.language import Message, as_message, join

#: Share of 0 above which it is a background drawn on purpose.
MUCH = 0.4
#: Its files keep 0 for 'no data' and number the background 1.
LOVEDA = ('background', 'building', 'road', 'water', 'barren', 'forest', 'agricultural')


class ReduceZeroHidesClass(DataRule):
    """``reduce_zero_label=True`` although 0 is a class."""

    code = 'MG124'
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

    def certainty(self, facts: LabelFacts) -> Optional[str]:
        if not subtracts_one(facts):
            return None
        names = facts.class_names or next(iter(config_of(facts).dataset_classes.values()), [])
        background = starts_with_background(names)
        raw = ids_of(maps_of(facts).raw)
        if raw:
            if 0 not in raw or max(raw) > facts.num_classes:
                return None
            # As many names as values without 0: the list was made for the shift, whatever the head says.
            if len(facts.class_names) == max(raw) < facts.num_classes and not background:
                return LIKELY if self._share_drawn(facts) >= MUCH else None
            if max(raw) == facts.num_classes - 1 or (max(raw) < facts.num_classes and background):
                return PROVEN
            return LIKELY if self._share_drawn(facts) >= MUCH else None
        if is_whole(facts):
            if facts.num_classes - 1 in count_trained(facts) or facts.values:
                return None
            return PROVEN if background else LIKELY if self._share_drawn(facts) >= MUCH else None
        return LIKELY if background and tuple(names) != LOVEDA and not facts.values else None

    def offer(self, facts: Facts, labels: LabelFacts) -> Iterator[Edit]:
        enough = max(ids_of(dict.fromkeys(list_stored_values(facts), 1)), default=0) + 1
        # The first name belongs to 0, or the saved files are already shifted.
        clear = enough == labels.num_classes and (
            starts_with_background(labels.class_names) or self._is_shifted(labels)
        )
        question = '' if clear else 'Is 0 a class (often the background)?'
        edit = reduce_zero_label(facts, False, SAFE if clear else ASKS, question)
        if enough <= labels.num_classes:
            yield edit
            return
        # The class that comes back is 0: the names of the list move up by one.
        first = [] if starts_with_background(labels.class_names) else ['background']
        title = join(' ', (as_message(edit.title), Message('Set num_classes={enough} in every head.', enough=enough)))
        yield both(edit, more_classes(facts, enough, '', first=first), title)

    def _is_shifted(self, facts: LabelFacts) -> bool:
        raw = maps_of(facts).raw
        return VOID in raw and max(ids_of(raw), default=0) == facts.num_classes - 1

    def describe(self, facts: LabelFacts) -> Dict[str, int]:
        raw = ids_of(maps_of(facts).raw)
        return {'enough': max(raw) + 1 if raw else facts.num_classes}

    def severity_of(self, facts: LabelFacts) -> str:
        return 'error' if self.certainty(facts) == PROVEN else 'warning'

    def values(self, facts: LabelFacts) -> Dict[int, int]:
        raw = maps_of(facts).raw
        return {0: raw[0]} if raw.get(0) else {}

    def evidence(self, facts: LabelFacts) -> str:
        raw = ids_of(maps_of(facts).raw)
        where = ', '.join(path for path, on in config_of(facts).reduce_zero_label.items() if on)
        texts = [f'{where}=True']
        if raw:
            texts.append(
                Message(
                    'the files hold {first}..{last}, num_classes={num_classes}',
                    first=min(raw),
                    last=max(raw),
                    num_classes=facts.num_classes,
                )
            )
        if raw or is_whole(facts):
            texts.append(
                Message('{share:.3g} % of the pixels are 0 and ignored', share=100 * self._share_of_zero(facts))
            )
            last = facts.num_classes - 1
            if is_whole(facts) and last not in count_trained(facts):
                texts.append(Message('the last class, {last}, never occurs in training', last=last))
        return join('; ', texts)

    def _share_drawn(self, facts: LabelFacts) -> float:
        """Return the share of 0 without files that contain only 0, such as tiles outside a map."""
        maps = maps_of(facts)
        empty = share(max(number_of(maps, 'all_void'), maps.void_files), facts.files)
        return max(0.0, self._share_of_zero(facts) - empty) / (1 - empty) if empty < 1 else self._share_of_zero(facts)

    def _share_of_zero(self, facts: LabelFacts) -> float:
        """Return the share of pixels that are 0 in the files."""
        raw = maps_of(facts).raw
        if raw:
            return share(raw.get(0, 0), sum(raw.values()))
        counts = count_trained(facts)
        ignored = 255 if facts.ignore_index is None else facts.ignore_index
        return share(counts.get(ignored, 0), sum(counts.values()))
