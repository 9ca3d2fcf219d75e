from __future__ import annotations

from dataclasses import replace
from typing import Dict, Iterator, Optional, Sequence

from mmguard.findings.edits import ASKS, SAFE, Edit
from mmguard.findings.facts import LabelFacts
from mmguard.findings.finding import LIKELY, PROVEN, Finding
from mmguard.findings.known_sets import CITYSCAPES_TRAIN_IDS, set_of_numbers
from mmguard.findings.map_edits import convert_files, list_stored_values
from mmguard.findings.rule import DataRule, Example, Facts
from mmguard.findings.views import VOID, as_map, find_files_named, has_config, listing, maps_of, stored, trained

#: All bits of 16.
WHITE = 65535
WIDE = ('gray16', 'gray32')


class NotEightBits(DataRule):
    """Label files of 16 bits or more, and PNGs of 1, 2 or 4 bits."""

    code = 'MG122'
    aliases = ('MG151',)
    needs = ('maps',)
    summary = 'Label files have more bits than 8, or fewer; loaders change their values.'
    title = 'Label files have 16 bits or more; a reader of 8 bits sees other labels.'
    title_few = 'Label files have fewer than 8 bits: the loader stretches their values over 0 to 255.'
    why = (
        "Of 16 bits mmseg's loader keeps the value modulo 256 (261 becomes 5), OpenCV's default divides by 256 (1 "
        'becomes 0). Of 4 bits class 1 becomes 17, of 2 bits 85, of 1 bit 255, which is ignored.'
    )
    example = Example(
        wrong='Image.fromarray(label.astype(np.uint16)).save(path)',
        right='Image.fromarray(label.astype(np.uint8)).save(path)',
    )
    limits = 'It knows how mmseg and OpenCV load such files; other loaders are not known.'
    advice = (
        'Look up what the values count, and save class indices 0..{last} with 8 bits: '
        '`Image.fromarray(label.astype(np.uint8)).save(path)`. Values below 0 ("no data" of a GIS) become {void}, the '
        '{white} of a drawn mask 1. In instance files a value is 1000 (Cityscapes) or 256 (KITTI) times the class plus '
        'a number: use the semantic files. More than 255 classes need a loader of your own.'
    )

    def find_superseded(self, facts: LabelFacts) -> Sequence[str]:
        follow = super().find_superseded(facts)
        return follow if self._is_stretched(facts) else [code for code in follow if code not in ('MG103', 'MG121')]

    def choose_title(self, facts: LabelFacts) -> str:
        return self.title_few if self._is_stretched(facts) else self.title

    def _is_stretched(self, facts: LabelFacts) -> bool:
        return bool(maps_of(facts).loaded_otherwise.get('scaled'))

    def certainty(self, facts: LabelFacts) -> Optional[str]:
        maps = maps_of(facts)
        if maps.loaded_otherwise.get('wrapped') or self._is_stretched(facts):
            return PROVEN
        if not any(maps.forms.get(form) for form in WIDE):
            return None
        if maps.raw and facts.histogram and set(maps.raw) != {0} and set(facts.histogram) == {0}:
            return PROVEN
        # mmseg reads these right; what other loaders do is not known.
        return LIKELY if not has_config(facts) and max(maps.raw, default=0) < 256 else None

    def severity_of(self, facts: LabelFacts) -> str:
        return 'error' if self.certainty(facts) == PROVEN else 'warning'

    def edits(self, finding: Finding, facts: Facts) -> Iterator[Edit]:
        labels, values = facts.labels, sorted(list_stored_values(facts))
        if labels is None or not values:
            return
        void = 255 if labels.ignore_index is None else labels.ignore_index
        negative = [value for value in values if value < 0]
        title = 'Rewrite the files with 8 bits.'
        if self._is_stretched(labels):
            yield from convert_files(facts, title, SAFE)
        elif values == [0, WHITE]:
            yield from convert_files(facts, title, ASKS, 'Is white the object?', label_map={WHITE: 1})
        elif negative and values[-1] <= 255:
            question = f'Is {listing(negative)} your void ("no data") value?'
            yield from convert_files(facts, title, ASKS, question, label_map=dict.fromkeys(negative, void))
        elif values[-1] <= 255:
            yield from convert_files(facts, title, SAFE)
        elif self._factor(labels) and labels.num_classes == len(set(CITYSCAPES_TRAIN_IDS.values()) - {255}):
            table = {value: CITYSCAPES_TRAIN_IDS.get(_id_in(value, self._factor(labels)), 255) for value in values}
            question = 'Are these instance files of Cityscapes or KITTI, for the 19 classes of Cityscapes?'
            note = 'Files named *_gtFine_labelTrainIds.png, if they were made, can be read as they are.'
            for edit in convert_files(facts, title, ASKS, question, label_map=table):
                yield replace(edit, notes=(*edit.notes, note))
        elif len(values) == labels.num_classes and not self._factor(labels):
            question = f'Are the classes, in the order of your list, {listing(values)}?'
            table = {value: label for label, value in enumerate(values)}
            yield from convert_files(facts, title, ASKS, question, label_map=table)

    def describe(self, facts: LabelFacts) -> Dict[str, int]:
        return {'white': WHITE}

    def _factor(self, facts: LabelFacts) -> int:
        """Find what the class is multiplied by: 1000 in Cityscapes, 256 in KITTI; 0: nothing known."""
        wide = [value for value in maps_of(facts).raw if value > 255]
        if not wide or max(wide) > 65535:
            return 0
        if find_files_named(facts, '_instanceids') or (min(wide) >= 24_000 and max(wide) < 34_000):
            return 1000
        # The numbers of objects are small: the low byte says little.
        low = max(value % 256 for value in wide)
        return 256 if low < 64 and len({value // 256 for value in wide}) > 1 else 0

    def values(self, facts: LabelFacts) -> Dict[int, int]:
        return {value: count for value, count in maps_of(facts).raw.items() if value > 255} or facts.values

    def evidence(self, facts: LabelFacts) -> str:
        maps = maps_of(facts)
        texts = [f'{maps.forms[form]:,} files of {form[4:]} bits' for form in WIDE if maps.forms.get(form)]
        if self._is_stretched(facts):
            before, after = listing(sorted(stored(facts))), listing(sorted(trained(facts)))
            return f'{maps.loaded_otherwise["scaled"]:,} files; values as stored: {before}; as loaded: {after}'
        wide = {value: value % 256 for value in sorted(maps.raw) if value > 255}
        if wide:
            texts.append(f'as stored, and as loaded: {as_map(wide, 6)}')
            known, number = set_of_numbers(set(maps.raw) - {VOID, WHITE})
            texts += [f'as many numbers as {known} has, {number}'] * bool(known)
        elif maps.raw:
            texts.append(f'values as stored: {listing(sorted(maps.raw))}')
        return '; '.join(texts) or f'{maps.loaded_otherwise.get("wrapped", 0):,} files are loaded modulo 256'


def _id_in(value: int, factor: int) -> int:
    """Return the class in a value of an instance file; a pixel without an object holds only the class."""
    return value // factor if value >= factor else value
