"""Reader of the pattern of labels outside the classes, which the rules about them share."""

from __future__ import annotations

from typing import Any, Dict, Iterator, List, Sequence

from mmguard.facts.labels import LabelFacts
from mmguard.findings.finding import LIKELY, POSSIBLE, PROVEN, Finding
from mmguard.findings.known_sets import VOID_EQUALS_NUM_CLASSES
from mmguard.findings.rule import DataRule, Facts
from mmguard.findings.views import (
    as_map,
    compute_label_share,
    compute_share,
    count_trained,
    get_annotations,
    get_maps,
    is_rare,
    join_items,
    rate_share,
    select_ids,
)

#: Maximum number of values that are slips.
FEW_VALUES = 4
#: For few files: their minimum number, and the maximum share of files and elements with a slip.
SEVERAL_FILES, FEW_FILES, FEW_ELEMENTS = 10, 0.2, 0.03
#: Ids from here on are not a numbering with gaps.
MOST_IDS = 1000


class OutsideRule(DataRule):
    """Base class of rules about one pattern of labels outside the classes."""

    kinds = ('pixels', 'instances')

    def look(self, facts: Facts, labels: LabelFacts) -> Iterator[Finding]:
        certainty = read_pattern(labels).get(self.code)
        if certainty is not None:
            ids = list_ids(labels) or [0]
            words: Dict[str, Any] = {'ids': join_items(ids), 'number': len(ids), 'least': ids[0], 'most': ids[-1]}
            words['enough'] = ids[-1] + labels.num_classes - labels.last
            words['pairs'] = as_map({value: label for label, value in enumerate(ids) if value != label}, 8)
            yield self.report_in(facts, certainty, words=words)


def read_pattern(labels: LabelFacts) -> Dict[str, str]:
    """Return code -> certainty of the rules that explain the labels outside the classes; MG107 explains any."""
    values, classes, listed = set(labels.values), labels.num_classes, len(labels.class_names)
    found: Dict[str, str] = {}
    if counts_from_one(labels):
        found['MG115'] = PROVEN
    if not values:
        return found
    if classes <= min(values) and max(values) < listed:
        # A list of names does not prove that the files use its numbering.
        found['MG108'] = PROVEN if labels.kind == 'instances' or max(values) == listed - 1 else LIKELY
    # The first value after the classes is often a forgotten class, but not if it has only a handful of pixels.
    is_sure = values == {classes} and is_rare(labels, files=0.01, elements=1e-4)
    # A tumor fills few voxels of few cases.
    is_small_class = values == {classes} and not is_sure and 'volume' in get_maps(labels).forms
    if not is_small_class and _is_rarer_than_classes(labels):
        found['MG127'] = PROVEN
    elif not is_small_class and is_rare(labels) and len(values) <= FEW_VALUES:
        found['MG127'] = PROVEN if is_sure else LIKELY
    if _has_gaps(labels):
        # Not proven in three cases. The last id may be the void of a known set, and the gap a class without files; a
        # rare last id may be a slip, and the gap the last class; ids far apart may not be a numbering at all.
        ids = list_ids(labels)
        is_void_behind = ids[-1] == classes and classes in VOID_EQUALS_NUM_CLASSES
        found['MG116'] = LIKELY if is_void_behind or is_rare(labels) or are_far(ids) else PROVEN
    if values == {classes}:
        certainty = rate_share(compute_label_share(labels)) if labels.kind == 'instances' else PROVEN
        found.update({'MG102': certainty} if certainty is not None else {})
    if max(values) < 0:
        found['MG105'] = PROVEN
    return {**found, 'MG107': POSSIBLE}


def list_ids(labels: LabelFacts) -> List[int]:
    """Return the labels that can be ids, without the ignored one."""
    return sorted(select_ids(count_trained(labels)) - {labels.ignore_index})


def are_far(ids: Sequence[int]) -> bool:
    """Return True if ids are too far apart for a numbering with gaps."""
    return ids[-1] > 4 * len(ids) + 8


def counts_from_one(labels: LabelFacts) -> bool:
    """Return True if labels are 1..N where 0..N-1 are expected."""
    ids, last = select_ids(count_trained(labels)) if labels.histogram else set(), labels.last
    if 0 in ids or 1 not in ids or any(value < 0 for value in labels.values):
        return False
    return last < max(ids) <= last + 2 and len(ids) >= 0.5 * max(ids)


def _has_gaps(labels: LabelFacts) -> bool:
    """Return True if there are as many ids as classes, but the highest is out of range."""
    ids = list_ids(labels)
    if not labels.histogram or len(ids) < 2 or min(labels.values) < 0 or ids[-1] >= MOST_IDS:
        return False
    ignored = labels.ignore_index is not None and labels.histogram.get(labels.ignore_index, 0) > 0
    span = ids[-1] - ids[0] + 1
    if ignored and len(ids) < len({*ids, labels.ignore_index} & set(range(ids[0], ids[-1] + 1))) == span:
        return False  # the ignored label fills the gap
    return len(ids) == labels.num_classes and ids[0] <= 1 and ids[-1] >= len(ids) + (ids[0] == 1)


def _is_rarer_than_classes(labels: LabelFacts) -> bool:
    """Return True if the first value after the classes is in fewer files than any class, and in only a few.

    A class missing in the list is drawn as often as the others; a listed value is not a slip.
    """
    beyond, count, of_pixels = labels.num_classes, sum(labels.values.values()), labels.kind == 'pixels'
    if set(labels.values) != {beyond} or beyond < 1 + of_pixels or len(labels.class_names) > beyond:
        return False
    holders = (get_maps(labels) if of_pixels else get_annotations(labels)).files_with_class
    files = {label: number for label, number in holders.items() if 0 <= label < beyond and number}
    # Boxes are also compared by number, because a file may contain many.
    rarest = min((count_trained(labels).get(label, 0) for label in files), default=0)
    few = compute_share(labels.offending_files, labels.files) <= FEW_FILES and labels.files >= SEVERAL_FILES
    small = compute_share(count, labels.total) <= FEW_ELEMENTS and (of_pixels or count < rarest)
    return few and small and min(files.values(), default=0) > labels.offending_files
