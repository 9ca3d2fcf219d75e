"""Values in the label files of well-known data sets, with the names of their classes."""

from __future__ import annotations

import re
from typing import Collection, Dict, Mapping, Tuple

#: Data set of volumes -> value in its files -> pattern of names declared for it, in lower case.
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


def match_named_values(values: Collection[int], names: Mapping[int, str]) -> Tuple[str, Dict[int, int]]:
    """Find a well-known data set with these values, and map each value to the declared number of the same name.

    Args:
        values (collection of int): Values in the files, without 0.
        names (dict[int, str]): Declared number -> name; 0 and ignored ones left out.

    Returns:
        tuple: Empty if the set is unknown, or a value does not have exactly one of the names.

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
