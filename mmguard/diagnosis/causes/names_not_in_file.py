from __future__ import annotations

from difflib import get_close_matches
from typing import Dict, List, Tuple

from mmguard.diagnosis.facts import LabelFacts
from mmguard.diagnosis.finding import Cause
from mmguard.diagnosis.views import annotations_of, class_lists, listing

FORMATS = ('coco', 'voc')


class NamesNotInFile(Cause):
    """Class names of the config that the annotation file does not know."""

    code = 'MG140'
    kinds = ('pixels', 'instances')
    needs = ('annotations',)
    summary = 'The config names classes that the annotations do not have: {missing}.'
    why = (
        'mmdet looks categories up by name. What it does not find is left out in silence; if nothing is found, '
        '"need at least one array to concatenate", or a training on background alone.'
    )
    advice = "Write the names as in the file: `metainfo=dict(classes=({names},))`{close}. The file's names: {known}."
    letters = (
        'classes is a string, so every letter of it became a class: the comma of a tuple of one is missing. Write '
        "`metainfo=dict(classes=('{word}',))`."
    )

    def likelihood(self, facts: LabelFacts) -> float:
        missing, names = self._missing(facts)
        if not missing:
            return 0.0
        return 0.97 if len(missing) == len(names) else 0.92

    def advise(self, facts: LabelFacts) -> str:
        _, names = self._missing(facts)
        return self.letters if len(names) > 1 and all(len(name) == 1 for name in names) else self.advice

    def words(self, facts: LabelFacts) -> Dict[str, str]:
        missing, names = self._missing(facts)
        known = self._known(facts)
        close = {name: get_close_matches(name, known, 1, 0.7) for name in missing}
        folded = {name.strip().lower(): name for name in known}
        meant = {name: folded.get(name.strip().lower(), (found or [''])[0]) for name, found in close.items()}
        pairs = ', '.join(f'{name!r} is {found!r} there' for name, found in meant.items() if found)
        written = [meant.get(name) or name for name in names]
        return {
            'missing': listing(map(repr, missing)),
            'names': ', '.join(map(repr, written if pairs else known)),
            'close': f' ({pairs})' if pairs else '',
            'known': listing(map(repr, known)),
            'word': ''.join(names),
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
            missing = [name for name in missing if get_close_matches(name, list(found.left_out_names), 1, 0.7)]
        return missing, names
