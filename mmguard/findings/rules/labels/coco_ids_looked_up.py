from __future__ import annotations

from typing import Any, Dict, Iterator, List, Optional, Tuple

from mmguard.config.detr_yaml import fits_table, is_remapped
from mmguard.findings.edits import SAFE, Edit
from mmguard.findings.facts import LabelFacts
from mmguard.findings.finding import LIKELY, PROVEN, Finding
from mmguard.findings.rule import DataRule, Example, Facts
from mmguard.findings.rules.labels.yolo.base import yolo_of
from mmguard.findings.views import annotations_of, listing
from mmguard.labels.numbering import COCO_IDS, IDS
from mmguard.text import quantity


class CocoIdsLookedUp(DataRule):
    """``remap_mscoco_category: True`` over categories of other data than COCO."""

    code = 'MG162'
    shows_values = False
    kinds = ('instances',)
    needs = ('annotations',)
    looks_at = ('labels', 'config')
    summary = 'Labels are looked up in the table of the 80 ids of COCO, but the file has other categories.'
    title_converted = 'The label files name other classes than {source}, which has the same images and objects.'
    title_config = 'Labels are looked up among the 80 ids of COCO, but num_classes={number}: the data are not COCO.'
    why = (
        'With remap_mscoco_category: True RT-DETR, D-FINE and DEIM replace category_id by its place among the ids of '
        'COCO (1..90, ten of them missing). An id that is not one of those is a KeyError; the others get the '
        'labels of other classes, in training and in the evaluation. So does convert_coco of ultralytics, by default.'
    )
    example = Example(wrong='remap_mscoco_category: True, num_classes: 3', right='remap_mscoco_category: False')
    limits = 'Own categories whose ids are all among those of COCO are seen only if a label is out of range.'
    advice = (
        'In the YAML of RT-DETR, D-FINE or DEIM write `remap_mscoco_category: False`. Labels are then the ids, and '
        'num_classes is the highest id + 1: `mmguard scan CONFIG.yml` says which. If the ids have large gaps, number '
        'the categories from 0 first. Convert label files of YOLO again, with `convert_coco(..., cls91to80=False)`, '
        'and write `names` in the order of the ids.'
    )

    def find(self, facts: Facts) -> Iterator[Finding]:
        if facts.labels is not None:
            yield from super().find(facts)
        elif facts.config is not None and is_remapped(facts.config.data) and not fits_table(facts.config.file):
            number = facts.config.data['num_classes']
            yield self.report(f'num_classes: {number}', {'number': number}, self.title_config)

    def choose_title(self, facts: LabelFacts) -> str:
        return self.title_converted if yolo_of(facts).original else self.summary

    def describe(self, facts: LabelFacts) -> Dict[str, Any]:
        return {'source': original.source} if (original := yolo_of(facts).original) else {}

    def certainty(self, facts: LabelFacts) -> Optional[str]:
        original = yolo_of(facts).original
        if original is not None:
            return PROVEN if original.is_looked_up else LIKELY
        if annotations_of(facts).labelled_by != 'COCO ids':
            return None
        return PROVEN if self._unknown(facts) or facts.values else None

    def edits(self, finding: Finding, facts: Facts) -> Iterator[Edit]:
        if facts.labels is None or yolo_of(facts.labels).original is not None:
            return
        enough = max(annotations_of(facts.labels).categories, default=0) + 1
        options: List[Tuple[str, Any]] = [('labels', IDS)]
        lines = ['remap_mscoco_category: False']
        if enough != facts.labels.num_classes:
            options.append(('num_classes', enough))
            lines.append(f'num_classes: {enough}')
        title = 'Train on the ids of the file, with as many outputs as the highest id, and one more.'
        yield Edit(title, SAFE, options=tuple(options), lines=tuple(lines))

    def evidence(self, facts: LabelFacts) -> str:
        original = yolo_of(facts).original
        if original is not None:
            said = listing(f'{name}: {here:,} here, {there:,} there' for name, (here, there) in original.counts.items())
            return f'{said}{"; the labels are places among the ids of COCO" * original.is_looked_up}'
        unknown, number = self._unknown(facts), len(annotations_of(facts).categories)
        said = f'{quantity(number, "category")}, ids {listing(annotations_of(facts).categories)}'
        if unknown:
            annotations = quantity(sum(unknown.values()), 'annotation')
            return f'{said}; not ids of COCO: {listing(unknown)} ({annotations})'
        return f'{said}; {facts.evidence}'

    def files(self, facts: LabelFacts) -> List[str]:
        return annotations_of(facts).sources

    def _unknown(self, facts: LabelFacts) -> Dict[int, int]:
        """Count the annotations of each id that COCO does not have."""
        found = annotations_of(facts)
        return {i: found.instances_of.get(str(i), 0) for i in found.categories if i not in COCO_IDS}
