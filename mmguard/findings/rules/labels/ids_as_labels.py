from __future__ import annotations

from dataclasses import replace
from typing import Dict, Iterable, Iterator, List, Optional

from mmguard.findings.edits import ASKS, SAFE, Edit
from mmguard.findings.facts import LabelFacts
from mmguard.findings.file_edits import rewrite
from mmguard.findings.finding import POSSIBLE, PROVEN, Finding
from mmguard.findings.rule import DataRule, Facts
from mmguard.findings.views import annotations_of, certainty_of_share, config_of, label_share, listing
from mmguard.labels.numbering import COCO, COCO_IDS, IDS, POSITIONS, titles
from mmguard.text.words import counted

#: From here on ids are none that a model could have outputs for.
_MOST = 1000
#: Whoever looks ids up in COCO's table trains other classes, often without an error.
_OWN_IDS = 'RT-DETR, D-FINE and DEIM need `remap_mscoco_category: False` for it.'


class IdsAsLabels(DataRule):
    """Category ids of a COCO file, used as labels as they are, or perhaps so."""

    code = 'MG138'
    kinds = ('instances',)
    needs = ('annotations',)
    summary = 'Category ids are used as labels: they are {ids}, but num_classes={num_classes} means {first}..{last}.'
    why = (
        f'Who renumbers the categories ({titles(POSITIONS)}) trains 0..N-1 whatever the ids are. Who takes category_id '
        f'as the label ({titles(IDS)}) does not: in DETR and its like label num_classes means "no object" and is '
        'trained so without a word, a larger one ends the run; in torchvision num_classes counts the background, 0.'
    )
    advice = 'Either {renumber}{or_enough}.'
    only_enough = (
        'Give the model the highest id + 1, for its num_classes counts the background: `num_classes={enough}`.'
    )
    unknown = (
        '{raw}{beyond} out of range of num_classes={num_classes} where category_id is the label '
        f'({titles(IDS)}, loops of your own); fine where categories are renumbered ({titles(POSITIONS)}).'
    )
    raw = 'These are raw ids of COCO, 1..90 with gaps. '
    which = (
        f'Does the training take ids as labels ({titles(IDS)}, loops of your own) or positions ({titles(POSITIONS)}; '
        'nothing is to be changed then)? With ids:'
    )
    unknown_advice = (
        'Say who trains: `--framework NAME`, or `--labels positions`, `--labels ids`. Where ids are labels, '
        '{renumber}{or_enough}.'
    )
    needed = 'Labels are the category ids, {ids}: the model needs num_classes={enough}; the file has {number}.'
    needed_advice = 'With `num_classes={enough}` they are fine: `--num-classes {enough}`. With fewer, {renumber}.'
    background = 'Category id 0 is trained as background: torchvision keeps label 0 for it.'
    background_advice = (
        'Add one to every category id, and count the background: `num_classes={with_background}`. Only RetinaNet and '
        'FCOS of torchvision take 0 as a class.'
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
        """No error where it depends on what nobody said: the same file is right for one framework."""
        return 'error' if facts.values and annotations_of(facts).labelled_by != 'unknown' else 'info'

    def summarise(self, facts: LabelFacts) -> str:
        if annotations_of(facts).labelled_by == 'unknown':
            return self.unknown
        if self._is_background(facts):
            return self.background
        return self.summary if facts.values else self.needed

    def advise(self, facts: LabelFacts) -> str:
        first, ids = annotations_of(facts).min_label, self._ids(facts)
        if annotations_of(facts).labelled_by == 'unknown':
            return self.unknown_advice
        if self._is_background(facts):
            return self.background_advice
        if not facts.values:
            return self.needed_advice
        return self.only_enough if ids == list(range(first, first + len(ids))) else self.advice

    def edits(self, finding: Finding, facts: Facts) -> Iterator[Edit]:
        if facts.labels is None:
            return
        if annotations_of(facts.labels).labelled_by != 'unknown':
            yield from self._for_ids(facts, facts.labels, '')
            return
        for place, edit in enumerate(self._for_ids(facts, facts.labels, 'Are ids the labels? ')):
            asked = edit.question[len('Are ids the labels? ') :]
            yield edit if place else replace(edit, question=f'{self.which} {asked}'.strip())
        yield Edit(
            'Change nothing, and say so: --labels positions, or --framework NAME.',
            ASKS,
            f'Are positions the labels ({titles(POSITIONS)})?',
            options=(('labels', POSITIONS),),
        )

    def _for_ids(self, facts: Facts, labels: LabelFacts, takes_ids: str) -> Iterator[Edit]:
        first, ids = annotations_of(labels).min_label, self._ids(labels)
        contiguous = ids == list(range(first, first + len(ids)))
        title = f'Number the categories from {first}, in their order.'
        for edit in (
            ()
            if contiguous
            else rewrite(self, facts, title, ASKS if takes_ids else SAFE, takes_ids.strip(), renumber=first)
        ):
            if not first:
                edit = replace(edit, notes=(*edit.notes, _OWN_IDS))
            if self._is_background(labels):
                enough = len(ids) + first
                lines = (f'num_classes={enough}',)  # counts the background
                edit = replace(edit, lines=lines, options=(('num_classes', enough),))
            yield edit
        if set(ids) == set(COCO_IDS) and not first:
            yield Edit(
                'Let the framework map the ids of COCO (RT-DETR, D-FINE, DEIM).',
                ASKS,
                f'{takes_ids}Has what you train with this switch?',
                options=(('labels', COCO),),
                lines=('remap_mscoco_category: True',),
            )
        if not self._is_background(labels) and ids[-1] < _MOST:
            title = 'Give the model as many outputs as the highest id, and one more.'
            question = takes_ids.strip() if contiguous else f'{takes_ids}Shall the ids stay as they are?'
            options, lines = (('num_classes', ids[-1] + 1),), (f'num_classes={ids[-1] + 1}',)
            notes = () if first else (_OWN_IDS,)
            yield Edit(title, ASKS if question else SAFE, question, options=options, lines=lines, notes=notes)

    def words(self, facts: LabelFacts) -> Dict[str, object]:
        first, ids = annotations_of(facts).min_label, self._ids(facts)
        by = f'sorted(cat_ids), {first}' if first else 'sorted(cat_ids)'
        label_of = f'label_of = {{cat_id: i for i, cat_id in enumerate({by})}}'
        enough = ids[-1] + 1
        return {
            'ids': listing(ids),
            'raw': self.raw if self._are_raw(ids) else '',
            'beyond': _are(self._beyond(facts)),
            'number': counted(len(ids), 'category'),
            'first': first,
            'renumber': f'renumber the ids in the JSON to {first}..{first + len(ids) - 1}, `{label_of}`',
            'or_enough': f', or give the model the highest id + 1: `num_classes={enough}`' if enough <= _MOST else '',
            'enough': enough,
            'with_background': enough + 1,
        }

    def evidence(self, facts: LabelFacts) -> str:
        ids, beyond = listing(self._ids(facts)), self._beyond(facts)
        if self.severity_of(facts) == 'error':
            return facts.evidence
        if annotations_of(facts).labelled_by != 'unknown':
            return f'category ids {ids} in {counted(facts.files, "image")}'
        classes = f'{counted(facts.num_classes, "class")}, 0..{facts.num_classes - 1}'
        number = counted(sum(beyond.values()), 'annotation')
        return f'category ids {ids}; as labels of {classes}, {listing(beyond)} would be out of range ({number})'

    def _ids(self, facts: LabelFacts) -> List[int]:
        return sorted(annotations_of(facts).categories) or [0]

    def _beyond(self, facts: LabelFacts) -> Dict[int, int]:
        """Ids of annotations that would be no valid labels -> how many annotations."""
        instances = annotations_of(facts).instances_of
        counts = {number: instances.get(str(number), 0) for number in self._ids(facts)}
        return {number: n for number, n in counts.items() if n and not 0 <= number < facts.num_classes}

    def _are_raw(self, ids: List[int]) -> bool:
        """Whether they are COCO's own, with its gaps, perhaps not all: of so many others some would be in the gaps."""
        return len(ids) > len(COCO_IDS) / 2 and set(ids) <= set(COCO_IDS) and ids[-1] > len(ids)

    def _is_background(self, facts: LabelFacts) -> bool:
        return 0 in facts.values and annotations_of(facts).min_label > 0


def _are(ids: Iterable[int]) -> str:
    ids = list(ids)
    return f'{"Category id" if len(ids) == 1 else "Category ids"} {listing(ids)} {"is" if len(ids) == 1 else "are"}'
