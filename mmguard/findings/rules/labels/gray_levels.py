from __future__ import annotations

from typing import Dict, Iterator, Optional

from mmguard.findings.edits import ASKS, Edit
from mmguard.findings.facts import LabelFacts
from mmguard.findings.finding import LIKELY, Finding
from mmguard.findings.known_sets import set_of_numbers
from mmguard.findings.map_edits import converted_files
from mmguard.findings.rule import DataRule, Facts
from mmguard.findings.views import ids_of, is_whole, knows_classes, trained

#: More distinct invalid values than this are no slip and no forgotten class.
MANY = 16
#: Of no data set that is trained on with 8 bits.
MOST_IDS = 190
#: What is drawn in gray levels is brighter somewhere.
BRIGHT = 128


class GrayLevels(DataRule):
    """Many values all over the range."""

    code = 'MG106'
    needs = ()
    summary = 'Many different values ({values}, ...): colours, gray levels or interpolated labels.'
    why = 'The files are pictures of the labels, not labels: a value says how bright a class is drawn, not which it is.'
    advice = (
        'Label files must hold class indices: save single-channel PNG (never JPEG), decode colours to indices, resize '
        'label maps with nearest only, and do not read palette PNGs as colours.'
    )
    two = (
        'For two classes threshold the masks and save them as single-channel PNG: '
        '`Image.fromarray((mask > 127).astype(np.uint8)).save(path)`. Never as JPEG, never resized but with nearest.'
    )

    otherwise = (
        'Look at one of the files as it was drawn, and where it was exported or resized: label files hold class '
        'indices, in one channel, without compression.'
    )

    def certainty(self, facts: LabelFacts) -> Optional[str]:
        if len(facts.values) > MANY:
            return None if self._are_ids(facts) else LIKELY
        return LIKELY if not knows_classes(facts) and len(trained(facts)) > MOST_IDS else None

    def edits(self, finding: Finding, facts: Facts) -> Iterator[Edit]:
        if facts.labels is not None and facts.labels.num_classes == 2:
            question = 'Are these masks of two classes, drawn in black and white?'
            yield from converted_files(facts, 'Rewrite the files with a threshold.', ASKS, question, threshold=127)

    def _are_ids(self, facts: LabelFacts) -> bool:
        """Whether the values are 0..N without a gap, and void: classes that go on behind the last, and no picture."""
        ids = ids_of(trained(facts))
        if is_whole(facts) and set_of_numbers(ids)[0]:
            return True
        return is_whole(facts) and len(ids) < BRIGHT and ids == set(range(len(ids))) and set(facts.values) <= ids

    def values(self, facts: LabelFacts) -> Dict[int, int]:
        return facts.values or trained(facts)

    def words(self, facts: LabelFacts) -> Dict[str, str]:
        return {'values': ', '.join(map(str, sorted(self.values(facts))[:8]))}

    def evidence(self, facts: LabelFacts) -> str:
        return facts.evidence or f'{len(trained(facts))} different values'

    def advise(self, facts: LabelFacts) -> str:
        return self.two if facts.num_classes <= 2 else self.advice
