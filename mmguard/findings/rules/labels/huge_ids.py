from __future__ import annotations

from dataclasses import replace
from typing import Iterator, List, Optional

from mmguard.findings.edits import SAFE, Edit
from mmguard.findings.facts import LabelFacts
from mmguard.findings.file_edits import rewrite
from mmguard.findings.finding import Finding
from mmguard.findings.rule import DataRule, Facts
from mmguard.findings.views import annotations_of, certainty_of_share, named_like, share

#: No model has so many classes.
HUGE = 5000


class HugeIds(DataRule):
    """Ids of a database, of instances or of panoptic segments."""

    code = 'MG137'
    kinds = ('pixels', 'instances')
    summary = 'Ids such as {values} are no class labels.'
    why = (
        'They were never renumbered to 0..N-1. On a GPU the failed lookup shows later and elsewhere, for instance as '
        'an assertion about boxes that are right.'
    )
    place = '`CUDA_LAUNCH_BLOCKING=1` shows the line that really fails.'
    advice = (
        'Do not touch the boxes. Renumber the categories to 0..{last}: '
        '`label_of = {{cat_id: i for i, cat_id in enumerate(sorted(cat_ids))}}`, or load them with a data set class '
        f"that does (mmdet's CocoDataset). {place}"
    )
    pixels = (
        'Files of instance or panoptic ids were taken for label maps. Of Cityscapes use *_gtFine_labelTrainIds.png, '
        "`seg_map_suffix='_gtFine_labelTrainIds.png'`, not *_instanceIds.png; in COCO panoptic (ids are "
        'R + 256 G + 65536 B) the category stands in segments_info of the JSON. Else renumber the ids to '
        '0..{last} when the files are written.'
    )

    def certainty(self, facts: LabelFacts) -> Optional[str]:
        huge = [value for value in facts.values if value >= HUGE]
        return certainty_of_share(share(len(huge), len(facts.values)))

    def edits(self, finding: Finding, facts: Facts) -> Iterator[Edit]:
        if facts.labels is not None and facts.labels.annotations is not None:
            first = annotations_of(facts.labels).min_label
            title = f'Renumber the categories from {first}, and leave the boxes as they are.'
            for edit in rewrite(self, facts, title, SAFE, renumber=first):
                yield replace(edit, notes=(*edit.notes, self.place))

    def advise(self, facts: LabelFacts) -> str:
        return self.advice if facts.kind == 'instances' else self.pixels

    def files(self, facts: LabelFacts) -> List[str]:
        return named_like(facts, '_instanceids') or super().files(facts)
