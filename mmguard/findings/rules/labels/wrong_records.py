from __future__ import annotations

from typing import Dict, Iterator, List, Optional, Sequence

from mmguard.findings.edits import ASKS, SAFE, Edit
from mmguard.findings.facts import LabelFacts
from mmguard.findings.file_edits import rewrite
from mmguard.findings.finding import PROVEN, Finding
from mmguard.findings.rule import DataRule, Example, Facts
from mmguard.findings.views import annotations_of, listing

#: Beginnings of what is wrong with a file as a whole: it must be copied or exported again, not corrected.
WHOLE_FILE = (
    'cannot be',
    'does not fit',
    'the file is',
    'is not UTF-8',
    'is nested',
    'is damaged',
    'ends in the middle',
    'is not XML',
    'is not JSON',
    'is not a file of',
    'is larger',
    'declares an XML entity',
    'the list of images',
    'the folder',
    'no ImageSets',
    'there is no XML',
    'data sets of type',
)
NO_FOLDER = 'there is no such folder of images'
#: Beginnings of faults of folders that are the classes.
CLASS_FOLDERS = ('a hidden folder', 'the class folders', 'there are fewer class folders')


class WrongRecords(DataRule):
    """Records of annotation files that hold something else than readers expect."""

    code = 'MG176'
    shows_values = False
    kinds = ('instances',)
    needs = ('annotations',)
    summary = 'Records of the annotation file have wrong types or lack entries.'
    title = 'Records of the annotation file are not as readers expect them: {reasons}.'
    title_folders = 'Folders are the classes, and not as readers expect them: {reasons}.'
    why = 'A reader stops there, or leaves the record out silently.'
    example = Example(
        wrong='"bbox": ["10", "20", "4", "5"], "category_id": "1"',
        right='"bbox": [10, 20, 4, 5], "category_id": 1',
    )
    limits = 'It knows what the readers of each format need, not what your own reader allows.'
    advice = (
        'Correct the places listed (delete hidden folders), or export the file again. In COCO "images", "annotations" '
        'and "categories" are lists; ids, iscrowd (0 or 1) and the four numbers of a box are numbers, names are texts. '
        'XML has no namespace, and a size. Labelme shapes have a label, and imagePath is relative to the JSON. Where '
        'folders are the classes, each split has the same.'
    )

    def certainty(self, facts: LabelFacts) -> Optional[str]:
        return PROVEN if self._reasons(facts) else None

    def choose_title(self, facts: LabelFacts) -> str:
        return self.title_folders if self._is_about_folders(facts) else self.title

    def find_superseded(self, facts: LabelFacts) -> Sequence[str]:
        # One folder more moves the number of every class after it.
        return super().find_superseded(facts) if self._is_about_folders(facts) else ()

    def _is_about_folders(self, facts: LabelFacts) -> bool:
        return any(reason.startswith(CLASS_FOLDERS) for reason in self._reasons(facts))

    def edits(self, finding: Finding, facts: Facts) -> Iterator[Edit]:
        names_from = '' if facts.labels is None else annotations_of(facts.labels).names_from
        if names_from == 'categories':
            title = 'Convert ids and "bbox" to numbers and "name" to a string, and leave out the other records.'
            yield from rewrite(self, facts, title, SAFE)
        elif not names_from:
            question = 'May the records that cannot be read go, with their objects?'
            yield from rewrite(self, facts, 'Leave them out.', ASKS, question)

    def describe(self, facts: LabelFacts) -> Dict[str, str]:
        reasons = self._reasons(facts)
        return {'reasons': listing(reasons, 4)}

    def evidence(self, facts: LabelFacts) -> str:
        return '; '.join(f'{reason}: {listing(places, 3)}' for reason, places in self._reasons(facts).items())

    def _reasons(self, facts: LabelFacts) -> Dict[str, List[str]]:
        unreadable = annotations_of(facts).unreadable
        return {reason: places for reason, places in unreadable.items() if places and is_about_records(reason)}


def is_about_records(reason: str) -> bool:
    """True if a fault is in single records, not in the file as a whole.

    Example:
        >>> is_about_records('bbox is not four numbers'), is_about_records('is damaged: invalid literal')
        (True, False)
    """
    return not reason.startswith((*WHOLE_FILE, NO_FOLDER))
