from __future__ import annotations

from typing import ClassVar, Dict, Iterator, List, Optional

from mmguard.findings.edits import ASKS, SAFE, Edit
from mmguard.findings.facts import LabelFacts
from mmguard.findings.file_edits import rewrite
from mmguard.findings.finding import PROVEN, Finding
from mmguard.findings.rule import DataRule, Facts
from mmguard.findings.views import annotations_of, listing

#: Beginnings of what is wrong with a file as a whole: it must be copied or exported anew, not corrected.
WHOLE_FILE = (
    'cannot be',
    'does not fit',
    'the file is',
    'is not UTF-8',
    'is nested',
    'is damaged',
    'ends in the middle',
    'is no ',
    'is larger',
    'declares an XML entity',
    'the list of images',
    'the folder',
    'no ImageSets',
    'there is no XML',
    'data sets of type',
)
NO_FOLDER = 'there is no such folder of images'


class WrongRecords(DataRule):
    """Records of annotation files that hold something else than readers expect."""

    code = 'MG176'
    shows_values = False
    kinds = ('instances',)
    needs = ('annotations',)
    summary = 'Records of the annotation file are not as they should be: {reasons}.'
    why = 'A reader stops there, or leaves the record out without a word.'
    advice = 'Correct the places listed, or write the file anew. {parts}'
    #: What the fault begins with -> what to do about it.
    part: ClassVar[Dict[str, str]] = {
        'category_id names': 'Ids must be numbers, the same as in "categories" (1 is not "1"): '
        '`ann["category_id"] = int(ann["category_id"])`.',
        'the id of a category': 'Number the categories: `{"id": 1, "name": "..."}`.',
        'iscrowd is neither': 'Write the number 0 or 1, no text: `"0"` counts as true.',
        'bbox is not': 'A box is a list of four numbers, no texts: `ann["bbox"] = [float(v) for v in ann["bbox"]]`.',
        'a category has no name': 'A name is a text ("1", not 1), the same as in the class list of the config: '
        '`cat["name"] = str(cat["name"])`.',
        'the name of a category holds': 'Write the name anew: half of a character cannot stand in a config.',
        'has no "': 'A COCO file has "images", "annotations" and "categories"; other JSON must be converted first.',
        'tags are in an XML namespace': 'Remove `xmlns="..."` and the prefixes of the tags: mmdet asks for '
        '`object`, not for `{namespace}object`.',
        'a shape has no label': 'A shape without a name is no object of any class: name it in Labelme, or delete it.',
        'a shape is of a kind': 'Labelme has polygon, rectangle, circle, point, line, linestrip and mask.',
        'imagePath': 'Write the path of the image, relative to the JSON: `data["imagePath"] = "a.jpg"`.',
        'imageHeight': 'Write the size of the image, or null for both: Labelme looks for itself then.',
        'a hidden folder': 'Delete it (Jupyter makes `.ipynb_checkpoints`): a label is the place among all folders.',
        'the class folders are not': 'Give each split the same folders: a label is the place among their sorted names. '
        'Or name the labels in a file, `ann_file=...` of mmpretrain.',
        'the size is': 'Write the size of the image: `width, height = Image.open(path).size`.',
    }

    otherwise = 'Correct the places listed by hand, or export the file again: it does not say what is meant.'

    def certainty(self, facts: LabelFacts) -> Optional[str]:
        return PROVEN if self._reasons(facts) else None

    def edits(self, finding: Finding, facts: Facts) -> Iterator[Edit]:
        if facts.labels is not None and annotations_of(facts.labels).format == 'coco':
            title = 'Convert ids and "bbox" to numbers and "name" to a string, and leave out the other records.'
            yield from rewrite(self, facts, title, SAFE)
        if facts.labels is None or annotations_of(facts.labels).format != 'labelme':
            return
        question = 'May the shapes that cannot be read go, with the objects that they stand for?'
        yield from rewrite(self, facts, 'leaves them out', ASKS, question)

    def words(self, facts: LabelFacts) -> Dict[str, str]:
        reasons = self._reasons(facts)
        parts = [text for start, text in self.part.items() if any(reason.startswith(start) for reason in reasons)]
        return {
            'reasons': listing(reasons, 4),
            'parts': ' '.join(parts) or 'The `ann_file=...` of the data set can be another one meanwhile.',
        }

    def evidence(self, facts: LabelFacts) -> str:
        return '; '.join(f'{reason}: {listing(places, 3)}' for reason, places in self._reasons(facts).items())

    def _reasons(self, facts: LabelFacts) -> Dict[str, List[str]]:
        unreadable = annotations_of(facts).unreadable
        return {reason: places for reason, places in unreadable.items() if places and is_about_records(reason)}


def is_about_records(reason: str) -> bool:
    """Whether a fault lies in single records, not in the file as a whole.

    Example:
        >>> is_about_records('bbox is not four numbers'), is_about_records('is damaged: invalid literal')
        (True, False)
    """
    return not reason.startswith((*WHOLE_FILE, NO_FOLDER))
