from __future__ import annotations

from dataclasses import replace
from typing import Dict, Iterator, List, Optional

from mmguard.findings.edits import ASKS, SAFE, Edit
from mmguard.findings.facts import LabelFacts
from mmguard.findings.file_edits import rewrite
from mmguard.findings.finding import POSSIBLE, PROVEN, Finding
from mmguard.findings.rule import DataRule, Example, Facts
from mmguard.findings.views import annotations_of, certainty_of_share, config_of, label_share, listing
from mmguard.labels.numbering import COCO, COCO_IDS, IDS, POSITIONS, framework_titles
from mmguard.text import quantity

#: Models have outputs for ids up to here.
_MOST = 1000
#: Whoever looks ids up in COCO's table trains other classes, often without an error.
_OWN_IDS = 'RT-DETR, D-FINE and DEIM need `remap_mscoco_category: False` for it.'
_ASKED = f'Does the training take ids as labels ({framework_titles(IDS)}, loops of your own)?'


class IdsAsLabels(DataRule):
    """Category ids of a COCO file that are used as labels, or may be."""

    code = 'MG138'
    kinds = ('instances',)
    needs = ('annotations',)
    summary = 'Category ids are used as labels, but they do not fit num_classes.'
    title = 'Category ids are used as labels: they are {ids}, but num_classes={num_classes} means {first}..{last}.'
    title_no_class = 'num_classes={num_classes} leaves no class for an object: the background counts as class 0 here.'
    title_needed = 'Labels are the category ids, {ids}: the outputs must reach to {highest}; the file has {number}.'
    title_background = 'Category id 0 is trained as background: torchvision keeps label 0 for it.'
    title_unknown = (
        'Category ids may be used as labels: with num_classes={num_classes}, {beyond} would be out of range. They '
        'are fine if the categories are renumbered.'
    )
    why = (
        f'{framework_titles(POSITIONS)} renumber the categories to 0..N-1, whatever the ids are. '
        f'{framework_titles(IDS)} take category_id '
        'as the label: in DETR and its like label num_classes means "no object" and is trained so without an error, a '
        'larger one ends the run; in torchvision num_classes counts the background, 0.'
    )
    example = Example(wrong='DETR: category ids 1..3, num_classes=3', right='num_classes=4  # the highest id + 1')
    limits = 'A loop of your own may renumber the ids: say so with `--labels positions`.'
    advice = (
        'Say what the training takes as labels: `--labels positions` (nothing needs to change then), `--labels ids` or '
        '`--framework NAME`. With ids, write the highest id + 1, `num_classes={enough}`, or renumber the ids from '
        '{first} without gaps. Torchvision trains id 0 as background (RetinaNet and FCOS do not): number from 1, and '
        'count the background.'
    )

    def certainty(self, facts: LabelFacts) -> Optional[str]:
        found = annotations_of(facts)
        ids = self._ids(facts)
        if not found.categories or config_of(facts).framework == 'mmdet':
            return None
        if found.labelled_by == 'unknown':
            return POSSIBLE if self._beyond(facts) else None
        if found.labelled_by != 'category id':
            return None
        if self._is_background(facts):
            return PROVEN
        if facts.values:
            known = set() < set(facts.values) - set(found.unnamed) <= set(ids) and ids[-1] < _MOST
            return certainty_of_share(label_share(facts)) if known and ids != list(range(len(ids))) else None
        return PROVEN if found.classes_counted and facts.num_classes > len(ids) + found.min_label else None

    def severity_of(self, facts: LabelFacts) -> str:
        """Return no error where it depends on the framework, which is not known."""
        return 'error' if facts.values and annotations_of(facts).labelled_by != 'unknown' else 'info'

    def choose_title(self, facts: LabelFacts) -> str:
        if annotations_of(facts).labelled_by == 'unknown':
            return self.title_unknown
        if self._is_background(facts):
            return self.title_background
        if facts.values and facts.num_classes <= annotations_of(facts).min_label:
            return self.title_no_class
        return self.title if facts.values else self.title_needed

    def edits(self, finding: Finding, facts: Facts) -> Iterator[Edit]:
        if facts.labels is None or annotations_of(facts.labels).classes_counted:
            return  # how many classes the model has decides what is wrong
        is_unknown = annotations_of(facts.labels).labelled_by == 'unknown'
        yield from self._fit_ids(facts, facts.labels, _ASKED if is_unknown else '')
        if is_unknown:
            title = 'Change nothing, and say so: --labels positions, or --framework NAME.'
            question = f'Are positions the labels ({framework_titles(POSITIONS)})?'
            yield Edit(title, ASKS, question, options=(('labels', POSITIONS),))

    def _fit_ids(self, facts: Facts, labels: LabelFacts, question: str) -> Iterator[Edit]:
        first, ids = annotations_of(labels).min_label, self._ids(labels)
        contiguous = ids == list(range(first, first + len(ids)))
        if not contiguous:
            title = f'Number the categories from {first}, in their order.'
            for edit in rewrite(self, facts, title, ASKS if question else SAFE, question, renumber=first):
                if not first:
                    edit = replace(edit, notes=(*edit.notes, _OWN_IDS))
                if self._is_background(labels):
                    enough = len(ids) + first  # counts the background
                    edit = replace(edit, lines=(f'num_classes={enough}',), options=(('num_classes', enough),))
                yield edit
        if set(ids) == set(COCO_IDS) and not first:
            title = 'Let the framework map the ids of COCO (RT-DETR, D-FINE, DEIM).'
            asked, lines = 'Does your training code know remap_mscoco_category?', ('remap_mscoco_category: True',)
            yield Edit(title, ASKS, asked, options=(('labels', COCO),), lines=lines)
        if not self._is_background(labels) and ids[-1] < _MOST:
            title = 'Give the model as many outputs as the highest id, and one more.'
            asked = question if contiguous else 'Shall the ids stay the labels as they are?'
            options, lines = (('num_classes', ids[-1] + 1),), (f'num_classes={ids[-1] + 1}',)
            notes = () if first else (_OWN_IDS,)
            yield Edit(title, ASKS if asked else SAFE, asked, options=options, lines=lines, notes=notes)

    def describe(self, facts: LabelFacts) -> Dict[str, object]:
        ids = self._ids(facts)
        return {
            'ids': listing(ids),
            'beyond': listing(self._beyond(facts)),
            'number': quantity(len(ids), 'category'),
            'first': annotations_of(facts).min_label,
            'highest': ids[-1],
            'enough': ids[-1] + 1,
        }

    def evidence(self, facts: LabelFacts) -> str:
        ids, beyond = listing(self._ids(facts)), self._beyond(facts)
        if self.severity_of(facts) == 'error':
            return facts.evidence
        if annotations_of(facts).labelled_by != 'unknown':
            return f'category ids {ids} in {quantity(facts.files, "image")}'
        classes = f'{quantity(facts.num_classes, "class")}, 0..{facts.num_classes - 1}'
        number = quantity(sum(beyond.values()), 'annotation')
        raw = ' (those of COCO, with gaps)' if self._are_raw(self._ids(facts)) else ''
        return f'category ids {ids}{raw}; as labels of {classes}, {listing(beyond)} would be out of range ({number})'

    def _ids(self, facts: LabelFacts) -> List[int]:
        return sorted(annotations_of(facts).categories) or [0]

    def _beyond(self, facts: LabelFacts) -> Dict[int, int]:
        """Count the annotations of each id that would be out of range as a label."""
        instances = annotations_of(facts).instances_of
        counts = {number: instances.get(str(number), 0) for number in self._ids(facts)}
        return {number: n for number, n in counts.items() if n and not 0 <= number < facts.num_classes}

    def _are_raw(self, ids: List[int]) -> bool:
        """Return True if they are those of COCO, with its gaps: of so many others some would be in the gaps."""
        return len(ids) > len(COCO_IDS) / 2 and set(ids) <= set(COCO_IDS) and ids[-1] > len(ids)

    def _is_background(self, facts: LabelFacts) -> bool:
        return 0 in facts.values and annotations_of(facts).min_label > 0
