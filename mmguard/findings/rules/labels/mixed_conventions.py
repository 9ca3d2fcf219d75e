from __future__ import annotations

from typing import Dict, Iterator, List

from mmguard.findings.edits import ASKS, Edit
from mmguard.findings.facts import LabelFacts
from mmguard.findings.finding import Finding
from mmguard.findings.map_edits import converted_files
from mmguard.findings.rule import DataRule, Facts
from mmguard.findings.views import VOID, ids_of, maps_of, share, stored, subtracts_one

#: Files of each kind, at the least: a handful is a slip, or chance.
ENOUGH = 3
#: Of the pixels of an object, its other form has as many, give or take this factor; void borders are thin.
ALIKE = 5


class MixedConventions(DataRule):
    """Two sources in one folder that number their labels differently."""

    code = 'MG171'
    explains = ('MG102', 'MG107', 'MG116')
    needs = ('maps', 'histogram')
    summary = 'Two numberings seem to be mixed: some files are written {one}, the others {other}; no file has both.'
    why = 'Whatever num_classes, label_map or reduce_zero_label says, it is wrong for one part of the files.'
    white = (
        'Look at one of the files that hold 255. If it is the object there, convert these files before anything else: '
        '`label[label == 255] = 1`; a label_map in the config would do the same to padding. If it marks what is to be '
        'ignored, nothing is to do.'
    )
    shifted = (
        'Convert the files that hold {num_classes} (and no 0), before anything else: `label = label - 1`. A label_map '
        'or reduce_zero_label would shift the others, which are right.'
    )
    advice = white

    def likelihood(self, facts: LabelFacts) -> float:
        if subtracts_one(facts):
            return 0.0
        return 0.9 if self._white(facts) else 0.94 if self._shifted(facts) else 0.0

    otherwise = (
        'Look at one of the files that hold 255: it is the object there, or what nobody labelled, and in another split '
        'it seems to be the other.'
    )

    def edits(self, finding: Finding, facts: Facts) -> Iterator[Edit]:
        if facts.labels is not None and self._white(facts.labels):
            question = 'Look at one of the files that hold 255: is it the object there (if it is void, all is well)?'
            yield from converted_files(facts, 'Write the files anew', ASKS, question, label_map={VOID: 1})

    def advise(self, facts: LabelFacts) -> str:
        return self.white if self._white(facts) else self.shifted

    def words(self, facts: LabelFacts) -> Dict[str, str]:
        if self._white(facts):
            return {'one': '0 and 1', 'other': '0 and 255'}
        return {'one': f'0..{facts.num_classes - 1}', 'other': f'1..{facts.num_classes}'}

    def evidence(self, facts: LabelFacts) -> str:
        first, second = (1, VOID) if self._white(facts) else (0, facts.num_classes)
        files = maps_of(facts).files_with
        return f'of {facts.files:,} files {files[first]:,} hold {first}, {self._holders(facts, second):,} hold {second}'

    def values(self, facts: LabelFacts) -> Dict[int, int]:
        wrong = VOID if self._white(facts) else facts.num_classes
        return {wrong: stored(facts).get(wrong, 0)}

    def files(self, facts: LabelFacts) -> List[str]:
        return [path for value in self.values(facts) for path in maps_of(facts).examples.get(value, [])]

    def _white(self, facts: LabelFacts) -> bool:
        """Of two classes the second is 1 in some files and 255 in others."""
        counts = stored(facts)
        if facts.num_classes != 2 or not {1, VOID} <= set(counts) <= {0, 1, VOID} or facts.ignore_index != VOID:
            return False
        if set(facts.histogram) - {0, 1, VOID}:
            return False
        ones, whites = maps_of(facts).files_with.get(1, 0), self._holders(facts, VOID)
        if min(ones, whites) < ENOUGH or ones + whites > facts.files:
            return False
        return 1 / ALIKE <= share(counts[1] / ones, counts[1] / ones + counts[VOID] / whites) * 2 <= 2 - 1 / ALIKE

    def _shifted(self, facts: LabelFacts) -> bool:
        """Each file holds either 0 or N."""
        files = maps_of(facts).files_with
        least, most = files.get(0, 0), files.get(facts.num_classes, 0)
        if set(facts.values) != {facts.num_classes} or min(least, most) < ENOUGH or len(ids_of(stored(facts))) < 4:
            return False
        return least + most == facts.files

    def _holders(self, facts: LabelFacts, value: int) -> int:
        """Files with a value, those that hold void alone left out."""
        void = maps_of(facts).void_files if value == VOID else 0
        return maps_of(facts).files_with.get(value, 0) - void
