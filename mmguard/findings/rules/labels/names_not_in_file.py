from __future__ import annotations

from typing import Dict, Iterator, List, Optional, Sequence, Tuple

from mmguard.config.classes import BACKGROUND
from mmguard.findings.edits import ASKS, SAFE, Edit
from mmguard.findings.facts import LabelFacts
from mmguard.findings.file_edits import rewrite
from mmguard.findings.finding import PROVEN, Finding
from mmguard.findings.rule import DataRule, Facts
from mmguard.findings.usual_edits import learn
from mmguard.findings.views import annotations_of, class_lists, config_of, folded, is_trained_on, listing, nearest
from mmguard.text.short import short

FORMATS = ('coco', 'voc')


class NamesNotInFile(DataRule):
    """Class names of the config that the annotation file does not know."""

    code = 'MG140'
    shows_values = False
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
    string = 'classes is a string, {shown}: every letter of it is a class.'
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

    otherwise = (
        'Compare the names of the config with `data["categories"]` of every annotation file: they are to be the same '
        'in all of them, letter by letter. A class that one file lacks is to be listed there, too.'
    )

    def certainty(self, facts: LabelFacts) -> Optional[str]:
        return PROVEN if self._missing(facts)[0] else None

    def superseded(self, facts: LabelFacts) -> Sequence[str]:
        # Only a list that did not arrive fits no head, and not the other lists.
        others = super().superseded(facts)
        return others if self._is_of_the_type(facts) else [code for code in others if not code.startswith('MG2')]

    def summarise(self, facts: LabelFacts) -> str:
        return self.string if self._spelt(facts) else self.summary

    def advise(self, facts: LabelFacts) -> str:
        if self._spelt(facts):
            return self.letters
        if self._is_of_the_type(facts):
            return self.unnamed
        return self.lacking if self._lacks(facts) else self.advice

    def edits(self, finding: Finding, facts: Facts) -> Iterator[Edit]:
        labels = facts.labels
        if labels is None or facts.config is None:
            return
        missing, names = self._missing(labels)
        if self._spelt(labels):
            yield learn(facts, [''.join(self._spelt(labels))], SAFE)
        elif self._lacks(labels) and not self._comes_with_type(labels):
            elsewhere = [split.labels for split in facts.others if split.labels is not None]
            sure = any(set(missing) <= set(annotations_of(other).categories.values()) for other in elsewhere)
            question = '' if sure else f'Has this file merely no object of {listing(map(repr, missing))}?'
            title = f'Add {listing(map(repr, missing))} to "categories", each at its place.'
            yield from rewrite(self, facts, title, SAFE if sure else ASKS, question, classes=names)
            if is_trained_on(labels):  # what else is to be learnt, no other file says
                question = f'Are {listing(map(repr, self._known(labels)))} all that is to be learnt?'
                yield learn(facts, self._known(labels), ASKS, question)
        else:
            meant, known = self._meant(labels), self._known(labels)
            written = [meant.get(name) or name for name in names]
            if annotations_of(labels).format == 'coco' or not meant:
                chosen = set(written)
                written = [name for name in known if name in chosen] if meant else self._listed(facts) or known
            certain = meant or self._is_of_the_type(labels) or labels.num_classes == len(written)
            asked = '' if certain else f'Are {listing(map(repr, written))} the classes?'
            edit = learn(facts, written, ASKS if asked else SAFE, asked)
            yield edit

    def words(self, facts: LabelFacts) -> Dict[str, object]:
        missing, names = self._missing(facts)
        known = self._known(facts)
        there, meant = set(known), self._meant(facts)
        pairs = ', '.join(f'{short(name)} is {short(found)} there' for name, found in meant.items() if found)
        # What the file does not know at all is not to be listed.
        written = [meant.get(name) or name for name in names if meant.get(name) or name in there]
        return {
            'missing': listing(map(repr, missing)),
            'names': ', '.join(map(repr, written if pairs else known)),
            'close': f' ({pairs})' if pairs else '',
            'known': listing(map(repr, known)),
            'word': ''.join(self._spelt(facts)),
            'shown': short(''.join(self._spelt(facts))),
            'number': len(known),
        }

    def evidence(self, facts: LabelFacts) -> str:
        missing, names = self._missing(facts)
        path = next((path for path, listed in class_lists(facts).items() if listed == names), 'metainfo.classes')
        empty = len(missing) == len(names) and not any(facts.histogram.values())
        left = (
            '; not one object is left, and no image where `filter_empty_gt` leaves out those without' if empty else ''
        )
        return f'{len(missing)} of {len(names)} names in {path}: {listing(map(repr, missing))}{left}'

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
        there = set(known)
        lacks = [([str(name) for name in names if name not in there], list(map(str, names))) for names in lists]
        missing, names = max(lacks, key=lambda pair: len(pair[0]) / len(pair[1]), default=([], []))
        if found.format == 'voc' and len(missing) < len(names):
            # A class may be missing in a small set of XML files; a name that is left out and nearly its own may not.
            left_out = list(found.left_out_names)
            alike = {folded(name) for name in left_out}
            close = nearest([name for name in missing if folded(name) not in alike], left_out, 0.7)
            missing = [name for name in missing if close.get(name, name)]
        spelt = self._spelt(facts)
        return (spelt, spelt) if spelt and not missing else (missing, names)

    def _listed(self, facts: Facts) -> List[str]:
        """The classes of another split that are those of these files: their order is the user's."""
        known = set(self._known(facts.labels)) if facts.labels else set()
        lists = (split.labels.class_names for split in facts.others if split.labels)
        return next((list(names) for names in lists if known and set(names) == known), [])

    def _spelt(self, facts: LabelFacts) -> List[str]:
        """The letters of a class list that is a string, if there is one."""
        for names in [facts.class_names, *class_lists(facts).values()]:
            letters = len(names) > 1 and all(len(name) == 1 for name in names)
            # Classes may well be called a, b and c: in a file that knows them.
            if letters and (''.join(names) in self._known(facts) or not set(names) & set(self._known(facts))):
                return list(names)
        return []

    def _meant(self, facts: LabelFacts) -> Dict[str, str]:
        """Name that is missing -> the one of the file that it seems to be, or nothing."""
        missing, names = self._missing(facts)
        known = self._known(facts)
        alike = {folded(name): name for name in known}
        listed = set(names)
        close = nearest(missing, [name for name in known if name not in listed], 0.7)
        meant = {name: alike.get(folded(name), found) for name, found in close.items()}
        # Of another list altogether what sounds alike is chance.
        return meant if 2 * sum(map(bool, meant.values())) >= len(missing) else {}

    def _lacks(self, facts: LabelFacts) -> bool:
        """Whether all that the file knows is listed, and some of what is listed is not in the file."""
        missing, names = self._missing(facts)
        known = self._known(facts)
        counted = any(folded(name) in map(folded, BACKGROUND) for name in missing)
        return bool(known) and set(known) <= set(names) and annotations_of(facts).format == 'coco' and not counted

    def _is_of_the_type(self, facts: LabelFacts) -> bool:
        """Whether the names come with the type of the data set, because the config gives none."""
        missing, names = self._missing(facts)
        return len(missing) == len(names) and self._comes_with_type(facts)

    def _comes_with_type(self, facts: LabelFacts) -> bool:
        names = self._missing(facts)[1]
        lists = config_of(facts).dataset_classes
        path = next((path for path, listed in lists.items() if list(listed) == names), '')
        return 'METAINFO' in path
