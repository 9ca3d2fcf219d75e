"""Annotation files that are damaged at random: in their structure, and in their bytes."""

from __future__ import annotations

import copy
import json
import random
from typing import Any, List, Tuple, Union

#: What may stand in place of any value.
HOSTILE: Tuple[Any, ...] = (
    None,
    True,
    '',
    '5',
    'cat',
    'nan',
    '\ud800',
    'a\0b',
    0,
    -1,
    1.5,
    10**30,
    10**400,
    1e308,
    float('nan'),
    float('inf'),
    [],
    {},
    [1, 2],
    [[1, 2, 3, 4, 5]],
    [[1, 2, 3, 4, 5, float('nan')]],
    [[1, 1, 9, 1, 9, 9]],
    {'size': [80, 100], 'counts': '0'},
    {'size': [8, 9], 'counts': [72]},
    {'size': [80, 100], 'counts': [10, 20, 7970]},
)
#: What may be put between any two bytes.
INSERTED = (b'9' * 5000, b'[' * 2000, b'\xff', b'\0', b'NaN', b'-', b'e9', b'"', b'}', b'\xc3\xa9', b'\\ud800', b'<b>')
Place = List[Union[str, int]]


def structural(record: Any, draw: random.Random) -> Any:
    """A copy of a JSON value with a value or two replaced, removed, doubled or made a text."""
    damaged = copy.deepcopy(record)
    for _ in range(draw.choice([1, 1, 2])):
        places = [place for place in _places(damaged, []) if place]
        if not places:
            break
        # Large arrays must not draw all the damage: a level is drawn first.
        depth = draw.choice(sorted({len(place) for place in places}))
        *way, last = draw.choice([place for place in places if len(place) == depth])
        holder = damaged
        for step in way:
            holder = holder[step]
        kind = draw.choice(['replace', 'replace', 'remove', 'double', 'text'])
        if kind == 'remove':
            del holder[last]
        elif kind == 'double' and isinstance(holder, list):
            holder.append(copy.deepcopy(holder[last]))
        elif kind == 'text' and not isinstance(holder[last], (dict, list)):
            holder[last] = str(holder[last])
        else:
            holder[last] = copy.deepcopy(draw.choice(HOSTILE))
    return damaged


def bytewise(data: bytes, draw: random.Random) -> bytes:
    """A text with some of its bytes changed, removed, doubled or inserted."""
    for _ in range(draw.choice([1, 1, 2])):
        place = draw.randrange(len(data) + 1)
        end = min(place + draw.choice([1, 1, 2, 8, 60]), len(data))
        new = draw.choice([b'', data[place:end] * 2, bytes([draw.randrange(256)]), draw.choice(INSERTED)])
        data = data[:place] + new + data[end:]
    return data


def as_json(record: Any) -> bytes:
    return json.dumps(record).encode()


def _places(value: Any, way: Place) -> List[Place]:
    items: Any = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    below = [place for key, one in items for place in _places(one, [*way, key])]
    return [way, *below]
