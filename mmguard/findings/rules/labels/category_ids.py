"""Rules about category ids that are used as labels, or looked up in the list of the 80 COCO ids."""

from __future__ import annotations

from dataclasses import replace
from typing import Dict, Iterator, List, Optional

from mmguard.config.other_styles import fits_coco_ids, is_remapped
from mmguard.facts.labels import LabelFacts
from mmguard.findings.config_edits import state_num_classes
from mmguard.findings.edits import Edit
from mmguard.findings.file_edits import rewrite
from mmguard.findings.finding import ERROR, INFO, LIKELY, POSSIBLE, PROVEN, WARNING, Finding
from mmguard.findings.rule import AnnotationRule, DataRule, Example, Facts, Rule
from mmguard.findings.views import compute_label_share, get_annotations, get_config, get_yolo, join_items, rate_share
from mmguard.labels.numbering import COCO, COCO_IDS, IDS, POSITIONS, get_framework_titles
from mmguard.language import Message, join
from mmguard.text import quantity

#: Limit of the category ids: if all are lower, an edit may give the model one output per id.
_MOST = 1000
#: Looking up your own ids in COCO's table trains other classes, often without an error.
_REMAP_NOTE = 'With your own ids, RT-DETR, D-FINE and DEIM need `remap_mscoco_category: False`.'
_IDS_QUESTION = Message(
    'Does the training use ids as labels, as in {frameworks} or a loop of your own?',
    frameworks=get_framework_titles(IDS),
)
_RELEASE_QUESTION = "Is your RF-DETR older than 1.5, or is its dataset_file 'coco' or 'o365'?"


class IdsAsLabels(DataRule):
    code = 'MG138'
    follows = ('MG102', 'MG107', 'MG115', 'MG116')
    kinds = ('instances',)
    needs = ('annotations',)
    summary = 'Category ids are used as labels, but they do not fit num_classes.'
    title = 'Category ids are used as labels: the ids are {ids}, but num_classes={num_classes} means {first}..{last}.'
    title_no_class = 'num_classes={num_classes} leaves no class for an object: the background counts as class 0 here.'
    title_needed = (
        'The category ids ({ids}) are the labels, so the model needs outputs 0..{highest}, although the file has only '
        '{number}.'
    )
    title_by_release = (
        'RF-DETR before 1.5, or without a Roboflow layout, takes ids as labels: {beyond} would be out of range. Newer '
        'versions number the categories themselves.'
    )
    title_unknown = (
        'Category ids may be used as labels: with num_classes={num_classes}, {beyond} would be out of range. They are '
        'valid if the training renumbers the categories.'
    )
    why = Message(
        '{by_position} renumber the categories to 0..N-1, whatever the ids are. {by_id} take category_id as the '
        'label. In DETR and similar models, the label num_classes is silently trained as "no object", and a larger '
        'label ends the run; in torchvision, num_classes includes the background, 0.',
        by_position=get_framework_titles(POSITIONS),
        by_id=get_framework_titles(IDS),
    )
    example = Example(wrong='DETR: category ids 1..3, num_classes=3', right='num_classes=4  # the highest id + 1')
    limits = 'A training loop of your own may renumber the ids: then pass `--labels positions`.'
    advice = 'Write `num_classes={enough}` to fit the highest id, or renumber all splits from {first} without gaps.'
    advice_unknown = (
        'Pass what the training uses as labels: `--labels positions` (nothing needs to change then), `--labels ids` or '
        '`--framework NAME`. For ids, write `num_classes={enough}` or renumber them from {first} without gaps.'
    )
    advice_by_release = (
        'With RF-DETR 1.5 or newer and a Roboflow layout, pass `--labels positions`; nothing needs to change. '
        'Otherwise pass `--labels ids`, and write `num_classes={enough}` or renumber the ids from 0.'
    )

    def look(self, facts: Facts, labels: LabelFacts) -> Iterator[Finding]:
        found, ids = get_annotations(labels), self._list_ids(labels)
        if not found.categories or get_config(labels).framework == 'mmdet':
            return
        beyond = self._count_beyond(labels)
        words = {
            'ids': join_items(ids),
            'beyond': join_items(beyond),
            'number': quantity(len(ids), 'category'),
            'first': labels.coco.min_label,
            'highest': ids[-1],
            'enough': ids[-1] + 1 - labels.coco.spare,
        }
        if found.labelled_by == 'unknown':
            if beyond:
                # The outcome depends on the framework.
                evidence, title, advice = self._describe_beyond(labels, beyond), self.title_unknown, self.advice_unknown
                if labels.coco.framework:
                    title, advice = self.title_by_release, self.advice_by_release
                severity = WARNING if labels.coco.framework else INFO  # some releases crash
                yield self.report_in(facts, POSSIBLE, evidence, words, title, severity, advice=advice)
            return
        certainty = self._judge(labels) if found.labelled_by == 'category id' else None
        if certainty is None:
            return
        title, severity, evidence = self.title_needed, INFO, labels.evidence
        if labels.values:
            title, severity = self.title_no_class if labels.num_classes <= labels.coco.min_label else self.title, ERROR
        else:
            evidence = Message(
                'category ids {ids} in {images}', ids=join_items(ids), images=quantity(labels.files, 'image')
            )
        yield self.report_in(facts, certainty, evidence, words, title, severity)

    def _judge(self, labels: LabelFacts) -> Optional[str]:
        """Return the certainty that category ids as labels do not fit num_classes, or ``None`` if they may fit."""
        found, ids = get_annotations(labels), self._list_ids(labels)
        if is_background(labels):
            return None
        if labels.values:
            known = set() < set(labels.values) - set(labels.coco.unnamed) <= set(ids) and ids[-1] < _MOST
            return rate_share(compute_label_share(labels)) if known and ids != list(range(len(ids))) else None
        # UncountedCategories reports the categories that RF-DETR leaves out.
        counted = len(ids) + labels.coco.min_label
        return PROVEN if found.classes_counted and labels.num_classes > counted else None

    def offer(self, facts: Facts, labels: LabelFacts) -> Iterator[Edit]:
        found = get_annotations(labels)
        is_unknown = found.labelled_by == 'unknown'
        question: str = _RELEASE_QUESTION if labels.coco.framework == 'rf-detr' else _IDS_QUESTION
        if found.classes_counted:  # nothing is known to be wrong
            if labels.coco.framework or not is_unknown:
                asked = question if is_unknown else 'Should unused outputs of the model be removed?'
                yield from number_categories(self, facts, labels.coco.min_label, asked)
            return
        yield from self._fit_ids(facts, labels, question if is_unknown else '')
        if is_unknown:
            title = 'Change nothing, but pass --labels positions or --framework NAME.'
            question = Message(
                'Does the training use positions as labels, as in {frameworks}?',
                frameworks=get_framework_titles(POSITIONS),
            )
            yield Edit(title, question, options={'labels': POSITIONS})

    def _fit_ids(self, facts: Facts, labels: LabelFacts, question: str) -> Iterator[Edit]:
        first, ids = labels.coco.min_label, self._list_ids(labels)
        contiguous = ids == list(range(first, first + len(ids)))
        if not contiguous:
            yield from number_categories(self, facts, first, question)
        if set(ids) == set(COCO_IDS) and not first:
            title = 'Let RT-DETR, D-FINE or DEIM map the ids of COCO to labels.'
            asked, lines = 'Does your training code read remap_mscoco_category?', ('remap_mscoco_category: True',)
            yield Edit(title, asked, options={'labels': COCO}, lines=lines)
        if ids[-1] < _MOST:
            title = 'Give the model an output for each id from 0 to the highest.'
            asked = question if contiguous else 'Should the ids remain the labels?'
            enough = ids[-1] + 1 - labels.coco.spare
            yield state_num_classes(Edit(title, asked, notes=() if first else (_REMAP_NOTE,)), enough)

    def _list_ids(self, labels: LabelFacts) -> List[int]:
        return sorted(get_annotations(labels).categories) or [0]

    def _count_beyond(self, labels: LabelFacts) -> Dict[int, int]:
        """Return {id: number of annotations} for the ids that would be out of range as labels."""
        found, last = get_annotations(labels), labels.last
        if labels.coco.framework == 'rf-detr' and found.classes_counted:
            last = max(last, len(found.categories) - labels.coco.uncounted)  # as its older releases count
        instances = found.instances_of
        counts = {number: instances.get(str(number), 0) for number in self._list_ids(labels)}
        return {number: n for number, n in counts.items() if n and not 0 <= number <= last}

    def _describe_beyond(self, labels: LabelFacts, beyond: Dict[int, int]) -> str:
        ids = self._list_ids(labels)
        classes = Message('{classes} (0..{last})', classes=quantity(labels.num_classes, 'class'), last=labels.last)
        # So many ids without any in the gaps of the COCO ids must be COCO ids.
        are_raw = len(ids) > len(COCO_IDS) / 2 and set(ids) <= set(COCO_IDS) and ids[-1] > len(ids)
        return Message(
            'category ids {ids}{raw}; as labels of {classes}, {beyond} would be out of range ({number})',
            ids=join_items(ids),
            raw=Message(' (the ids of COCO, with gaps)') if are_raw else '',
            classes=classes,
            beyond=join_items(beyond),
            number=quantity(sum(beyond.values()), 'annotation'),
        )


def number_categories(rule: Rule, facts: Facts, first: int, question: str = '') -> Iterator[Edit]:
    """Yield an edit that numbers the categories from ``first`` without gaps."""
    title = Message('Number the categories from {first}, in the order of the file.', first=first)
    for edit in rewrite(rule, facts, title, question, renumber=first):
        yield edit if first else replace(edit, notes=(*edit.notes, _REMAP_NOTE))


def is_background(labels: LabelFacts) -> bool:
    """Return True if objects of id 0 are trained as background."""
    return 0 in labels.values and labels.coco.min_label > 0


class ObjectsAsBackground(DataRule):
    code = 'MG581'
    follows = ('MG102', 'MG107', 'MG115', 'MG116')
    kinds = ('instances',)
    summary = 'Category id 0 is trained as background.'
    title = 'Category id 0 is trained as background: torchvision reserves label 0 for the background.'
    why = 'Faster R-CNN and Mask R-CNN of torchvision silently never find objects of label 0.'
    example = Example(wrong='ids 0..2, num_classes=3', right='ids 1..3, num_classes=4  # with the background')
    limits = 'RetinaNet and FCOS of torchvision count from 0: for them id 0 is correct.'
    advice = (
        'Number the categories from 1, without gaps, in all splits, and count the background: `num_classes={counted}`.'
    )

    def look(self, facts: Facts, labels: LabelFacts) -> Iterator[Finding]:
        if is_background(labels) and get_annotations(labels).labelled_by == 'category id':
            counted = len(get_annotations(labels).categories) + 1
            yield self.report_in(facts, PROVEN, words={'counted': counted})

    def offer(self, facts: Facts, labels: LabelFacts) -> Iterator[Edit]:
        found = get_annotations(labels)
        counted = len(found.categories) + 1
        for edit in number_categories(self, facts, 1):
            if not found.classes_counted and counted != labels.num_classes:
                edit = state_num_classes(edit, counted)
            yield edit


class UncountedCategories(DataRule):
    code = 'MG134'
    severity = INFO
    kinds = ('instances',)
    needs = ('annotations',)
    summary = 'Older releases of RF-DETR number the categories differently because of their supercategory.'
    title = (
        'RF-DETR {release} counts {counted} of {number}: the supercategory of the others is "none". The ids are right.'
    )
    title_parents = 'RF-DETR before 1.9.2 gives a label to {parents}, which no annotation uses; later releases do not.'
    why = (
        'RF-DETR before 1.6 counts only categories whose supercategory is not "none", but gives all categories a '
        'label: some labels are out of range. Before 1.9.2 the root category of a Roboflow export has a label, mostly '
        '0; since then it has none, and all other labels are one lower, so older checkpoints do not fit.'
    )
    example = Example(
        wrong='{"id": 0, "name": "cat", "supercategory": "none"}',
        right='{"id": 0, "name": "cat", "supercategory": "animal"}',
    )
    limits = 'A category without annotations, such as the first of a Roboflow export, is left out on purpose.'
    advice = (
        'Update RF-DETR (`pip install -U rfdetr`), or replace the `supercategory` "none" of each category that has '
        'objects, in the files of all splits. Do not resume a training with a release that numbers differently.'
    )

    def look(self, facts: Facts, labels: LabelFacts) -> Iterator[Finding]:
        found, coco = get_annotations(labels), labels.coco
        number = len(found.categories)
        counted = number - coco.uncounted
        most = max(found.categories, default=0) if found.labelled_by == 'category id' else number - 1
        if found.classes_counted and coco.uncounted and counted + coco.spare <= most < number + coco.spare:
            evidence = Message('"supercategory": "none" in {number}', number=quantity(coco.uncounted, 'category'))
            release = coco.release or Message('before 1.6')
            words = {'counted': counted, 'number': quantity(number, 'category'), 'release': release}
            certainty, severity = (PROVEN, ERROR) if coco.release else (POSSIBLE, None)
            yield self.report_in(facts, certainty, evidence, words, severity=severity, files=found.sources)
        elif coco.parents:
            names = join_items(map(repr, coco.parents))
            evidence = Message('named as supercategory by other categories: {names}', names=names)
            words = {'parents': names}
            yield self.report_in(facts, PROVEN, evidence, words, self.title_parents, files=found.sources)


class CocoIdsLookedUp(AnnotationRule):
    code = 'MG162'
    follows = ('MG102', 'MG107', 'MG116', 'MG140', 'MG146', 'MG154', 'MG174')
    looks_at = ('labels', 'config')
    summary = 'Labels are looked up in the table of the 80 ids of COCO, but the file has categories of its own.'
    title_converted = (
        'The classes in the label files differ from those in {source}, which has the same images and objects.'
    )
    title_config = 'Labels are looked up among the 80 ids of COCO, but num_classes={number}: the data are not COCO.'
    why = (
        'With `remap_mscoco_category: True`, RT-DETR, D-FINE and DEIM replace category_id by its position among the 80 '
        'ids of COCO (1..90, ten are missing). Other ids raise a KeyError; COCO ids get the labels of COCO classes, in '
        'training and evaluation. convert_coco of ultralytics does the same by default.'
    )
    example = Example(wrong='remap_mscoco_category: True, num_classes: 3', right='remap_mscoco_category: False')
    limits = 'If all of your ids are also COCO ids, the mistake is found only if a label is out of range.'
    advice = (
        'In the YAML of RT-DETR, D-FINE or DEIM write `remap_mscoco_category: False`, and the highest id + 1 as '
        'num_classes (close large gaps first; `mmguard scan CONFIG.yml` shows num_classes). Convert YOLO label files '
        'again with `convert_coco(..., cls91to80=False)`, and order `names` by id.'
    )

    def find(self, facts: Facts) -> Iterator[Finding]:
        if facts.labels is not None:
            yield from super().find(facts)
        elif facts.config is not None and is_remapped(facts.config.data) and not fits_coco_ids(facts.config.file):
            number = facts.config.data['num_classes']
            yield self.report(f'num_classes: {number}', {'number': number}, self.title_config)

    def look(self, facts: Facts, labels: LabelFacts) -> Iterator[Finding]:
        found, original = get_annotations(labels), get_yolo(labels).original
        if original is not None:
            texts = join_items(
                Message('{name}: {here:,} in the labels, {there:,} in the COCO file', name=name, here=here, there=there)
                for name, (here, there) in original.counts.items()
            )
            also = [Message('the labels are positions in the list of COCO ids')] * original.is_looked_up
            certainty, evidence = PROVEN if original.is_looked_up else LIKELY, join('; ', [texts, *also])
            words, title = {'source': original.source}, self.title_converted
            yield self.report_in(facts, certainty, evidence, words, title, files=found.sources)
            return
        unknown = {i: found.instances_of.get(str(i), 0) for i in found.categories if i not in COCO_IDS}
        if found.labelled_by != 'COCO ids' or not (unknown or labels.values):
            return
        said = Message(
            '{categories}, ids {ids}',
            categories=quantity(len(found.categories), 'category'),
            ids=join_items(found.categories),
        )
        evidence = join('; ', (said, labels.evidence))
        if unknown:
            annotations = quantity(sum(unknown.values()), 'annotation')
            evidence = Message(
                '{said}; not ids of COCO: {unknown} ({annotations})',
                said=said,
                unknown=join_items(unknown),
                annotations=annotations,
            )
        yield self.report_in(facts, PROVEN, evidence, files=found.sources)

    def offer(self, facts: Facts, labels: LabelFacts) -> Iterator[Edit]:
        if get_yolo(labels).original is not None:
            return
        enough = max(get_annotations(labels).categories, default=0) + 1
        options = {'num_classes': enough} if enough != labels.num_classes else {}
        lines = ('remap_mscoco_category: False', *(f'{name}: {value}' for name, value in options.items()))
        title = 'Train on the ids of the file, with an output for each id from 0 to the highest.'
        yield Edit(title, options={'labels': IDS, **options}, lines=lines)
