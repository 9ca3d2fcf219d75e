"""Functions that several rules use to query facts."""

from __future__ import annotations

import re
import unicodedata
from difflib import get_close_matches
from typing import Dict, Iterable, List, Mapping, Optional, Sequence, Set, Tuple

from mmguard.facts.labels import AnnotationFacts, ConfigFacts, LabelFacts, MapFacts
from mmguard.facts.yolo import YoloFacts
from mmguard.findings.finding import LIKELY, POSSIBLE, PROVEN
from mmguard.labels import VOID
from mmguard.language import Message, join

#: Minimum number of files for which shares of files are informative.
ENOUGH_FILES = 20

#: Maximum number of pairs of names to compare, which takes some seconds.
COMPARED = 100_000

#: Shares of the invalid elements above which a cause counts as the only cause, or as the main cause.
NEARLY_ALL, MOST = 0.9, 0.5

#: Form of a label file -> its fault.
MANY_CHANNELS = {'rgb': '3 channels', 'rgba': '4 channels (with alpha)', 'gray_alpha': 'gray with an alpha channel'}


def get_maps(labels: LabelFacts) -> MapFacts:
    return labels.maps or MapFacts()


def get_annotations(labels: LabelFacts) -> AnnotationFacts:
    return labels.annotations or AnnotationFacts()


def get_yolo(labels: LabelFacts) -> YoloFacts:
    return labels.yolo or YoloFacts()


def get_config(labels: LabelFacts) -> ConfigFacts:
    return labels.config or ConfigFacts()


def has_num_classes(labels: LabelFacts) -> bool:
    """Return True if num_classes is known; without it a scan accepts all 256 values as classes."""
    return labels.num_classes < 256 or labels.has_config


def is_trained_on(labels: LabelFacts) -> bool:
    """Return True if the data set is, or may be, the training set."""
    return not labels.split or 'train' in labels.split


def count_trained(labels: LabelFacts) -> Dict[int, int]:
    """Return {value: count} of the labels as trained, or of only the invalid labels if valid ones were not counted."""
    return {value: count for value, count in (labels.histogram or labels.values).items() if count > 0}


def count_stored(labels: LabelFacts) -> Dict[int, int]:
    """Return {value: count} of the values stored in the files, or of the labels as trained if these are unknown."""
    raw = get_maps(labels).raw
    return {value: count for value, count in raw.items() if count > 0} if raw else count_trained(labels)


def select_ids(values: Iterable[int]) -> Set[int]:
    """Return the values that can be ids: neither 255 (the usual unlabeled value) nor negative."""
    return {value for value in values if value >= 0 and value != VOID}


def has_many_channels(labels: LabelFacts) -> bool:
    """Return True if label files have more than one channel."""
    return any(get_maps(labels).forms.get(form) for form in MANY_CHANNELS)


def subtracts_one(labels: LabelFacts) -> bool:
    """Return True if ``reduce_zero_label`` is set in any data set or loader of the config."""
    return any(get_config(labels).reduce_zero_label.values())


def compute_share(part: float, total: float) -> float:
    """Return ``part / total``, clamped to [0, 1]; 0 if ``total`` is 0."""
    return min(max(part / total, 0.0), 1.0) if total > 0 else 0.0


def rate_share(part: float) -> Optional[str]:
    """Return the certainty of a cause that explains the share ``part`` of the invalid labels; ``None`` for 0."""
    if part <= 0:
        return None
    return PROVEN if part >= NEARLY_ALL else LIKELY if part > MOST else POSSIBLE


def compute_label_share(facts: LabelFacts) -> float:
    """Return the share of invalid elements that are invalid because of their label, not because of their box."""
    labels = sum(facts.values.values())
    boxes = sum(count for reason, count in facts.reasons.items() if reason != 'label')
    return compute_share(labels, labels + boxes)


def find_files_named(labels: LabelFacts, *parts: str) -> List[str]:
    """Return example files whose lower-case name contains one of ``parts``."""
    paths = (path for paths in get_maps(labels).examples.values() for path in paths)
    return [path for path in dict.fromkeys(paths) if any(part in path.lower() for part in parts)]


def join_items(items: Iterable[object], limit: int = 8, unlisted: int = 0) -> str:
    """Join items as ``'a, b, c and 4 more'``, where ``unlisted`` counts further items that are not in ``items``."""
    texts = [item if isinstance(item, Message) else str(item) for item in items]
    first = join(', ', texts[:limit])
    more = max(len(texts) - limit, 0) + unlisted
    return first if not more else Message('{first} and {more:,} more', first=first, more=more)


def count_listed(maps: MapFacts, name: str) -> int:
    """Return the number of entries that the list ``name`` of ``maps`` had before it was truncated."""
    return max(len(getattr(maps, name)), maps.counts.get(name, 0))


def as_map(pairs: Mapping[int, int], limit: int = 40) -> str:
    """Format a ``label_map`` as in a config: ``{7: 0, 8: 1}``."""
    ranked = sorted(pairs.items())
    rest = ', ...' if len(ranked) > limit else ''
    return '{' + ', '.join(f'{raw}: {label}' for raw, label in ranked[:limit]) + rest + '}'


def rise_evenly(levels: Sequence[int]) -> bool:
    """Return True if sorted gray levels have equal steps up to rounding, unlike the grays of a color palette."""
    steps = [high - low for low, high in zip(levels, levels[1:])]
    return max(steps, default=0) - min(steps, default=0) <= 2


def find_alike(names: Iterable[str], known: Iterable[str]) -> Dict[str, str]:
    """Map names to the first ``known`` name that differs only in case, spaces, accents or plural; omit unmatched names.

    Names that contain different numbers never match.

    Example:
        >>> find_alike(['RBc', 'Cherry', 'traffic light', 'car_2'], ['RBC', 'cherries', 'Traffic_Light', 'car_1'])
        {'RBc': 'RBC', 'Cherry': 'cherries', 'traffic light': 'Traffic_Light'}
    """
    ordered = list(known)
    places: Dict[Tuple[str, Tuple[int, ...]], int] = {}
    for place, name in enumerate(ordered):
        for form in _list_forms(name):
            places.setdefault(form, place)
    found = {name: [places[form] for form in _list_forms(name) if form in places] for name in names}
    return {name: ordered[min(there)] for name, there in found.items() if there}


#: Characters of a decomposed name that are accents, or separate words.
_ACCENT_OR_BLANK = re.compile(r'[\u0300-\u036f\s_-]+')


def normalize_name(name: str) -> str:
    """Normalize a name: remove case, accents, blanks, underscores and hyphens.

    Example:
        >>> normalize_name(' Traffic_Light')
        'trafficlight'
    """
    return _ACCENT_OR_BLANK.sub('', unicodedata.normalize('NFKD', name)).casefold()


def _list_forms(name: str) -> List[Tuple[str, Tuple[int, ...]]]:
    """Return the normalized name and its English plurals, each paired with the numbers in the name."""
    spelling = normalize_name(name)
    plurals = [f'{spelling}es'] if spelling.endswith(('s', 'x', 'z', 'ch', 'sh')) else [f'{spelling}s']
    if spelling.endswith('o'):
        plurals.append(f'{spelling}es')
    if spelling.endswith('y'):
        plurals.append(f'{spelling[:-1]}ies')
    return [(form, _find_numbers(name)) for form in (spelling, *plurals)]


def find_nearest(names: Sequence[str], known: Sequence[str], cutoff: float) -> Dict[str, str]:
    """Map each name to the ``known`` name with the most similar spelling, or to ``''`` if no name is similar.

    If there are more than ``COMPARED`` pairs of names, find only the matches of :func:`find_alike`.

    Example:
        >>> find_nearest(['trafic light', 'boat', 'car_2'], ['traffic light', 'car', 'car_1'], 0.7)
        {'trafic light': 'traffic light', 'boat': '', 'car_2': ''}
    """
    alike = find_alike(names, known)
    if len(names) * len(known) > COMPARED:
        return {name: alike.get(name, '') for name in names}
    numbered: Dict[Tuple[int, ...], List[str]] = {}
    for name in known:
        numbered.setdefault(_find_numbers(name), []).append(name)
    return {
        name: alike.get(name)
        or next(iter(get_close_matches(name, numbered.get(_find_numbers(name), []), 1, cutoff)), '')
        for name in names
    }


def _find_numbers(name: str) -> Tuple[int, ...]:
    return tuple(int(digits) for digits in re.findall('[0-9]{1,9}', name))


#: Names of the background class.
_BACKGROUND = ('background', '_background_', '__background__', 'bg')


def is_background(name: str) -> bool:
    return str(name).strip().lower() in _BACKGROUND


def starts_with_background(names: Sequence[str]) -> bool:
    return bool(names) and is_background(names[0])


def find_class_lists(labels: LabelFacts) -> Dict[str, List[str]]:
    """Return the class lists of the config as {path: names}; without any, the class list of the data set."""
    listed = {path: list(names) for path, names in get_config(labels).dataset_classes.items() if names}
    if not listed and labels.class_names:
        listed = {'metainfo.classes': list(labels.class_names)}
    return listed


def is_rare(labels: LabelFacts, files: float = 0.05, elements: float = 0.002) -> bool:
    """Return True if invalid values occur in few of many files, and are a small share of all elements."""
    return (
        labels.files >= ENOUGH_FILES
        and 0 < compute_share(labels.offending_files, labels.files) <= files
        and compute_share(sum(labels.values.values()), labels.total) <= elements
    )
