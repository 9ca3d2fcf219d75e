from __future__ import annotations

from dataclasses import replace
from typing import Iterator, List, Optional, Tuple

from mmguard.config.classes import BACKGROUND
from mmguard.config.parts import classes_of, classes_path, datasets, says_classes
from mmguard.config.read import ReadConfig
from mmguard.findings.class_edits import learn
from mmguard.findings.edits import ASKS, Edit, format_value
from mmguard.findings.facts import LabelFacts
from mmguard.findings.file_edits import rewrite
from mmguard.findings.finding import Finding
from mmguard.findings.rule import Example, Facts, Rule
from mmguard.findings.views import annotations_of, has_config, listing
from mmguard.text import quantity, shorten


class BackgroundListed(Rule):
    """The background as a class or a category of detection."""

    code = 'MG160'
    looks_at = ('labels', 'config')
    summary = 'The background is listed as a class of a detector.'
    title = 'The background is listed as a class of a detector: {names}.'
    why = (
        'Detectors know the background without a name: it is what no box covers. Listed, it takes a label (often 0) '
        'that no object has, every other class moves by one, and num_classes counts one too many.'
    )
    example = Example(wrong="classes=('background', 'cat'), num_classes=2", right="classes=('cat',), num_classes=1")
    limits = 'It knows the background by its name only; a class that is called so and is an object is taken for it.'
    advice = (
        'Remove it from `metainfo.classes` of all splits and from "categories" of all annotation files, and write '
        'num_classes without it. If it is an object to be found, give it another name. Only the label 0 of torchvision '
        'is the background.'
    )

    def find(self, facts: Facts) -> Iterator[Finding]:
        labels, places = facts.labels, _places(facts.config)
        if labels is not None and labels.kind != 'instances':
            return
        in_files = [] if labels is None else _categories(labels)
        if labels is not None and not (in_files and (places or not has_config(labels))):
            return  # a name that the files do not know (MG140), or that the config leaves out
        if in_files and labels is not None:
            found = annotations_of(labels)
            of = ', '.join(f'{shorten(name)} has id {i}' for i, name in in_files)
            used = sum(found.instances_of.get(str(i), 0) for i, _ in in_files)
            evidence = f'{of} in the categories of the file; {quantity(used, "annotation")}'
            names = [name for _, name in in_files]
        elif places:
            names = list(dict.fromkeys(name for _, listed in places for name in listed if _is_background(name)))
            evidence = f'{" and ".join(path for path, _ in places)} = {format_value(places[0][1])}'
        else:
            return
        named = {'names': listing(map(repr, names))}
        yield self.report(evidence, named, places=tuple(path for path, _ in places))

    def edits(self, finding: Finding, facts: Facts) -> Iterator[Edit]:
        labels, places = facts.labels, _places(facts.config)
        question = 'Does this class mean that no object is there?'
        if places and facts.config is not None:
            names = [name for name in places[0][1] if not _is_background(name)]
            if names:
                yield learn(facts, names, ASKS, question)
        elif labels is not None:
            names = [name for name in annotations_of(labels).categories.values() if not _is_background(name)]
            for edit in (
                rewrite(self, facts, 'Leave the background out of the categories.', ASKS, question, classes=names)
                if names
                else ()
            ):
                if not annotations_of(labels).classes_counted and labels.num_classes == len(names) + 1:
                    line = f'num_classes={len(names)}'
                    edit = replace(edit, lines=(line,), options=(('num_classes', len(names)),))
                yield edit


def _is_background(name: str) -> bool:
    return str(name).strip().lower() in BACKGROUND


def _places(config: Optional[ReadConfig]) -> List[Tuple[str, List[str]]]:
    """Find the class lists of a detection config that name it."""
    found = []
    for dataset in datasets(config) if config is not None and config.framework == 'mmdet' else ():
        names = classes_of(dataset) or []
        things = says_classes(dataset) and not dataset.is_a('CocoPanopticDataset', 'BaseSegDataset')
        if things and any(map(_is_background, names)):
            found.append((classes_path(dataset), names))
    return found


def _categories(labels: LabelFacts) -> List[Tuple[int, str]]:
    found = annotations_of(labels)
    if found.names_from != 'categories':
        return []
    # Where ids are labels, 0 costs an output and nothing else; in torchvision it is the background.
    free = {0} if found.labelled_by == 'category id' and not found.instances_of.get('0') else set()
    return [(i, name) for i, name in found.categories.items() if _is_background(name) and i not in free]
