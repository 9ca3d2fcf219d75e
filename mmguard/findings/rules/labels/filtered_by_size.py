from __future__ import annotations

from typing import Iterator, Optional

from mmguard.findings.edits import ASKS, Edit
from mmguard.findings.facts import LabelFacts
from mmguard.findings.finding import POSSIBLE, PROVEN, Finding
from mmguard.findings.rule import DataRule, Example, Facts
from mmguard.findings.usual_edits import set_filter
from mmguard.findings.views import annotations_of, is_trained_on, share


class FilteredBySize(DataRule):
    """Images below ``min_size``, which the data set leaves out."""

    code = 'MG145'
    shows_values = False
    kinds = ('pixels', 'instances')
    needs = ('annotations',)
    summary = 'Images are left out because they are smaller than min_size.'
    why = 'If none is left, training ends with "need at least one array to concatenate": the labels are right.'
    example = Example(wrong='filter_cfg=dict(min_size=32)  # images of 28 x 28', right='filter_cfg=dict(min_size=1)')
    limits = 'If fewer than a fifth of the images are left out, nothing is said.'
    advice = (
        'If small images are to be trained on, write `filter_cfg=dict(filter_empty_gt=True, min_size=1)` in the '
        'training data set. If not, nothing needs to change as long as some images are left.'
    )

    def certainty(self, facts: LabelFacts) -> Optional[str]:
        found = annotations_of(facts)
        part = share(found.small_images, found.images)
        if not is_trained_on(facts):
            return None
        return PROVEN if part == 1 else POSSIBLE if part >= 0.2 else None

    def edits(self, finding: Finding, facts: Facts) -> Iterator[Edit]:
        if facts.config is not None:
            yield set_filter(facts.config, 'min_size', 1, ASKS, 'Are the small images to be trained on?')

    def severity_of(self, facts: LabelFacts) -> str:
        return 'error' if self.certainty(facts) == PROVEN else 'warning'

    def evidence(self, facts: LabelFacts) -> str:
        found = annotations_of(facts)
        return f'{found.small_images:,} of {found.images:,} images are too small'
