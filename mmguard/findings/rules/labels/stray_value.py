from __future__ import annotations

from typing import Iterator, Optional

from mmguard.findings.edits import ASKS, Edit
from mmguard.findings.facts import LabelFacts
from mmguard.findings.finding import LIKELY, PROVEN, Finding
from mmguard.findings.map_edits import more_classes, renumber
from mmguard.findings.rule import DataRule, Example, Facts
from mmguard.findings.rules.labels.yolo.base import drop_rows
from mmguard.findings.views import VOID, annotations_of, is_rare, listing, maps_of, share, trained

FEW_VALUES = 4
#: Of fewer files than usual: how many there are at least, and the share of files and elements that hold a slip.
SEVERAL_FILES, FEW_FILES, FEW_ELEMENTS = 10, 0.2, 0.03


class StrayValue(DataRule):
    """A value that only a few files hold."""

    code = 'MG127'
    kinds = ('pixels', 'instances')
    summary = 'Only a few files hold an invalid label: a slip of the annotator, not a class.'
    title = 'Only a few files hold {values}: a slip of the annotator, not a class.'
    why = 'One such label ends a stock training, at the iteration that happens to draw its file.'
    example = Example(
        wrong='num_classes=2, value 77 in 9 pixels of one file',
        right='the 9 pixels corrected; num_classes=2',
    )
    limits = 'A class that hardly any file shows looks the same.'
    advice = (
        'Correct the files (the scan lists them all). num_classes is right as it is. Until then leave these labels out '
        'with a guard (GuardSegLabels, GuardInstanceLabels). If another split holds the same number often, look '
        'whether it is a class that the list lacks.'
    )
    pytorch = (
        'Correct these labels. The number of classes is right as it is; until then, mmguard.nn leaves such pixels out, '
        'and guard_targets such boxes.'
    )

    def certainty(self, facts: LabelFacts) -> Optional[str]:
        if self._is_rarer_than_classes(facts):
            return PROVEN
        if not is_rare(facts) or len(facts.values) > FEW_VALUES:
            return None
        if set(facts.values) != {facts.num_classes}:
            return LIKELY
        # The first value after the classes is often a class that was forgotten; but not in a handful of pixels.
        return PROVEN if is_rare(facts, files=0.01, elements=1e-4) else LIKELY

    def _is_rarer_than_classes(self, facts: LabelFacts) -> bool:
        """True if the first value after the classes is in fewer files than any class, and in few of them.

        A class that the list lacks is drawn as often as others are; where it is listed, it is not a slip.
        """
        beyond, count, of_pixels = facts.num_classes, sum(facts.values.values()), facts.kind == 'pixels'
        if set(facts.values) != {beyond} or beyond < 1 + of_pixels or len(facts.class_names) > beyond:
            return False
        holders = (maps_of(facts) if of_pixels else annotations_of(facts)).files_with_class
        files = {label: number for label, number in holders.items() if 0 <= label < beyond and number}
        # Of boxes, also by number: a file may hold many.
        rarest = min((trained(facts).get(label, 0) for label in files), default=0)
        few = share(facts.offending_files, facts.files) <= FEW_FILES and facts.files >= SEVERAL_FILES
        small = share(count, facts.total) <= FEW_ELEMENTS and (of_pixels or count < rarest)
        return few and small and min(files.values(), default=0) > facts.offending_files

    def edits(self, finding: Finding, facts: Facts) -> Iterator[Edit]:
        labels = facts.labels
        if labels is None:
            return
        void = VOID if labels.ignore_index is None else labels.ignore_index
        question = f'Is {listing(sorted(labels.values))} a slip of the annotator (num_classes is right then)?'
        is_map = labels.kind == 'pixels'
        table = dict.fromkeys(labels.values, void)
        ways = list(renumber(facts, table, ASKS, question) if is_map else drop_rows(self, facts, question))
        yield from ways
        if ways and set(labels.values) == {labels.num_classes}:
            lacks = f'Is {labels.num_classes} a class that the list lacks (few files show it)?'
            yield more_classes(facts, labels.num_classes + 1, lacks)
