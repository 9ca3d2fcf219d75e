from __future__ import annotations

from typing import Dict, Iterator, Optional

from mmguard.findings.edits import ASKS, Edit
from mmguard.findings.facts import LabelFacts
from mmguard.findings.finding import LIKELY, Finding
from mmguard.findings.known_sets import set_of_numbers
from mmguard.findings.map_edits import convert_files
from mmguard.findings.rule import DataRule, Example, Facts
from mmguard.findings.views import ids_of, is_whole, knows_classes, trained

#: More distinct invalid values than this are neither slips nor forgotten classes.
MANY = 16
#: Of no data set that is trained on with 8 bits.
MOST_IDS = 190
#: What is drawn in gray levels is brighter somewhere.
BRIGHT = 128


class GrayLevels(DataRule):
    """Many values all over the range."""

    code = 'MG106'
    needs = ()
    summary = 'Many different values: colours, gray levels or interpolated labels.'
    title = 'Many different values ({values}, ...): colours, gray levels or interpolated labels.'
    why = 'The files are pictures of the labels, not labels: a value says how bright a class is drawn, not which one.'
    example = Example(wrong="label.save('1.jpg')", right="label.save('1.png')  # one channel, class indices")
    limits = 'Class ids that are many and have gaps look the same, unless they are those of a known data set.'
    advice = (
        'Look at one of the files, and where it was exported or resized. Label files hold class indices in '
        'single-channel PNG (never JPEG), resized with nearest only; colours are decoded to indices, palette PNGs not '
        'read as colours. Two classes in black and white: '
        '`Image.fromarray((mask > 127).astype(np.uint8)).save(path)`.'
    )
    pytorch = (
        'Load the masks as class indices: single-channel PNG, never JPEG, resized with nearest only; colours need a '
        'table to classes. Two classes in black and white: target = (target > 127).long().'
    )

    def certainty(self, facts: LabelFacts) -> Optional[str]:
        if len(facts.values) > MANY:
            return None if self._are_ids(facts) else LIKELY
        return LIKELY if not knows_classes(facts) and len(trained(facts)) > MOST_IDS else None

    def edits(self, finding: Finding, facts: Facts) -> Iterator[Edit]:
        if facts.labels is not None and facts.labels.num_classes == 2:
            question = 'Are these masks of two classes, drawn in black and white?'
            yield from convert_files(facts, 'Rewrite the files with a threshold.', ASKS, question, threshold=127)

    def _are_ids(self, facts: LabelFacts) -> bool:
        """Return True if the values are 0..N without a gap, and void: classes that go on after the last."""
        ids = ids_of(trained(facts))
        if is_whole(facts) and set_of_numbers(ids)[0]:
            return True
        return is_whole(facts) and len(ids) < BRIGHT and ids == set(range(len(ids))) and set(facts.values) <= ids

    def values(self, facts: LabelFacts) -> Dict[int, int]:
        return facts.values or trained(facts)

    def describe(self, facts: LabelFacts) -> Dict[str, str]:
        return {'values': ', '.join(map(str, sorted(self.values(facts))[:8]))}

    def evidence(self, facts: LabelFacts) -> str:
        return facts.evidence or f'{len(trained(facts))} different values'
