from __future__ import annotations

from typing import Dict, Iterator, Optional

from mmguard.findings.edits import ASKS, SAFE, Edit
from mmguard.findings.facts import LabelFacts
from mmguard.findings.finding import LIKELY, PROVEN, Finding
from mmguard.findings.known_sets import CITYSCAPES_TRAIN_IDS, set_of_numbers
from mmguard.findings.map_edits import converted_files, stored_in_all
from mmguard.findings.rule import DataRule, Facts
from mmguard.findings.views import VOID, as_map, has_config, listing, maps_of, named_like

#: All bits of 16.
WHITE = 65535
WIDE = ('gray16', 'gray32')


class WiderThanEightBits(DataRule):
    """16-bit label files."""

    code = 'MG122'
    needs = ('maps',)
    summary = 'Label files have 16 bits or more; what reads 8 of them sees other labels.'
    why = "mmseg's loader keeps the value modulo 256 (261 becomes 5), OpenCV's default divides by 256 (1 becomes 0)."
    advice = (
        'Save them with 8 bits: `Image.fromarray(label.astype(np.uint8)).save(path)`, after the ids were renumbered to '
        '0..{last} if any is larger than 255.'
    )

    many = (
        '{num_classes} classes do not fit into 8 bits, and LoadAnnotations of mmseg keeps no more, whatever decodes '
        "the files: read them with a transform of your own that sets `results['gt_seg_map'] = "
        'np.array(Image.open(path)).astype(np.int64)` and makes {white} the ignored value.'
    )
    white = (
        'White of 16 bits is the foreground of a mask that was drawn to be looked at: save it with 8 bits, as 0 and 1, '
        '`Image.fromarray((mask > 0).astype(np.uint8)).save(path)`.'
    )
    negative = (
        'A negative value (often "no data" of a GIS) wraps into 0..255: write the ignored value instead, '
        '`label[label < 0] = {void}`, and save 8 bits: `Image.fromarray(label.astype(np.uint8)).save(path)`.'
    )
    instance = (
        'These are instance files: a value is {factor} x class + number of the object. Cityscapes: '
        "use *_gtFine_labelTrainIds.png, `seg_map_suffix='_gtFine_labelTrainIds.png'`. KITTI and others: use the "
        'semantic files, or `label = value // {factor}`, then renumber the ids to 0..{last}.'
    )

    def certainty(self, facts: LabelFacts) -> Optional[str]:
        maps = maps_of(facts)
        if maps.loaded_otherwise.get('wrapped'):
            return PROVEN
        if not any(maps.forms.get(form) for form in WIDE):
            return None
        if maps.raw and facts.histogram and set(maps.raw) != {0} and set(facts.histogram) == {0}:
            return PROVEN
        # Whoever trains with mmseg reads them right; what other loaders do is not known.
        return LIKELY if not has_config(facts) and max(maps.raw, default=0) < 256 else None

    def severity_of(self, facts: LabelFacts) -> str:
        return 'error' if self.certainty(facts) == PROVEN else 'warning'

    def advise(self, facts: LabelFacts) -> str:
        raw = maps_of(facts).raw
        if raw and min(raw) < 0:
            return self.negative
        if set(raw) == {0, WHITE}:
            return self.white
        if facts.num_classes > VOID and not self._factor(facts):
            return self.many
        return self.instance if self._factor(facts) else self.advice

    otherwise = (
        'Look what the values count: classes, objects, or what a GIS writes where it knows nothing. They must become '
        'class indices of 8 bits before any training reads them.'
    )

    def edits(self, finding: Finding, facts: Facts) -> Iterator[Edit]:
        labels, values = facts.labels, sorted(stored_in_all(facts))
        if labels is None or not values:
            return
        void = 255 if labels.ignore_index is None else labels.ignore_index
        negative = [value for value in values if value < 0]
        title = 'Rewrite the files with 8 bits.'
        if values == [0, WHITE]:
            yield from converted_files(facts, title, ASKS, 'Is white the object?', label_map={WHITE: 1})
        elif negative and values[-1] <= 255:
            question = f'Is {listing(negative)} what nobody labelled ("no data")?'
            yield from converted_files(facts, title, ASKS, question, label_map=dict.fromkeys(negative, void))
        elif values[-1] <= 255:
            yield from converted_files(facts, title, SAFE)
        elif self._factor(labels) and labels.num_classes == len(set(CITYSCAPES_TRAIN_IDS.values()) - {255}):
            table = {value: CITYSCAPES_TRAIN_IDS.get(_id_in(value, self._factor(labels)), 255) for value in values}
            question = 'Are these instance files of Cityscapes or KITTI, and are the classes the 19 of Cityscapes?'
            title = 'Name the *_gtFine_labelTrainIds.png files if they were made, or rewrite these with 8 bits.'
            yield from converted_files(facts, title, ASKS, question, label_map=table)
        elif len(values) == labels.num_classes and not self._factor(labels):
            question = f'Are the classes, in the order of your list, {listing(values)}?'
            table = {value: label for label, value in enumerate(values)}
            yield from converted_files(facts, title, ASKS, question, label_map=table)

    def words(self, facts: LabelFacts) -> Dict[str, int]:
        return {'factor': self._factor(facts), 'white': WHITE}

    def _factor(self, facts: LabelFacts) -> int:
        """What the class is multiplied by: 1000 in Cityscapes, 256 in KITTI; 0: by nothing that is known."""
        wide = [value for value in maps_of(facts).raw if value > 255]
        if not wide or max(wide) > 65535:
            return 0
        if named_like(facts, '_instanceids') or (min(wide) >= 24_000 and max(wide) < 34_000):
            return 1000
        # The numbers of objects are small: the low byte says little.
        low = max(value % 256 for value in wide)
        return 256 if low < 64 and len({value // 256 for value in wide}) > 1 else 0

    def values(self, facts: LabelFacts) -> Dict[int, int]:
        return {value: count for value, count in maps_of(facts).raw.items() if value > 255} or facts.values

    def evidence(self, facts: LabelFacts) -> str:
        maps = maps_of(facts)
        texts = [f'{maps.forms[form]:,} files of {form[4:]} bits' for form in WIDE if maps.forms.get(form)]
        wide = {value: value % 256 for value in sorted(maps.raw) if value > 255}
        if wide:
            texts.append(f'as stored, and as loaded: {as_map(wide, 6)}')
            known, number = set_of_numbers(set(maps.raw) - {VOID, WHITE})
            texts += [f'as many numbers as {known} has, {number}'] * bool(known)
        elif maps.raw:
            texts.append(f'values as stored: {listing(sorted(maps.raw))}')
        return '; '.join(texts) or f'{maps.loaded_otherwise.get("wrapped", 0):,} files are loaded modulo 256'


def _id_in(value: int, factor: int) -> int:
    """The class in a value of an instance file; what is no object holds the class alone."""
    return value // factor if value >= factor else value
