from __future__ import annotations

from typing import Dict, Iterator, List

from mmguard.findings.edits import ASKS, Edit
from mmguard.findings.facts import LabelFacts
from mmguard.findings.finding import Finding
from mmguard.findings.map_edits import converted_files, stored_in_all
from mmguard.findings.rule import DataRule, Facts
from mmguard.findings.views import VOID, is_whole, maps_of

#: With fewer numbers, or fewer files, classes that happen to be sorted by frequency look the same: of k classes every
#: k!-th set does, and every 24th is too many.
ENOUGH, ENOUGH_IN_MANY_FILES, MANY_FILES = 5, 4, 10

#: Size of the largest object of a number, averaged over the files, to that of the smallest.
MOST_TIMES = 10


class InstanceMaps(DataRule):
    """Each object its own number, counted anew in every file."""

    code = 'MG170'
    explains = ('MG101', 'MG102', 'MG106', 'MG107', 'MG116', 'MG127')
    needs = ('values', 'maps')
    summary = 'These look like instance maps: each file counts its objects 1, 2, 3, ... up to {most}.'
    why = 'A number says which object it is, not of which class: one class is torn into as many as there are objects.'
    advice = (
        'Do not raise num_classes. The class of every object must come from elsewhere: export a semantic, not an '
        'instance mask from the annotation tool, or use its table of objects. With a single kind of object: '
        '`label = (mask > 0).astype(np.uint8)`, `num_classes=2` (background, object).'
    )
    two = (
        'Make one class of all objects and save it as PNG: `label = (mask > 0).astype(np.uint8)`, with `num_classes=2` '
        '(background, object). To train instances instead, make a COCO JSON of them and use mmdet.'
    )

    def likelihood(self, facts: LabelFacts) -> float:
        ids = self._ids(facts)
        enough = len(ids) >= ENOUGH or (len(ids) >= ENOUGH_IN_MANY_FILES and facts.files >= MANY_FILES)
        if not is_whole(facts) or not enough or ids != list(range(1, len(ids) + 1)):
            return 0.0
        if maps_of(facts).lossy or (maps_of(facts).at_edges or 0) >= 0.5:
            return 0.0  # values in between are many, and rarer the farther they are, too
        # Whoever has object 7 has objects 1 to 6; and few files have as many objects as the fullest one.
        files = [maps_of(facts).files_with.get(value, 0) for value in ids]
        falls = all(few <= many for many, few in zip(files, files[1:])) and 0 < 2 * files[-1] <= files[0]
        # Classes differ in size, frequent ones are large; objects, on the average, are alike.
        sizes = [maps_of(facts).raw[value] / max(number, 1) for value, number in zip(ids, files)]
        alike = max(sizes) <= MOST_TIMES * min(sizes)
        return 0.97 if falls and alike and ids[-1] > facts.num_classes else 0.0

    otherwise = (
        'Look where the class of each object stands: in a table of the annotation tool, or in a semantic mask that it '
        'exports, too.'
    )

    def edits(self, finding: Finding, facts: Facts) -> Iterator[Edit]:
        if facts.labels is not None and facts.labels.num_classes == 2 and VOID not in stored_in_all(facts):
            text = 'Make one class of all objects, `label = (mask > 0).astype(np.uint8)`'
            yield from converted_files(facts, text, ASKS, 'Is every object of the same class?', threshold=0)

    def advise(self, facts: LabelFacts) -> str:
        return self.two if facts.num_classes <= 2 else self.advice

    def words(self, facts: LabelFacts) -> Dict[str, int]:
        return {'most': max(self._ids(facts), default=0)}

    def evidence(self, facts: LabelFacts) -> str:
        with_ = maps_of(facts).files_with
        shown = [f'{value} in {with_.get(value, 0):,}' for value in self._ids(facts)]
        middle = [] if len(shown) <= 4 else ['...']
        return f'of {facts.files:,} files: ' + ', '.join([*shown[:3], *middle, *shown[3:][-1:]])

    def _ids(self, facts: LabelFacts) -> List[int]:
        return sorted(value for value in maps_of(facts).raw if value not in (0, VOID))
