from __future__ import annotations

from typing import Dict, Iterator, Optional, Sequence

from mmguard.config.classes import starts_with_background
from mmguard.findings.edits import ASKS, SAFE, Edit
from mmguard.findings.facts import LabelFacts
from mmguard.findings.finding import ERROR, LIKELY, POSSIBLE, PROVEN, WARNING, Finding
from mmguard.findings.map_edits import renumber
from mmguard.findings.rule import DataRule, Example, Facts
from mmguard.findings.rules.labels.binary_mask import map_object, may_be_subtracted
from mmguard.findings.usual_edits import set_ignore_index
from mmguard.findings.views import (
    VOID,
    config_of,
    has_many_channels,
    ids_of,
    is_whole,
    knows_classes,
    maps_of,
    share,
    stored,
    subtracts_one,
    trained,
)

#: Share of the pixels, and of the files, that a background fills at least.
MUCH, MOST_FILES = 0.25, 0.8
#: Of fewer files a class may be missing by chance.
SEVERAL_FILES = 5
#: What 0 and 255 look like; 254 is not a gray level.
OF_GRAY = ('MG106', 'MG125', 'MG135')


class ShiftedVoid(DataRule):
    """255 minus 1; or 0 minus 1, which is 255 in 8 bits."""

    code = 'MG133'
    needs = ()
    summary = '1 was subtracted from the ignored value 255, or from 0.'
    title = '254 is void, 255, after 1 was subtracted.'
    title_wrapped = (
        '1 seems to be subtracted in the files: {last}, the last class, never occurs, and 255 fills what 0 would.'
    )
    title_either = (
        'The files hold only 0 and 255, and 255 fills most of them: labels 0 and 1 from which 1 was subtracted (in 8 '
        'bits 0 - 1 is 255), or masks whose object is 255.'
    )
    why = (
        'A minus-one copied from elsewhere (`label -= 1`) moves the ignored value into the invalid ones; in 8 bits it '
        'makes 255 of 0, so the background is ignored.'
    )
    example = Example(
        wrong='label -= 1',
        right='label = np.where(label == 255, 255, label - 1)',
    )
    limits = '254 next to 255 may be void of another kind; a frequent 255 may be unlabelled on purpose.'
    advice = (
        'Find where 1 is subtracted, by hand when the files were saved or by a transform, and remove it: mmseg '
        'subtracts by itself and keeps 255, `reduce_zero_label=True` where 0 is unlabelled, `reduce_zero_label=False` '
        'where it is a class. Of files that were saved with the shift map what it moved back: `label_map={{254: '
        '{void}}}`.'
    )
    pytorch = (
        'If the ids count from 1, subtract 1 from classes only: target = torch.where(target == 255, 255, target - 1), '
        'ignore_index=255. If they count from 0, or are ids of COCO-Stuff, subtract nothing.'
    )

    def edits(self, finding: Finding, facts: Facts) -> Iterator[Edit]:
        labels = facts.labels
        if labels is not None and self._is_mask(labels):
            yield from map_object(facts, labels)
            return
        if labels is not None and self._is_wrapped(labels):
            table = {VOID: 0, **{value: value + 1 for value in range(labels.num_classes - 1)}}
            question = 'Was 1 subtracted when the files were made, so that the background, 0, became 255?'
            yield from renumber(facts, table, ASKS, question)
            if labels.values:
                yield set_ignore_index(facts, VOID, ASKS, 'Is 255 your void (unlabelled) value?')
            return
        if labels is None or set(labels.values) != {254}:
            return
        void = VOID if labels.ignore_index is None else labels.ignore_index
        # Where 255 is there, too, 254 may be another kind of void; a class it is nowhere.
        clear = VOID not in trained(labels)
        question = '' if clear else 'Is 254 void, as 255 is?'
        yield from renumber(facts, {254: void}, SAFE if clear else ASKS, question)

    def certainty(self, facts: LabelFacts) -> Optional[str]:
        if self._is_mask(facts):
            return PROVEN
        if self._is_wrapped(facts):
            return PROVEN if facts.values else LIKELY
        if 254 not in facts.values or len(facts.values) > 2:
            return None
        if is_whole(facts) and 255 in trained(facts):
            return POSSIBLE
        return PROVEN if len(facts.values) == 1 else LIKELY

    def find_superseded(self, facts: LabelFacts) -> Sequence[str]:
        codes = super().find_superseded(facts)
        return codes if self._is_mask(facts) else [code for code in codes if code not in OF_GRAY]

    def choose_title(self, facts: LabelFacts) -> str:
        if self._is_mask(facts):
            return self.title_either
        return self.title_wrapped if self._is_wrapped(facts) else self.title

    def severity_of(self, facts: LabelFacts) -> str:
        sure = facts.values or not self._is_wrapped(facts) or starts_with_background(facts.class_names)
        return ERROR if sure else WARNING

    def values(self, facts: LabelFacts) -> Dict[int, int]:
        is_void = self._is_wrapped(facts) or self._is_mask(facts)
        return {VOID: stored(facts)[VOID]} if is_void else facts.values

    def evidence(self, facts: LabelFacts) -> str:
        if not self._is_wrapped(facts) and not self._is_mask(facts):
            return facts.evidence
        part = 100 * share(stored(facts)[VOID], sum(stored(facts).values()))
        files = maps_of(facts).files_with.get(VOID, 0)
        held = f'0..{facts.num_classes - 2}' if self._is_wrapped(facts) else '0'
        return (
            f'the files hold {held} and 255, num_classes={facts.num_classes}; 255 in {part:.3g} % '
            f'of the pixels, in {files:,} of {facts.files:,} files'
        )

    def _is_mask(self, facts: LabelFacts) -> bool:
        """True if most of a mask of two values is 255."""
        mapped = VOID in config_of(facts).label_map or bool(ids_of(trained(facts)) - {0})
        return may_be_subtracted(facts) and not mapped and not has_many_channels(facts)

    def _is_wrapped(self, facts: LabelFacts) -> bool:
        """True if all classes but the last occur, and 255 is as frequent as a background."""
        counts, classes = stored(facts), facts.num_classes
        if set(facts.values) - {VOID} or classes < 3 or not knows_classes(facts) or facts.files < SEVERAL_FILES:
            return False
        if subtracts_one(facts) or counts != trained(facts):
            return False
        named = config_of(facts).label_map or (facts.class_names and not starts_with_background(facts.class_names))
        if named or ids_of(counts) != set(range(classes - 1)):
            return False
        everywhere = share(maps_of(facts).files_with.get(VOID, 0), facts.files) >= MOST_FILES
        return everywhere and share(counts.get(VOID, 0), sum(counts.values())) >= MUCH
