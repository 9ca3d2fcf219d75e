from __future__ import annotations

import re
from typing import Collection, Dict, Iterator, List, Mapping, Tuple

from mmguard.facts.labels import LabelFacts
from mmguard.facts.volumes import UNEXPECTED
from mmguard.findings.edits import Edit
from mmguard.findings.finding import PROVEN, Finding
from mmguard.findings.rule import Example, Facts
from mmguard.findings.views import compute_share, join_items
from mmguard.language import Message, join
from mmguard.nnunet.rules.dataset_json import (
    VolumeCause,
    as_written,
    find_ignore_value,
    find_mistakes,
    get_labels_by_name,
    get_volumes,
    is_old,
    list_files,
    rewrite_volumes,
    write_renumbering,
)
from mmguard.text import quantity, shorten

#: Maximum share of voxels of a value that counts as an annotation mistake rather than a class.
RARE_VOXELS = 1e-4
#: Maximum distance of the gray levels of a binary mask from 0 or 255.
_NEAR = 32
#: Data set of volumes -> value in its files -> pattern of the declared name, in lower case.
VOLUME_SETS: Dict[str, Dict[int, str]] = {
    'MM-WHS': {
        500: r'\blv\b(?!.*myo)|left ventric(?!.*myo)',
        600: r'\brv\b|right ventric',
        420: r'\bla\b|left atri',
        421: r'\bla\b|left atri',
        550: r'\bra\b|right atri',
        205: r'myo',
        820: r'\bao\b|aorta',
        850: r'\bpa\b|pulmonary',
    },
    'BraTS': {
        1: r'necro|\bncr|\bnet\b|non.?enhanc|\bcore\b',
        2: r'edema|\bed\b',
        4: r'(?<!non.)(?<!non)enhanc|\bet\b',
    },
}


class UnexpectedValues(VolumeCause):
    code = 'MG185'
    before = 'MG102'
    follows = ('MG135', 'MG197')
    shown_by = (UNEXPECTED,)
    summary = 'Label files hold values that dataset.json does not declare.'
    title = 'Label files hold values that dataset.json does not declare: {listed}.'
    why = 'Preprocessing keeps these values, but the network has no class for them: a GPU raises a device-side assert.'
    example = Example(
        wrong='"labels": {"background": 0, "liver": 1} for label files with the values 0, 1 and 2',
        right='"labels": {"background": 0, "liver": 1, "tumor": 2}',
    )
    limits = 'Cannot tell whether a value is an annotation mistake, a forgotten class or a mark of unannotated voxels.'
    advice = (
        'Look at the reported slices (valid labels are {valid}): correct mistakes, declare a class in `"labels"`, '
        'renumber the values, or threshold gray levels. If a value (255, -1) marks voxels without annotation, replace '
        'it with {next}, not with background, and declare `"ignore": {next}`.'
    )

    needs = ()

    def look(self, facts: Facts, labels: LabelFacts) -> Iterator[Finding]:
        volumes, faults = get_volumes(labels), self.faults(labels)
        if not faults and not labels.values:
            return
        ranked = sorted(labels.values, key=lambda value: (-labels.values[value], value))
        texts: List[str] = [
            Message(
                'value {value}: {voxels} in {files}',
                value=value,
                voxels=quantity(labels.values[value], 'voxel'),
                files=quantity(volumes.files_with_class.get(value, 0), 'label file'),
            )
            for value in ranked[:4]
        ]
        if len(ranked) > 4:
            texts.append(quantity(len(ranked) - 4, 'more value'))
        if faults:
            first = max(faults, key=lambda fault: fault.voxels)
            template = 'in {file}: {detail}' if len(faults) == 1 else 'most in {file}: {detail}'
            texts.append(Message(template, file=first.file, detail=first.detail))
        words = {
            'listed': join_items(sorted(labels.values)) or Message('many'),
            'valid': join_items(volumes.expected, 16),
            'next': find_ignore_value(labels),
        }
        # For each value that was not renumbered, a declared label never occurs.
        is_renumbering = len(labels.values) >= len(volumes.never) or bool(self._find_numbering(labels))
        is_common = compute_share(sum(labels.values.values()), labels.total) > RARE_VOXELS
        follow = self.follows if is_renumbering and is_common else ()
        yield self.report_in(facts, PROVEN, join('; ', texts), words, files=list_files(faults), follows=follow)

    def offer(self, facts: Facts, labels: LabelFacts) -> Iterator[Edit]:
        if not labels.values:
            return
        wrong = sorted(labels.values)
        volumes = get_volumes(labels)
        declared = get_labels_by_name(labels)
        following = max(volumes.expected, default=0) + 1
        rare = compute_share(sum(labels.values.values()), labels.total) <= RARE_VOXELS
        if _is_gray(labels) and volumes.expected == [0, 1]:
            table = {value: int(value > 127) for value in labels.histogram if value != int(value > 127)}
            title, line = (
                'Threshold the masks, and save one channel without loss.',
                'seg = (seg > 127).astype(np.uint8)',
            )
            yield rewrite_volumes(labels, title, '', [line], label_map=table)
            return
        known, pairs = self._match_names(labels)
        if pairs:
            asked = Message('Are the values from {known}: {what}?', known=known, what=_describe(labels, pairs))
            yield _renumber(labels, pairs, asked)
            return
        pairs = self._find_numbering(labels)
        if pairs and not rare:
            yield _renumber(labels, pairs, Message('Is {what}?', what=_describe(labels, pairs)))
        if wrong == [following] and labels.ignore_index is None and not rare:
            entry = f'"{following}": "NAME"' if is_old(labels) else f'"NAME": {following}'
            added = {'labels': as_written(labels, {**declared, f'class {following}': following})}
            title = 'Declare the class in dataset.json, with its name.'
            asked = Message('Is {following} a class that dataset.json lacks?', following=following)
            yield rewrite_volumes(labels, title, asked, [entry], added)
        void = following if labels.ignore_index is None else labels.ignore_index
        if len(wrong) <= 16 and not is_old(labels):  # v1 has no ignored label
            added = {'labels': {**declared, 'ignore': void}}
            rows = [f'seg[np.isin(seg, {wrong})] = {void}'] * (wrong != [void])
            rows += [f'"ignore": {void}'] * (labels.ignore_index is None)
            asked = Message('Does {wrong} mark voxels that were not annotated?', wrong=join_items(wrong))
            title, table = 'Ignore these values, in dataset.json and in all label files.', dict.fromkeys(wrong, void)
            yield rewrite_volumes(labels, title, asked, rows, added, label_map=table)

    def _match_names(self, labels: LabelFacts) -> Tuple[str, Dict[int, int]]:
        """Return the known data set whose numbering the files use, and {value: declared label} where the two differ."""
        found = [value for value in labels.histogram if value not in (0, labels.ignore_index)]
        names = {
            value: labels.name_of(value)
            for value in get_volumes(labels).expected
            if value not in (0, labels.ignore_index)
        }
        title, pairs = match_named_values(found, names)
        return title, {old: new for old, new in pairs.items() if old != new}

    def _find_numbering(self, labels: LabelFacts) -> Dict[int, int]:
        """Match file values, in order, with equally many declared labels; return unequal pairs as {value: label}."""
        found = sorted(set(labels.histogram) - {labels.ignore_index} - set(find_mistakes(labels, labels.values)))
        classes = sorted(set(get_volumes(labels).expected) - {labels.ignore_index})
        if not labels.values or len(found) != len(classes) or len(classes) < 2 or found[0] != 0:
            return {}
        pairs = {old: new for old, new in zip(found, classes) if old != new}
        return {
            **pairs,
            **{value: pairs[meant] for value, meant in find_mistakes(labels, labels.values).items() if meant in pairs},
        }


def _describe(labels: LabelFacts, pairs: Mapping[int, int]) -> str:
    return ', '.join(f'{old} {shorten(labels.name_of(new))}' for old, new in pairs.items())


def _renumber(labels: LabelFacts, pairs: Mapping[int, int], question: str) -> Edit:
    title = 'Renumber all label files.'
    return rewrite_volumes(labels, title, question, write_renumbering(pairs), label_map=pairs)


def _is_gray(labels: LabelFacts) -> bool:
    """Return True if over 4 values occur, all in 0..255, and most voxels are near 0 or 255, as in a blurred mask."""
    counts = labels.histogram
    low = sum(count for value, count in counts.items() if 0 <= value <= _NEAR)
    high = sum(count for value, count in counts.items() if 255 - _NEAR <= value <= 255)
    inside = len(counts) > 4 and min(counts) >= 0 and max(counts) <= 255
    return inside and low + high > 0.8 * sum(counts.values()) and bool(low and high)


def match_named_values(values: Collection[int], names: Mapping[int, str]) -> Tuple[str, Dict[int, int]]:
    """Find a well-known data set with these values, and map each value to the label of the same class in dataset.json.

    Args:
        values (collection of int): Values in the files, without 0.
        names (dict[int, str]): Declared number -> name, without 0 and the ignore label.

    Returns:
        tuple: name of the data set, and {value: declared number}; ``('', {})`` if no data set fits, or a value does not
        match exactly one name.

    Example:
        >>> match_named_values([1, 2, 4], {1: 'edema', 2: 'non-enhancing tumor', 3: 'enhancing tumor'})
        ('BraTS', {1: 2, 2: 1, 4: 3})
    """
    plain = {number: name.lower().replace('_', ' ').replace('oedema', 'edema') for number, name in names.items()}
    for title, patterns in VOLUME_SETS.items():
        if not values or not set(values) <= set(patterns):
            continue
        fitting = {value: [n for n, name in plain.items() if re.search(patterns[value], name)] for value in values}
        if all(len(numbers) == 1 for numbers in fitting.values()):
            return title, {value: numbers[0] for value, numbers in sorted(fitting.items())}
    return '', {}
