from __future__ import annotations

from typing import Iterator, List, Optional

from mmguard.findings.edits import SAFE, Edit
from mmguard.findings.facts import LabelFacts
from mmguard.findings.file_edits import rewrite
from mmguard.findings.finding import Finding
from mmguard.findings.rule import DataRule, Example, Facts
from mmguard.findings.views import annotations_of, certainty_of_share, find_files_named, share

#: No model has so many classes.
HUGE = 5000


class HugeIds(DataRule):
    """Ids of a database, of instances or of panoptic segments."""

    code = 'MG137'
    kinds = ('pixels', 'instances')
    summary = 'Ids of a database, of instances or of segments are used as class labels.'
    title = 'Ids such as {values} are not class labels.'
    why = (
        'They were never renumbered to 0..N-1. On a GPU the failed lookup shows later and elsewhere, for instance as '
        'an assertion about boxes that are right.'
    )
    example = Example(wrong='"category_id": 90000417', right='"category_id": 3')
    limits = 'Ids below 5,000 are left to other rules.'
    advice = (
        'Renumber the ids to 0..{last}. Of categories: `label = sorted(cat_ids).index(cat_id)`, or a data set class '
        'that does so (CocoDataset of mmdet); leave the boxes. Label maps of instance or panoptic ids are the wrong '
        'files: in Cityscapes use *_gtFine_labelTrainIds.png, in COCO panoptic the category is in segments_info of the '
        'JSON.'
    )
    pytorch = (
        'Renumber the ids to 0..{last} when the data set is read (torchvision detectors count from 1): label = '
        'sorted(cat_ids).index(cat_id). Masks of instance or panoptic ids need a table to classes.'
    )

    def certainty(self, facts: LabelFacts) -> Optional[str]:
        huge = [value for value in facts.values if value >= HUGE]
        return certainty_of_share(share(len(huge), len(facts.values)))

    def edits(self, finding: Finding, facts: Facts) -> Iterator[Edit]:
        if facts.labels is not None and facts.labels.annotations is not None:
            first = annotations_of(facts.labels).min_label
            title = f'Renumber the categories from {first}, and leave the boxes as they are.'
            yield from rewrite(self, facts, title, SAFE, renumber=first)

    def files(self, facts: LabelFacts) -> List[str]:
        return find_files_named(facts, '_instanceids') or super().files(facts)
