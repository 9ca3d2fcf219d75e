"""Damage to small inputs: to trees (JSON, configs), to XML, to tables, and to bytes."""

from __future__ import annotations

import copy
import json
import random
import re
import struct
import xml.etree.ElementTree as ET
from html import escape
from typing import Any, Callable, List, Sequence, Tuple

Random = random.Random

#: Stand for what no tree can hold: they are replaced in its text.
DEEP, DIGITS = '@deep@', '@digits@'

TEXTS: Tuple[str, ...] = (
    '', ' ', '5', '-1', '1e999', 'nan', 'NaN', 'null', 'a\nb', 'a\r\nb', '\t', 'null\0byte',
    '\x1b[31mred\x1b]0;title\x07', '\x9b31m', '\u202egnp.exe', '\u2028', '\ud800', '\udcff.png', '\ufeff',
    '<script>fuzz()</script>', '"><img src=x onerror=fuzz()>', '[bold]rich[/]', '[/]', '{0.__class__}', '%s%n',
    '${x}', '{{x}}', '`x`', "it's", '.', '..', '~', '.nii', 'no/such/file.png', 'x' * 300, 'x' * 70_000,
    '\n' * 20_000, '\U0001f4a5', '\u4e2d\u6587', '(' * 500,
)  # fmt: skip
NUMBERS: Tuple[Any, ...] = (
    0, 1, -1, 2, 255, 256, 65_535, 32_767, 2**31 - 1, 2**31, -(2**31), 2**32, 2**53 + 1, 2**63 - 1, 2**63, 2**64,
    -(2**63) - 1, 10**18, 10**30, 10**400, -(10**400), 0.5, -0.0, 1e-308, 1e18, 1e308, -1e308, float('nan'),
    float('inf'), float('-inf'), DIGITS,
)  # fmt: skip
OTHERS: Tuple[Any, ...] = (None, True, False, [], {}, [[]], [{}], {'': {}}, [None], {'a': []}, DEEP, [1, 'x', None])


def odd_text(draw: Random) -> str:
    return draw.choice(TEXTS)


def odd_value(draw: Random) -> Any:
    return copy.deepcopy(draw.choice(draw.choice((TEXTS, NUMBERS, OTHERS))))


# ---- trees


def damaged_tree(draw: Random, tree: Any, value: Callable[[Random], Any] = odd_value) -> Any:
    """A copy of a tree of dicts and lists with some of its nodes changed.

    Args:
        draw (Random): Decides.
        tree: What to damage.
        value (callable): Makes what is put in.
    """
    root = [copy.deepcopy(tree)]
    for _ in range(draw.choice((1, 1, 1, 2, 4))):
        places = _places(root)
        holder, key = draw.choice(places)
        draw.choice(_TREE_STEPS)(draw, root, holder, key, value)
    return root[0]


def _places(holder: Any) -> List[Tuple[Any, Any]]:
    """Every node, as what holds it and its key there."""
    found = []
    waiting = [holder]
    while waiting:
        at = waiting.pop()
        for key, inner in list(at.items()) if isinstance(at, dict) else list(enumerate(at)):
            found.append((at, key))
            if isinstance(inner, (dict, list)):
                waiting.append(inner)
    return found


def _replace(draw: Random, root: List, holder: Any, key: Any, value: Callable) -> None:
    holder[key] = value(draw)


def _delete(draw: Random, root: List, holder: Any, key: Any, value: Callable) -> None:
    if holder is not root:
        del holder[key]


def _repeat(draw: Random, root: List, holder: Any, key: Any, value: Callable) -> None:
    """An item again, or many times; of an object, under another key."""
    if isinstance(holder, dict):
        holder[odd_text(draw)] = copy.deepcopy(holder[key])
    elif holder is not root:
        holder[key:key] = [copy.deepcopy(holder[key]) for _ in range(draw.choice((1, 1, 3, 200)))]


def _swap(draw: Random, root: List, holder: Any, key: Any, value: Callable) -> None:
    other, place = draw.choice(_places(root))
    # Copies: a node that held itself would be no tree.
    holder[key], other[place] = copy.deepcopy(other[place]), copy.deepcopy(holder[key])


def _wrap(draw: Random, root: List, holder: Any, key: Any, value: Callable) -> None:
    holder[key] = draw.choice((lambda node: [node], lambda node: {'a': node}, lambda node: [node, node]))(holder[key])


def _unwrap(draw: Random, root: List, holder: Any, key: Any, value: Callable) -> None:
    node = holder[key]
    if isinstance(node, (dict, list)) and node:
        holder[key] = draw.choice(list(node.values()) if isinstance(node, dict) else node)


def _as_text(draw: Random, root: List, holder: Any, key: Any, value: Callable) -> None:
    """``5`` becomes ``'5'`` and the other way round."""
    node = holder[key]
    if isinstance(node, str):
        holder[key] = int(node) if re.fullmatch('[0-9]{1,18}', node) else len(node)
    else:
        holder[key] = str(node)[:1000]


def _scale(draw: Random, root: List, holder: Any, key: Any, value: Callable) -> None:
    node = holder[key]
    if isinstance(node, (int, float)) and abs(node) < 1e300:
        holder[key] = node * draw.choice((-1, 0, 0.5, 1.0, 10, 1e6, 10**12, 10**40))


def _rename(draw: Random, root: List, holder: Any, key: Any, value: Callable) -> None:
    if isinstance(holder, dict):
        holder[draw.choice((odd_text(draw), f'{key} ', str(key).upper()))] = holder.pop(key)


_TREE_STEPS = (*[_replace] * 4, _delete, _repeat, _swap, _wrap, _unwrap, _as_text, _scale, _rename)


def with_tokens(draw: Random, text: str) -> str:
    """A tree's text with what stood for nests and endless numbers."""
    depth = draw.choice((20, 900, 2000, 100_000))
    deep = draw.choice(('[' * depth + ']' * depth, '{"a":' * depth + '1' + '}' * depth))
    return text.replace(f'"{DEEP}"', deep).replace(f'"{DIGITS}"', '9' * 5000)


def damaged_json(draw: Random, content: bytes) -> bytes:
    tree = damaged_tree(draw, json.loads(content))
    text = json.dumps(tree, ensure_ascii=draw.random() < 0.7)
    return with_tokens(draw, text).encode('utf-8', 'surrogatepass')


def damaged_lines(draw: Random, content: bytes) -> bytes:
    """One line of a .jsonl damaged, or the order of its lines."""
    lines = content.splitlines()
    number = draw.randrange(len(lines))
    step = draw.random()
    if step < 0.8:
        lines[number] = damaged_json(draw, lines[number])
    elif step < 0.9:
        lines.insert(draw.randrange(len(lines)), lines[number])
    else:
        del lines[number]
    return b'\n'.join(lines) + draw.choice((b'\n', b'\n', b''))


def damaged_text(draw: Random, content: bytes) -> bytes:
    """Lines of a text left out, doubled, cut off, joined, marked or with another word in them."""
    lines = content.decode().splitlines()
    for _ in range(draw.choice((1, 1, 2, 4))):
        place = draw.randrange(len(lines))
        step = draw.randrange(8)
        if step == 0 and len(lines) > 1:
            del lines[place]
        elif step == 1:
            lines[place:place] = lines[place : place + draw.choice((1, 5))] * draw.choice((1, 1, 3, 500))
        elif step == 2:
            lines[place] = lines[place][: draw.randrange(len(lines[place]) + 1)]
        elif step == 3:
            lines[place] = draw.choice((' ', '\r', '\0', '\x1b[2K')).join((lines[place], draw.choice(lines)))
        elif step == 4:
            lines[place] = draw.choice(MARKS) + lines[place]
        elif step == 5:
            lines.insert(place, odd_text(draw))
        else:
            words = lines[place].split(' ')
            words[draw.randrange(len(words))] = str(draw.choice((odd_text(draw), draw.choice(NUMBERS))))
            lines[place] = ' '.join(words)
    return draw.choice(('\n', '\n', '\n', '\r\n', '\r')).join([*lines, '']).encode('utf-8', 'surrogatepass')


#: What programs that start a training put in front of a line.
MARKS = ('[rank1]: ', '1: ', '(pid=7) ', '2026/01/01 00:00:00 - mmengine - INFO - ', '\x1b[31m', '  ', '> ', 'x-1  | ')


# ---- XML and tables


def damaged_xml(draw: Random, content: bytes) -> bytes:
    """A tag, a text or an attribute of an XML file changed."""
    root = ET.fromstring(content)
    texts: List[Tuple[str, str]] = []
    for _ in range(draw.choice((1, 1, 2, 4))):
        parents = [element for element in root.iter() if len(element)]
        parent = draw.choice(parents) if parents else root
        child = draw.choice(list(parent)) if len(parent) else root
        step = 7 if child.attrib and draw.random() < 0.5 else draw.randrange(9)
        if step < 3:
            # Characters that XML cannot write come in as text, after it is written.
            texts.append((f'text{len(texts)}', str(draw.choice((odd_text(draw), draw.choice(NUMBERS), '1.5', '-7')))))
            child.text = texts[-1][0]
        elif step == 3:
            for element in [child] if child in list(parent) else []:
                parent.remove(element)
        elif step == 4:
            parent.extend([copy.deepcopy(child) for _ in range(draw.choice((1, 1, 50)))])
        elif step == 5:
            there = sorted({element.tag for element in root.iter()})
            child.tag = draw.choice((*there, 'part', 'x', child.tag.upper()))
        elif step == 6:
            root.set('xmlns', 'http://example.org')
        elif step == 7:
            key = draw.choice((*child.attrib, 'a'))
            child.attrib.pop(key, None)
            if draw.random() < 0.8:
                child.set(key, str(draw.choice(('<&">', odd_text(draw), draw.choice(NUMBERS), '1.5', '-7'))))
        else:
            child.text = DEEP
    written = ET.tostring(root, encoding='unicode')
    for token, text in texts:
        written = written.replace(f'>{token}<', f'>{text if draw.random() < 0.5 else escape(text, quote=False)}<')
    depth = draw.choice((1, 900, 3000, 50_000))
    return written.replace(DEEP, '<object>' * depth + '</object>' * depth).encode('utf-8', 'surrogatepass')


# ---- bytes

_INTEGERS = (0, 1, -1, 2, 7, 8, 16, 127, 128, 255, 256, 32_767, -32_768, 65_535, 2**31 - 1, -(2**31))


def damaged_bytes(draw: Random, content: bytes) -> bytes:
    """Bits flipped, bytes cut off, put in, moved, and numbers of the header changed."""
    data = bytearray(content)
    for _ in range(draw.choice((1, 1, 2, 4, 8))):
        place = draw.randrange(len(data) + 1)
        length = draw.choice((1, 2, 4, 16, 64))
        step = draw.randrange(9)
        if step == 0 and place < len(data):
            data[place] ^= 1 << draw.randrange(8)
        elif step == 1 and place < len(data):
            data[place] = draw.choice((0, 255, 0x7F, 0x80, 0x1B, 0x0A, 0x22, 0x3C, draw.randrange(256)))
        elif step == 2:
            del data[place:]
        elif step == 3:
            data[place:place] = bytes(draw.randrange(256) for _ in range(length))
        elif step == 4:
            del data[place : place + length]
        elif step == 5:
            start = draw.randrange(len(data) + 1)
            data[place:place] = data[start : start + length]
        elif step == 6:
            start = draw.randrange(len(data) + 1)
            data[place : place + length] = data[start : start + length]
        else:
            form = draw.choice(('<h', '>h', '<i', '>i'))
            low, high = (-32_768, 32_767) if form[1] == 'h' else (-(2**31), 2**31 - 1)
            at = draw.randrange(min(len(data), 400) + 1) & ~1
            number = struct.pack(form, min(max(draw.choice(_INTEGERS), low), high))
            data[at : at + len(number)] = number
    return bytes(data)


def any_of(draw: Random, content: bytes, structural: Sequence[Callable[[Random, bytes], bytes]]) -> bytes:
    """Damaged by one of these, or bytewise."""
    if structural and draw.random() < 0.65:
        return draw.choice(structural)(draw, content)
    return damaged_bytes(draw, content)
