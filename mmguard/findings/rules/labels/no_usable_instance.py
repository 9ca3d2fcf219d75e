from __future__ import annotations

from typing import Dict, Iterator, List, Optional

from mmguard.findings.edits import ASKS, SAFE, Edit
from mmguard.findings.facts import LabelFacts
from mmguard.findings.file_edits import rewrite
from mmguard.findings.finding import PROVEN, Finding
from mmguard.findings.rule import DataRule, Example, Facts
from mmguard.findings.usual_edits import set_filter
from mmguard.findings.views import annotations_of, is_trained_on, listing
from mmguard.text import quantity

CROWD, IGNORED = 'iscrowd=1 (VOC: difficult)', 'ignore is set'
NO_IMAGE, NO_AREA = 'its image is not listed', 'area is 0'
SMALL = 'its image is smaller than min_size'
#: Reasons to leave an annotation out that this rule explains; what the class list leaves out has a rule of its own.
REASONS = {NO_IMAGE, NO_AREA, IGNORED, 'thinner than one pixel', 'no part inside the image'}


class NoUsableInstance(DataRule):
    """Annotation files without a single object to train on."""

    code = 'MG174'
    aliases = ('MG145', 'MG148')
    shows_values = False
    kinds = ('instances',)
    needs = ('annotations',)
    summary = 'No image has an object to train on.'
    title = 'No image has an object to train on: {reasons}.'
    why = '"need at least one array to concatenate", or losses of boxes that are 0 from the first iteration.'
    example = Example(
        wrong='"iscrowd": 1 in every annotation',
        right='"iscrowd": 0',
    )
    limits = 'It knows what mmdet leaves out; your own data set class may leave out more.'
    advice = (
        'An annotation is trained on if "iscrowd" (VOC: difficult) and "ignore" are 0 or missing, "area" is above 0, '
        'image_id is the id of a listed image (1 is not "1"), and the box is in pixels, inside the image and at least '
        'one pixel wide: correct what is not. Small images are trained on with `filter_cfg=dict(min_size=1)`. Without '
        'any annotation, name the file of the training, `ann_file=...`, not that of a test set.'
    )

    def certainty(self, facts: LabelFacts) -> Optional[str]:
        found = annotations_of(facts)
        none = found.images > 0 and found.images in (found.images_without_target, found.small_images)
        # What is named more exactly elsewhere: other labels, boxes that cannot be used, categories without a name.
        elsewhere = facts.values or facts.reasons or found.unnamed or found.unreadable
        return PROVEN if none and is_trained_on(facts) and not elsewhere and self._reasons(facts) else None

    def edits(self, finding: Finding, facts: Facts) -> Iterator[Edit]:
        if facts.labels is None or not annotations_of(facts.labels).annotations:
            return
        reasons = self._reasons(facts.labels)
        if SMALL in reasons and facts.config is not None:
            question = 'Are the small images to be trained on?'
            yield set_filter(facts.config, 'min_size', 1, ASKS, question)
        if NO_IMAGE in reasons:
            yield from rewrite(self, facts, 'Convert every image_id that is a string to a number.', SAFE)
        if NO_AREA in reasons:
            yield from rewrite(self, facts, 'Write the areas of the boxes.', SAFE)
        if {CROWD, IGNORED} & set(reasons):
            question = 'Is each of them one object, not a crowd?'
            yield from rewrite(self, facts, 'Train them as single objects.', ASKS, question, no_crowds=True)

    def describe(self, facts: LabelFacts) -> Dict[str, str]:
        return {'reasons': listing(self._reasons(facts))}

    def evidence(self, facts: LabelFacts) -> str:
        found = annotations_of(facts)
        numbers: List[str] = [
            f'{quantity(number, "annotation")}: {why}' for why, number in self._reasons(facts).items()
        ]
        return f'{quantity(found.images, "image")}; {", ".join(numbers)}'

    def _reasons(self, facts: LabelFacts) -> Dict[str, int]:
        """Return why nothing is left -> annotations, the most first."""
        found = annotations_of(facts)
        if not found.annotations:
            return {'the file has no annotations': 0}
        known = {why: number for why, number in found.left_out.items() if why in REASONS}
        if found.small_images == found.images:
            known[SMALL] = found.annotations
        if found.crowds:
            known[CROWD] = found.crowds
        return dict(sorted(known.items(), key=lambda item: -item[1]))
