from __future__ import annotations

from dataclasses import replace
from typing import Any, Dict, Iterator, List, Optional

from mmguard.config.changes import REMOVED
from mmguard.config.classes import takes
from mmguard.config.head_classes import classes_in, counts
from mmguard.config.label_spaces import from_config
from mmguard.config.parts import Part, datasets, transforms
from mmguard.config.read import ReadConfig
from mmguard.findings.edits import ASKS, SAFE, Edit
from mmguard.findings.facts import LabelFacts
from mmguard.findings.finding import LIKELY, PROVEN, WARNING, Finding
from mmguard.findings.rule import ConfigRule, Example, Facts
from mmguard.findings.usual_edits import map_labels, set_num_classes
from mmguard.findings.views import as_map, config_of, listing


class LabelMapRange(ConfigRule):
    """A label_map with targets outside the classes, or one that is not used."""

    code = 'MG212'
    looks_at = ('config', 'labels')
    aliases = ('MG134',)
    summary = 'label_map maps to a value that is neither a class nor ignored, is not read, or may be applied twice.'
    title = 'label_map maps to labels outside 0..{last}: {pairs}.'
    title_overwritten = '{kind} overwrites this label_map: labels stay as they are in the files.'
    title_again = 'label_map maps to values that it also maps away: applied pair by pair in place, {pairs}.'
    title_argument = '{kind} takes no label_map: it ends in a TypeError when it is built.'
    why = (
        'What a label_map writes is what the loss sees: a value beyond the classes ends the run. MMSegmentation '
        'derives its label_map from the class names and overwrites one that is written in metainfo. A loader of your '
        'own that replaces one value after the other in place replaces what it has just written: two classes become '
        'one.'
    )
    example = Example(wrong='num_classes=2, label_map={7: 0, 8: 2}', right='num_classes=2, label_map={7: 0, 8: 1}')
    limits = 'It does not detect a map to the wrong class, nor see how a loader of your own applies it.'
    advice = (
        'Map to 0 .. num_classes - 1; in label maps also to ignore_index, to leave a value out. A map of your own is '
        'an argument of the guard right after LoadAnnotations, in the pipelines of train and val: GuardSegLabels for '
        'label maps, GuardInstanceLabels for boxes. A loader of your own reads from a copy (`new[old == 3] = 5`), or '
        'maps a value away before another is mapped to it.'
    )

    def look(self, config: ReadConfig) -> Iterator[Finding]:
        for dataset in datasets(config):
            metainfo, place = dataset.config.get('metainfo'), dataset.place('metainfo.label_map')
            if isinstance(metainfo, dict) and 'label_map' in metainfo and hasattr(dataset.cls, 'get_label_map'):
                ways = _move_to_guard(config, metainfo['label_map'], place)
                words = dict(kind=dataset.name)
                yield self.report_at(place, metainfo['label_map'], words, self.title_overwritten, edits=ways)
        misplaced = [
            part
            for part in [*datasets(config), *transforms(config)]
            if part.says('label_map') and part.cls is not None and not takes(part.cls, 'label_map')
        ]
        for part in misplaced:
            label_map, words = part.config['label_map'], dict(kind=part.name)
            places = [one.place('label_map') for one in misplaced if one.config['label_map'] == label_map]
            ways = _move_to_guard(config, label_map, *places)
            yield self.report_at(part.place('label_map'), label_map, words, self.title_argument, edits=ways)
        for part in [*datasets(config), *transforms(config)]:
            found = part.config.get('label_map')
            # A guard reads from a copy.
            if isinstance(found, dict) and part not in misplaced and not part.name.startswith('Guard'):
                again = listing(
                    f'{old} becomes {new}' for old, new in _map_in_place(found).items() if new != found[old]
                )
                if again and part.cls is not None:
                    yield self.report_at(part.place('label_map'), found, dict(pairs=again), self.title_again, WARNING)
        for transform in transforms(config):
            found = transform.config.get('label_map')
            classes = _classes(transform, config)
            if not isinstance(found, dict) or classes is None:
                continue
            # Instances have no ignored label: a region is ignored by its flag.
            ignored = None if transform.name == 'GuardInstanceLabels' else transform.get('ignore_index', 255)
            outside = _outside(found, classes, ignored)
            if outside:
                yield self._leads_out(transform.place('label_map'), found, outside, classes, ignored)

    def _leads_out(self, path: str, label_map: Any, outside: Dict[Any, Any], classes: int, ignored: Any) -> Finding:
        words = dict(last=classes - 1, pairs=listing(f'{raw} -> {label}' for raw, label in outside.items()))
        mapped = {**label_map, **dict.fromkeys(outside, ignored)}
        owner = path.rpartition('.')[0]
        leave_out = Edit(
            'Map these values to the ignored label.',
            ASKS,
            f'Should {listing(outside)} be excluded from training?',
            ((path, mapped),) if owner else (),
            (('label_map', tuple(mapped.items())),),
            lines=(f'label_map={as_map(mapped)}{f" at {owner}" if owner else ""}',),
            if_not='Map each of them to its class.',
        )
        return self.report_at(path, label_map, words, edits=[] if ignored is None else [leave_out])

    def edits(self, finding: Finding, facts: Facts) -> Iterator[Edit]:
        yield from finding.candidates
        number = facts.labels.num_classes if facts.labels is not None else 0
        above = {label for label in finding.value.values() if label == number} if finding.candidates and number else ()
        if above:  # one more class than there are
            yield set_num_classes(facts, number + 1, ASKS, f'Is {number} one more class?')

    def find(self, facts: Facts) -> Iterator[Finding]:
        yield from super().find(facts)
        labels = facts.labels
        if facts.config is None and labels is not None:
            label_map = config_of(labels).label_map
            outside = _outside(
                label_map, labels.num_classes, 255 if labels.ignore_index is None else labels.ignore_index
            )
            if outside:
                found = self._leads_out('label_map', label_map, outside, labels.num_classes, labels.ignore_index)
                yield replace(found, certainty=self.certainty_given(found, labels))

    def certainty_given(self, found: Finding, labels: LabelFacts) -> str:
        wrong = found.value if isinstance(found.value, dict) else {}
        return PROVEN if labels.values and set(labels.values) <= set(wrong.values()) else LIKELY


def _move_to_guard(config: ReadConfig, label_map: Any, *places: str) -> List[Edit]:
    if from_config(config).pixels is None:
        return []
    try:
        table = {int(raw): int(label) for raw, label in label_map.items()}
    except (AttributeError, TypeError, ValueError):
        return []
    edit = map_labels(Facts(config=config), table, SAFE)
    removed = [(place, REMOVED) for place in places]
    # The edit writes whole pipelines, with what was in them; what it adds there comes after the place.
    return [replace(edit, config=(*edit.config, *removed))]


def _map_in_place(label_map: Dict[Any, Any]) -> Dict[Any, Any]:
    """Return raw value -> label if the pairs are applied one after another in place.

    Example:
        >>> _map_in_place({1: 4, 4: 2, 2: 0})
        {1: 0, 4: 0, 2: 0}
    """
    mapped = {raw: raw for raw in label_map}
    for old, new in label_map.items():
        mapped = {raw: new if label == old else label for raw, label in mapped.items()}
    return mapped


def _classes(transform: Part, config: ReadConfig) -> Optional[int]:
    classes = classes_in(transform)
    if classes is None:
        return next((classes_in(count.head) for count in counts(config)), None)
    return classes


def _outside(label_map: Dict[Any, Any], classes: int, ignored: Any) -> Dict[Any, Any]:
    found = {}
    for raw, label in label_map.items():
        try:
            number = int(label)
        except (TypeError, ValueError):
            continue
        if not 0 <= number < classes and number != ignored:
            found[raw] = label
    return found
