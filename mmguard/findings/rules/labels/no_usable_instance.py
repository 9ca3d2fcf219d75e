from __future__ import annotations

from typing import ClassVar, Dict, Iterator, List, Optional

from mmguard.findings.edits import ASKS, SAFE, Edit
from mmguard.findings.facts import LabelFacts
from mmguard.findings.file_edits import rewrite
from mmguard.findings.finding import PROVEN, Finding
from mmguard.findings.rule import DataRule, Facts
from mmguard.findings.views import annotations_of, is_trained_on
from mmguard.text.words import counted

CROWD, NO_IMAGE = 'iscrowd=1', 'its image is not listed'


class NoUsableInstance(DataRule):
    """Annotation files without a single object to train on."""

    code = 'MG174'
    aliases = ('MG148',)
    shows_values = False
    kinds = ('instances',)
    needs = ('annotations',)
    summary = 'No image has an object to train on: {why_}.'
    why = '"need at least one array to concatenate", or losses of boxes that are 0 from the first iteration.'
    advice = 'Look at what is left out, and why: an annotation must pass all of that to be trained on. {parts}'
    #: Why -> what to do about it.
    part: ClassVar[Dict[str, str]] = {
        CROWD: 'Objects with `"iscrowd": 1` are never trained on; a converter that writes masks as RLE often sets it: '
        '`ann["iscrowd"] = 0`, but for real crowds.',
        'difficult': 'Objects with `<difficult>1</difficult>` are not trained on: write 0.',
        NO_IMAGE: '`image_id` must be the id of an entry of `"images"`, of the same type: 1 is not "1".',
        'area is 0': 'mmdet leaves out what has `"area": 0`: `ann["area"] = ann["bbox"][2] * ann["bbox"][3]`.',
        'ignore is set': 'mmdet leaves out what has `"ignore": 1`: remove that key.',
        'thinner than one pixel': 'mmdet leaves out boxes with width or height below 1: are they in pixels? '
        '`x, y, w, h = ann["bbox"]` must be.',
        'no part inside the image': 'mmdet leaves out boxes outside of the image: compare `"width"` and `"height"` of '
        'the images, and the order of the numbers in `"bbox"`.',
    }
    empty = (
        'Name the file with the annotations of the training, `ann_file=...`: files for testing (image_info_test) list '
        'images alone. An export may also have dropped them.'
    )

    def certainty(self, facts: LabelFacts) -> Optional[str]:
        found = annotations_of(facts)
        none = found.images > 0 and found.images_without_target == found.images
        # What is named more exactly elsewhere: other labels, boxes that cannot be used, categories without a name.
        elsewhere = facts.values or facts.reasons or found.unnamed or found.unreadable
        return PROVEN if none and is_trained_on(facts) and not elsewhere and self._reasons(facts) else None

    otherwise = 'Look at what is left out, and why: an annotation must pass all of that to be trained on.'

    def edits(self, finding: Finding, facts: Facts) -> Iterator[Edit]:
        if facts.labels is None or not annotations_of(facts.labels).annotations:
            return
        reasons = self._reasons(facts.labels)
        if NO_IMAGE in reasons:
            yield from rewrite(self, facts, 'Convert every image_id that is a string to a number.', SAFE)
        if 'area is 0' in reasons:
            yield from rewrite(self, facts, 'Write the areas of the boxes.', SAFE)
        if {CROWD, 'difficult', 'ignore is set'} & set(reasons):
            question = 'Is each of them one object, no crowd?'
            yield from rewrite(self, facts, 'Train them as single objects.', ASKS, question, no_crowds=True)

    def advise(self, facts: LabelFacts) -> str:
        return self.advice if annotations_of(facts).annotations else self.empty

    def words(self, facts: LabelFacts) -> Dict[str, str]:
        reasons = self._reasons(facts)
        parts = [self.part[reason] for reason in reasons if reason in self.part]
        return {'why_': ', '.join(reasons), 'parts': ' '.join(parts)}

    def evidence(self, facts: LabelFacts) -> str:
        found = annotations_of(facts)
        numbers: List[str] = [f'{counted(number, "annotation")}: {why}' for why, number in self._reasons(facts).items()]
        return f'{counted(found.images, "image")}; {", ".join(numbers)}'

    def _reasons(self, facts: LabelFacts) -> Dict[str, int]:
        """Why nothing is left -> annotations, the most first; what the class list leaves out has a cause of its own."""
        found = annotations_of(facts)
        if not found.annotations:
            return {'there is no annotation at all': 0}
        known = {why: number for why, number in found.left_out.items() if why in self.part}
        if found.crowds:
            known['difficult' if found.format == 'voc' else CROWD] = found.crowds
        return dict(sorted(known.items(), key=lambda item: -item[1]))
