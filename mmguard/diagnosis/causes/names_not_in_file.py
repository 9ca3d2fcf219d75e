from __future__ import annotations

from difflib import get_close_matches
from typing import Dict, List, Sequence, Tuple

from mmguard.diagnosis.facts import LabelFacts
from mmguard.diagnosis.finding import Cause
from mmguard.diagnosis.views import BACKGROUND, annotations_of, class_lists, config_of, folded, listing

FORMATS = ('coco', 'voc')


class NamesNotInFile(Cause):
    """Class names of the config that the annotation file does not know."""

    code = 'MG140'
    explains = ('MG146', 'MG154', 'MG174')
    kinds = ('pixels', 'instances')
    needs = ('annotations',)
    summary = 'The config names classes that the annotations do not have: {missing}.'
    why = (
        'mmdet looks categories up by name. What it does not find is left out in silence; if nothing is found, '
        '"need at least one array to concatenate", or a training on background alone.'
    )
    advice = "Write the names as in the file: `metainfo=dict(classes=({names},))`{close}. The file's names: {known}."
    letters = (
        'The comma of a tuple of one is missing: `("{word}")` is a text, and counts as many classes as letters. Write '
        "`metainfo=dict(classes=('{word}',))`."
    )
    string = 'classes is a string, {word!r}: every letter of it is a class.'
    unnamed = (
        'The config gives no metainfo, so these are the names that come with the type of the data set. Write those of '
        'the file, in its order, into the dataset of train_dataloader, val_dataloader and test_dataloader: '
        '`metainfo=dict(classes=({names},))`, and `num_classes={number}` in every head.'
    )

    lacking = (
        'The file lists fewer categories than the config: {known}. mmdet numbers what it finds, so the labels behind '
        'the gap move down. If another file has the category, add it here, too, at the same place: '
        '`data["categories"]` is to be the same in all files. If no file has it, drop it from the classes and lower '
        'num_classes.'
    )

    def likelihood(self, facts: LabelFacts) -> float:
        missing, names = self._missing(facts)
        if not missing:
            return 0.0
        return 0.97 if len(missing) == len(names) else 0.92

    def explained(self, facts: LabelFacts) -> Sequence[str]:
        # A list that did not arrive fits no head, and not the other lists.
        return (*self.explains, 'MG142', 'MG143', 'MG144') if self._is_of_the_type(facts) else self.explains

    def summarise(self, facts: LabelFacts) -> str:
        return self.string if self._spelt(facts) else self.summary

    def advise(self, facts: LabelFacts) -> str:
        if self._spelt(facts):
            return self.letters
        if self._is_of_the_type(facts):
            return self.unnamed
        return self.lacking if self._lacks(facts) else self.advice

    def words(self, facts: LabelFacts) -> Dict[str, object]:
        missing, names = self._missing(facts)
        known = self._known(facts)
        alike = {folded(name): name for name in known}
        free = [name for name in known if name not in names]
        close = {name: get_close_matches(name, free, 1, 0.7) for name in missing}
        meant = {name: alike.get(folded(name), (found or [''])[0]) for name, found in close.items()}
        if 2 * sum(map(bool, meant.values())) < len(missing):
            meant = {}  # another list altogether: what sounds alike in it is chance
        pairs = ', '.join(f'{name!r} is {found!r} there' for name, found in meant.items() if found)
        # What the file does not know at all is not to be listed.
        written = [meant.get(name) or name for name in names if meant.get(name) or name in known]
        return {
            'missing': listing(map(repr, missing)),
            'names': ', '.join(map(repr, written if pairs else known)),
            'close': f' ({pairs})' if pairs else '',
            'known': listing(map(repr, known)),
            'word': ''.join(self._spelt(facts)),
            'number': len(known),
        }

    def evidence(self, facts: LabelFacts) -> str:
        missing, names = self._missing(facts)
        path = next((path for path, listed in class_lists(facts).items() if listed == names), 'metainfo.classes')
        return f'{len(missing)} of {len(names)} names in {path}: {listing(map(repr, missing))}'

    def values(self, facts: LabelFacts) -> Dict[int, int]:
        return {}

    def _known(self, facts: LabelFacts) -> List[str]:
        found = annotations_of(facts)
        if found.format != 'voc':
            return [str(name) for name in found.categories.values()]
        # XML files have no list of categories: what they name, they know.
        named = [name for name, number in found.instances_of.items() if number]
        return list(dict.fromkeys([*named, *found.left_out_names]))

    def _missing(self, facts: LabelFacts) -> Tuple[List[str], List[str]]:
        """The names without a category, of the list that lacks most, and that list."""
        known = self._known(facts)
        found = annotations_of(facts)
        if found.format not in FORMATS or not known:
            return [], []
        lists = [facts.class_names] if facts.class_names else list(class_lists(facts).values())
        lacks = [([str(name) for name in names if name not in known], list(map(str, names))) for names in lists]
        missing, names = max(lacks, key=lambda pair: len(pair[0]) / len(pair[1]), default=([], []))
        if found.format == 'voc' and len(missing) < len(names):
            # A class may be missing in a small set of XML files; a name that is left out and nearly its own may not.
            left_out = list(found.left_out_names)
            alike = {folded(name) for name in left_out}
            missing = [name for name in missing if folded(name) in alike or get_close_matches(name, left_out, 1, 0.7)]
        spelt = self._spelt(facts)
        return (spelt, spelt) if spelt and not missing else (missing, names)

    def _spelt(self, facts: LabelFacts) -> List[str]:
        """The letters of a class list that is a string, if there is one."""
        for names in [facts.class_names, *class_lists(facts).values()]:
            letters = len(names) > 1 and all(len(name) == 1 for name in names)
            # Classes may well be called a, b and c: in a file that knows them.
            if letters and (''.join(names) in self._known(facts) or not set(names) & set(self._known(facts))):
                return list(names)
        return []

    def _lacks(self, facts: LabelFacts) -> bool:
        """Whether all that the file knows is listed, and some of what is listed is not in the file."""
        missing, names = self._missing(facts)
        known = self._known(facts)
        counted = any(folded(name) in map(folded, BACKGROUND) for name in missing)
        return bool(known) and set(known) <= set(names) and annotations_of(facts).format == 'coco' and not counted

    def _is_of_the_type(self, facts: LabelFacts) -> bool:
        """Whether the names come with the type of the data set, because the config gives none."""
        missing, names = self._missing(facts)
        lists = config_of(facts).dataset_classes
        path = next((path for path, listed in lists.items() if list(listed) == names), '')
        return len(missing) == len(names) and 'METAINFO' in path
