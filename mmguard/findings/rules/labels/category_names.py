"""Rules about names in the class list that do not match the categories of the annotations."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Dict, Iterator, List, Mapping, Optional, Sequence, Tuple

from mmguard.config.agreement import find_class_counts
from mmguard.config.parts import find_datasets, get_class_names, get_class_string, get_classes_path, says_classes
from mmguard.config.read import ReadConfig
from mmguard.facts.labels import LabelFacts
from mmguard.findings.config_edits import combine_pair, set_classes_and_heads, state_num_classes
from mmguard.findings.edits import Edit, format_value
from mmguard.findings.file_edits import list_splits, rewrite
from mmguard.findings.finding import ERROR, POSSIBLE, PROVEN, Finding
from mmguard.findings.rule import AnnotationRule, DataRule, Example, Facts, Rule
from mmguard.findings.views import (
    count_trained,
    find_alike,
    find_class_lists,
    find_nearest,
    get_annotations,
    get_config,
    is_background,
    is_trained_on,
    join_items,
)
from mmguard.language import Message
from mmguard.text import quantity, shorten


class NamesNotInFile(AnnotationRule):
    code = 'MG140'
    follows = ('MG135', 'MG146', 'MG154', 'MG160', 'MG174', 'MG178', 'MG201', 'MG202', 'MG204', 'MG205')
    summary = 'Class names of the config are missing in the annotations.'
    title = 'The config names classes that are missing in the annotations: {missing}.'
    title_string = 'classes is a string, {shown}: every letter counts as a class.'
    why = (
        'mmdet looks categories up by name. Classes that are not found are left out silently, and the labels of later '
        'classes move down; if no class is found, training fails with "need at least one array to concatenate", or '
        'learns only background.'
    )
    example = Example(
        wrong="metainfo=dict(classes=('person', 'bike')) for categories person, bicycle",
        right="metainfo=dict(classes=('person', 'bicycle'))",
    )
    limits = 'A class may be missing in a small set of VOC files, so there only likely misspellings are reported.'
    advice = (
        'Write the names as in the annotations, {known}, in `metainfo.classes`, and their number in num_classes; a '
        "one-name list needs a trailing comma: `classes=('a',)`. If only one file lacks a class, add it to "
        '"categories" there, or drop it everywhere.'
    )

    def look(self, facts: Facts, labels: LabelFacts) -> Iterator[Finding]:
        missing, names = self._find_missing(labels)
        if not missing:
            return
        letters = self._find_letters(labels, facts.config)
        path = next((path for path, listed in find_class_lists(labels).items() if listed == names), 'metainfo.classes')
        empty = len(missing) == len(names) and not any(labels.histogram.values())
        evidence = Message(
            '{number} of {listed} names in {path} are missing in the annotations: {missing}{left}',
            number=len(missing),
            listed=len(names),
            path=path,
            missing=join_items(map(repr, missing)),
            left=Message('; no object is left, and with `filter_empty_gt` no image either') if empty else '',
        )
        words = {
            'missing': join_items(map(repr, missing)),
            'known': join_items(map(repr, self._list_names_in_file(labels))),
            'shown': shorten(''.join(letters)),
        }
        # If the list did not reach the data set, findings about heads and lists are consequences.
        others = [*(() if self._is_of_the_type(labels) else ('MG201', 'MG202', 'MG204'))]
        others += [] if letters else ['MG178', 'MG205']
        title = self.title_string if letters else ''
        follow = tuple(code for code in self.follows if code not in others)
        yield self.report_in(facts, PROVEN, evidence, words, title, follows=follow)

    def offer(self, facts: Facts, labels: LabelFacts) -> Iterator[Edit]:
        if facts.config is None:
            return
        names = self._find_missing(labels)[1]
        letters = self._find_letters(labels, facts.config)
        if letters:
            yield set_classes_and_heads(facts, [''.join(letters)])
            return
        known = self._list_names_in_files(facts)
        meant = self._match_names(labels, known)
        written = [meant.get(name) or name for name in names]
        if get_annotations(labels).names_from == 'categories' or not meant:
            chosen = set(written)
            others = self._find_names_of_split(facts, known) or known
            written = [name for name in known if name in chosen] if meant else others
        certain = meant or self._is_of_the_type(labels) or labels.num_classes == len(written)
        question = Message('Are {written} the classes?', written=join_items(map(repr, written)))
        yield set_classes_and_heads(facts, written, '' if certain else question)

    def _list_names_in_file(self, labels: LabelFacts) -> List[str]:
        found = get_annotations(labels)
        if found.names_from != 'objects':
            # Of files whose ids clash, `categories` has only the first name.
            renamed = (name for _, name, _ in labels.coco.renamed)
            return list(dict.fromkeys([*map(str, found.categories.values()), *renamed]))
        # XML files have no list of categories, only the names of objects.
        named = [name for name, number in found.instances_of.items() if number]
        return list(dict.fromkeys([*named, *found.left_out_names]))

    def _list_names_in_files(self, facts: Facts) -> List[str]:
        """Return the category names in the files of all splits, the training files first."""
        splits = sorted(list_splits(facts), key=lambda labels: not is_trained_on(labels))
        return list(dict.fromkeys(name for labels in splits for name in self._list_names_in_file(labels)))

    def _find_missing(self, labels: LabelFacts) -> Tuple[List[str], List[str]]:
        """Return (missing names, class list) for the class list with the largest share of missing names."""
        known = self._list_names_in_file(labels)
        found = get_annotations(labels)
        if not found.names_from or not known:
            return [], []
        lists = [labels.class_names] if labels.class_names else list(find_class_lists(labels).values())
        there = set(known)
        lacks = [([str(name) for name in names if name not in there], list(map(str, names))) for names in lists]
        missing, names = max(lacks, key=lambda pair: len(pair[0]) / len(pair[1]), default=([], []))
        if found.names_from == 'objects' and len(missing) < len(names):
            # A class may be missing in a small set of XML files, but not if a similar name is left out.
            close = find_nearest(missing, list(found.left_out_names), 0.7)
            missing = [name for name in missing if close[name]]
        spelt = self._find_letters(labels)
        return (spelt, spelt) if spelt and not missing else (missing, names)

    def _find_names_of_split(self, facts: Facts, known: Sequence[str]) -> List[str]:
        """Return the first class list of a split that has exactly the names ``known``, in any order, or []."""
        lists = (labels.class_names for labels in list_splits(facts))
        return next((list(names) for names in lists if known and set(names) == set(known)), [])

    def _find_letters(self, labels: LabelFacts, config: Optional[ReadConfig] = None) -> List[str]:
        """Return the letters of a class list that is a string by mistake, or [] if every list is a list of names."""
        known = self._list_names_in_file(labels)
        strings = [] if config is None else list(map(get_class_string, find_datasets(config)))
        for names in [labels.class_names, *find_class_lists(labels).values()]:
            letters = len(names) > 1 and all(len(name) == 1 for name in names) and not set(names) <= set(known)
            if letters and ''.join(names) in (*known, *strings):
                return list(names)
        return []

    def _match_names(self, labels: LabelFacts, known: Sequence[str]) -> Dict[str, str]:
        """Return {missing name: similar name in the files, or ''}; {} if fewer than half have a similar name."""
        missing, names = self._find_missing(labels)
        listed = set(names)
        meant = find_nearest(missing, [name for name in known if name not in listed], 0.7)
        # In an unrelated list, similar names are a coincidence.
        return meant if 2 * sum(map(bool, meant.values())) >= len(missing) else {}

    def _is_of_the_type(self, labels: LabelFacts) -> bool:
        """True if the class list is the METAINFO of the data set's type, because the config does not set classes."""
        missing, names = self._find_missing(labels)
        lists = get_config(labels).dataset_classes
        path = next((path for path, listed in lists.items() if list(listed) == names), '')
        return len(missing) == len(names) and 'METAINFO' in path


class CategoriesLeftOut(AnnotationRule):
    code = 'MG154'
    severity = 'warning'
    summary = 'Annotations are left out because the class list does not name their category.'
    title = 'Annotations are left out: the class list does not name {names}.'
    why = 'Objects of these categories are trained as background, which is right only if you left them out on purpose.'
    example = Example(
        wrong="classes=('cat',)  # the file has cat and dog", right="classes=('cat', 'dog'), num_classes=2"
    )
    limits = 'Cannot tell whether classes were left out on purpose.'
    advice = (
        'If these objects should be learned, add their names to `metainfo.classes` in the order of the file, and write '
        '`num_classes={number}` in every head. If not, nothing needs to change.'
    )

    def look(self, facts: Facts, labels: LabelFacts) -> Iterator[Finding]:
        names = self._count_left_out(labels)
        if names:
            evidence = join_items(f'{quantity(n, "annotation")} of {shorten(name)}' for name, n in names.items())
            words = {'names': join_items(map(repr, names)), 'number': len(self._list_categories(labels))}
            files = get_annotations(labels).left_out_files
            yield self.report_in(facts, POSSIBLE, evidence, words, files=files)

    def offer(self, facts: Facts, labels: LabelFacts) -> Iterator[Edit]:
        names = list(self._count_left_out(labels))
        close = find_nearest(names, labels.class_names, 0.8)
        yield from _rename(self, facts, {name: found for name, found in close.items() if found})
        if facts.config is None:
            return
        # If every head has as many classes as the list, the others were left out on purpose.
        counted = {count.value for count in find_class_counts(facts.config) if count.kind == 'all'}
        if counted != {len(labels.class_names)}:
            question = f'Should {join_items(map(repr, names))} be learned, too?'
            edit = set_classes_and_heads(facts, self._list_categories(labels), question)
            yield replace(edit, if_not='Nothing needs to change.')

    def _list_categories(self, labels: LabelFacts) -> List[str]:
        known = map(str, get_annotations(labels).categories.values())
        return list(dict.fromkeys([*known, *self._count_left_out(labels)]))

    def _count_left_out(self, labels: LabelFacts) -> Dict[str, int]:
        return {name: number for name, number in get_annotations(labels).left_out_names.items() if number}


def _rename(rule: Rule, facts: Facts, typos: Mapping[str, str]) -> Iterator[Edit]:
    """Yield an edit that renames {typo: right name}, except names with a comma or colon (separators of the command)."""
    typos = {typo: name for typo, name in typos.items() if not set(',:') & set(typo + name)}
    if typos:
        pairs = join_items(f'{shorten(typo)} for {shorten(name)}' for typo, name in typos.items())
        question = Message('Are these typos: {pairs}?', pairs=pairs)
        yield from rewrite(rule, facts, 'Correct the names.', question, rename=typos)


#: Minimum number of letters; shorter names, such as single letters, are different classes.
SHORTEST = 3


class NamesAlike(DataRule):
    code = 'MG156'
    follows = ('MG102', 'MG107', 'MG108')
    severity = 'warning'
    kinds = ('pixels', 'instances', 'voxels')
    needs = ()
    shows_values = False
    summary = 'Two classes have names that differ only in case, spaces, accents or plural.'
    title = 'Class names differ only in case, spaces, accents or plural: {pairs}.'
    why = 'A misspelled name is a class of its own: its objects are trained as that class, and num_classes counts it.'
    example = Example(wrong='categories RBC (265 boxes) and RBc (2 boxes)', right='RBC (267 boxes)')
    limits = 'Only names of at least three letters are compared; a plural may be another class (cloth, clothes).'
    advice = (
        'If one name is a typo, give all objects the other name, remove the typo from every class list, and adapt '
        'num_classes. If these are two classes, nothing needs to change.'
    )

    def look(self, facts: Facts, labels: LabelFacts) -> Iterator[Finding]:
        counts = self._count_names(labels)
        typos = self._find_typos(counts)
        if not typos:
            return
        unit = labels.kind.rstrip('s') if labels.kind != 'instances' else 'annotation'
        named = dict.fromkeys(name for pair in typos.items() for name in pair)
        evidence = join_items(f'{quantity(counts[name], unit)} of {shorten(name)}' for name in named)
        pairs = join_items(f'{shorten(typo)} and {shorten(name)}' for typo, name in typos.items())
        # Then whoever counted the classes counted each name once.
        explains = bool(labels.values) and labels.num_classes == len(counts) - len(typos)
        certainty, severity = (PROVEN, ERROR) if explains else (POSSIBLE, self.severity)
        yield self.report_in(facts, certainty, evidence, {'pairs': pairs}, severity=severity)

    def offer(self, facts: Facts, labels: LabelFacts) -> Iterator[Edit]:
        counts = self._count_names(labels)
        typos = self._find_typos(counts)
        names = [name for name in counts if name not in typos]
        merged = tuple(label for label in count_trained(labels) if labels.name_of(label) in typos)
        for edit in _rename(self, facts, typos):
            edit = replace(edit, unlabelled=merged, if_not='Nothing needs to change.')
            listed = {name for names in get_config(labels).dataset_classes.values() for name in names}
            if listed & set(typos):
                edit = combine_pair(edit, set_classes_and_heads(facts, names), 'Correct the names in files and config.')
            if labels.values and labels.num_classes < len(counts):
                more = Message('Set num_classes={number} in every head and guard.', number=len(counts))
                edit = replace(edit, if_not=more)
            yield edit

    def _count_names(self, labels: LabelFacts) -> Dict[str, int]:
        """Return {class name: number of pixels, voxels or annotations}, in the order of the labels."""
        counts = count_trained(labels)
        listed = labels.class_names or get_annotations(labels).categories.values()
        named = Counter(dict.fromkeys(filter(None, map(str, listed)), 0))
        for label, count in counts.items():
            if labels.name_of(label) in named:
                named[labels.name_of(label)] += count
        return dict(named)

    def _find_typos(self, counts: Mapping[str, int]) -> Dict[str, str]:
        """Return {rarer name: more frequent name} for names that differ only in case, spaces, accents or plural."""
        ranked = sorted((name for name in counts if len(name.strip()) >= SHORTEST), key=lambda name: -counts[name])
        typos: Dict[str, str] = {}
        for name, right in find_alike(ranked, ranked).items():
            if right != name:
                typos[name] = typos.get(right, right)
        return typos


class BackgroundListed(Rule):
    code = 'MG160'
    follows = ('MG102', 'MG107', 'MG108', 'MG115', 'MG201', 'MG202')
    looks_at = ('labels', 'config')
    summary = 'The background is listed as a class of a detector.'
    title = 'The background is listed as a class of a detector: {names}.'
    why = (
        'Detectors do not need a name for the background, which is everything outside the boxes. If listed, it takes '
        'a label (often 0) that no object has, every other label moves by one, and num_classes is one too large.'
    )
    example = Example(wrong="classes=('background', 'cat'), num_classes=2", right="classes=('cat',), num_classes=1")
    limits = 'The background is recognized only by its name, so an object class with such a name is reported, too.'
    advice = (
        'Remove the background from `metainfo.classes` of all splits and from "categories" of all files, and do not '
        'count it in num_classes (torchvision: leave label 0 free). If the class is an object to be found, rename it.'
    )

    def find(self, facts: Facts) -> Iterator[Finding]:
        labels, places = facts.labels, _find_background_lists(facts.config)
        if labels is not None and labels.kind != 'instances':
            return
        in_files = [] if labels is None else _find_background_categories(labels)
        if labels is not None and not (in_files and (places or not labels.has_config)):
            return  # a name that the files lack (MG140), or that the config leaves out
        if in_files and labels is not None:
            found = get_annotations(labels)
            of = ', '.join(f'{shorten(name)} has id {i}' for i, name in in_files)
            used = sum(found.instances_of.get(str(i), 0) for i, _ in in_files)
            evidence = f'{of} in the categories of the file; used by {quantity(used, "annotation")}'
            names = [name for _, name in in_files]
        elif places:
            names = list(dict.fromkeys(name for _, listed in places for name in listed if is_background(name)))
            evidence = f'{" and ".join(path for path, _ in places)} = {format_value(places[0][1])}'
        else:
            return
        named = {'names': join_items(map(repr, names))}
        yield self.report(evidence, named, places=tuple(path for path, _ in places))

    def edits(self, finding: Finding, facts: Facts) -> Iterator[Edit]:
        labels, places = facts.labels, _find_background_lists(facts.config)
        question = 'Does this class mean that no object is there?'
        if places and facts.config is not None:
            names = [name for name in places[0][1] if not is_background(name)]
            if names:
                yield set_classes_and_heads(facts, names, question)
        elif labels is not None:
            found = get_annotations(labels)
            names = [name for name in found.categories.values() if not is_background(name)]
            title = 'Leave the background out of the categories.'
            for edit in rewrite(self, facts, title, question, classes=tuple(names)) if names else ():
                is_stated = not found.classes_counted and labels.num_classes == len(names) + 1
                yield state_num_classes(edit, len(names)) if is_stated else edit


def _find_background_lists(config: Optional[ReadConfig]) -> List[Tuple[str, List[str]]]:
    """Return the class lists of a detection config that contain a background class."""
    found = []
    for dataset in find_datasets(config) if config is not None and config.framework == 'mmdet' else ():
        names = get_class_names(dataset) or []
        things = says_classes(dataset) and not dataset.is_a('CocoPanopticDataset', 'BaseSegDataset')
        if things and any(map(is_background, names)):
            found.append((get_classes_path(dataset), names))
    return found


def _find_background_categories(labels: LabelFacts) -> List[Tuple[int, str]]:
    found = get_annotations(labels)
    if found.names_from != 'categories':
        return []
    # If ids are labels, an unused id 0 only costs an output; in torchvision it is the background.
    free = {0} if found.labelled_by == 'category id' and not found.instances_of.get('0') else set()
    return [(i, name) for i, name in found.categories.items() if is_background(name) and i not in free]
