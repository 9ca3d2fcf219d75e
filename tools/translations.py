"""Catalogue of translated texts, ``mmguard/locale``: extract the texts from the sources, and compile the catalogue.

``python tools/translations.py`` adds new texts without a translation, removes obsolete ones, and compiles the
catalogue. ``tests/test_language.py`` fails while a translation is missing.
"""

from __future__ import annotations

import ast
import json
import re
import struct
from pathlib import Path
from typing import Any, Dict, Iterable, Iterator, List, Tuple

ROOT = Path(__file__).parents[1]
CATALOGUE = ROOT / 'mmguard' / 'locale' / 'zh_CN' / 'LC_MESSAGES' / 'mmguard.po'

#: Codes of the findings that are translated: the most frequent ones of real reports, and those about labels out of
#: range, class weights, ignored labels, reduce_zero_label and ranks that hang.
CODES = (
    'MG100', 'MG101', 'MG102', 'MG103', 'MG104', 'MG105', 'MG106', 'MG107', 'MG108', 'MG109', 'MG115', 'MG116',
    'MG117', 'MG120', 'MG121', 'MG124', 'MG125', 'MG127', 'MG129', 'MG133', 'MG136', 'MG138', 'MG140', 'MG146',
    'MG152', 'MG162', 'MG172', 'MG178', 'MG185', 'MG195', 'MG201', 'MG202', 'MG205', 'MG207', 'MG208', 'MG209',
    'MG210', 'MG211', 'MG214', 'MG215', 'MG227', 'MG303', 'MG304', 'MG305', 'MG306',
)  # fmt: skip
#: Files of the error signatures that are translated.
SIGNATURES = ('device', 'targets')
#: Modules whose messages are translated; a module of rules counts if it has the rule of one of the codes.
SOURCES = (
    'cli.py',
    'config/losses.py',
    'config/read.py',
    'facts/*.py',
    'findings/**/*.py',
    'nnunet/rules/*.py',
    'nnunet/command.py',
    'formats/coco/__init__.py',
    'formats/maps/__init__.py',
    'formats/maps/sources.py',
    'formats/yolo/__init__.py',
    'nnunet/format/__init__.py',
    'hooks/label_guard_hook.py',
    'hooks/runs.py',
    'labels/instances.py',
    'labels/rules.py',
    'log/messages.py',
    'log/run_log.py',
    'scanning/config_*.py',
    'scanning/run.py',
    'text.py',
    'commands/*/command.py',
    'commands/check.py',
    'commands/env.py',
    'commands/report.py',
    'commands/explain/explanation.py',
    'commands/explain/render.py',
    'commands/scan/output.py',
)
#: Text -> its plural, or an empty string.
Texts = Dict[str, str]
#: Texts that no source names: values of fields.
_FIELDS: Texts = {
    **dict.fromkeys(('error', 'warning', 'info', 'pixels', 'instances', 'voxels'), ''),
    **dict.fromkeys(('{first} and {last}', '{first} or {last}', '; ', ': '), ''),
    **{f'{{number:,}} {noun}': f'{{number:,}} {noun}s' for noun in ('error', 'warning', 'info')},
}
#: Modules in which any constant sentence is a text, next to those of findings and rules.
_WITH_CAUSES = ('explanation.py',)
_MESSAGES = ('Message', 'translate', 'as_message')
_SENTENCE = re.compile(r'[A-Z"\'{].* .*[.?]\Z', re.DOTALL)


def extract() -> Texts:
    """Return all texts that the catalogue must have."""
    texts = dict(_FIELDS)
    for text in (*_read_rules(), *_read_signatures()):
        texts.setdefault(text, '')
    trees = {path: ast.parse(path.read_text(encoding='utf-8')) for path in _list_sources()}
    constants = {name: value for tree in trees.values() for name, value in _find_assignments(tree)}
    for path, tree in trees.items():
        texts.update(
            _find_texts(
                tree,
                {**constants, **_collect(_find_assignments(tree))},
                path.name in _WITH_CAUSES or {'findings', 'rules'} & {*path.relative_to(ROOT).parts},
            )
        )
    return texts


def _read_rules() -> Iterator[str]:
    from mmguard.findings.plugins import list_own_rules

    for rule in list_own_rules():
        if rule.code in CODES:
            fields = [name for name in dir(rule) if re.match(r'summary|title|why|limits|advice|pytorch', name)]
            for text in (getattr(rule, name) for name in fields):
                yield from [getattr(text, 'template', text)] if text else ()


def _read_signatures() -> Iterator[str]:
    from mmguard.findings.signatures import read_groups

    folder = ROOT / 'mmguard' / 'findings' / 'signatures'
    for name in SIGNATURES:
        for signature in read_groups()[json.loads((folder / f'{name}.json').read_text(encoding='utf-8'))['group']]:
            yield from (signature.title, signature.meaning)
            yield from (command for command in signature.command.values() if not command.startswith('mmguard '))
            for cause in signature.causes:
                yield from filter(None, (cause.text, cause.look, *cause.advice.values()))


def _list_sources() -> List[Path]:
    files = sorted({path for pattern in SOURCES for path in (ROOT / 'mmguard').glob(pattern)})
    rules = [f"code = '{code}'" for code in CODES]
    return [
        path
        for path in files
        if 'rules' not in path.relative_to(ROOT).parts or any(code in path.read_text() for code in rules)
    ]


def _find_assignments(tree: ast.AST) -> Iterator[Tuple[str, ast.expr]]:
    for node in ast.walk(tree):
        if isinstance(node, (ast.Assign, ast.AnnAssign)) and node.value is not None:
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            for target in targets:
                pairs = [(target, node.value)]
                if isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
                    pairs = list(zip(target.elts, node.value.elts))
                yield from ((name.id, value) for name, value in pairs if isinstance(name, ast.Name))
        elif isinstance(node, (ast.For, ast.comprehension)) and isinstance(node.target, ast.Name):
            yield node.target.id, node.iter


def _collect(pairs: Iterable[Tuple[str, ast.expr]]) -> Dict[str, ast.expr]:
    """Return name -> list node of all values that a module assigns to the name."""
    found: Dict[str, List[ast.expr]] = {}
    for name, value in pairs:
        found.setdefault(name, []).append(value)
    return {name: ast.List(values) for name, values in found.items()}


def _find_texts(tree: ast.AST, constants: Dict[str, ast.expr], has_sentences: bool) -> Iterator[Tuple[str, str]]:
    for node in _walk(tree):
        name = getattr(node.func, 'attr', getattr(node.func, 'id', '')) if isinstance(node, ast.Call) else ''
        if name in _MESSAGES and node.args:
            plural = next((key.value.value for key in node.keywords if key.arg == 'plural'), '')
            yield from ((text, plural) for text in _find_strings(node.args[0], constants))
        elif name in ('quantity', 'plural'):
            number = '{number:,} ' if name == 'quantity' else ''
            for one, many in _find_nouns(node.args[1:], constants):
                yield f'{number}{one}', f'{number}{many}'
        elif name == 'add_parser':
            yield from ((key.value.value, '') for key in node.keywords if key.arg == 'help')
        elif has_sentences and isinstance(node, ast.Constant) and _SENTENCE.match(str(node.value)):
            yield str(node.value), ''


def _walk(tree: ast.AST) -> Iterator[Any]:
    """Yield nodes without docstrings, exceptions, examples, fields of rules, and rules that are not translated."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.ClassDef):
            fields = (part for part in node.body if isinstance(part, ast.Assign))
            code = next((part.value.value for part in fields if getattr(part.targets[0], 'id', '') == 'code'), CODES[0])
            parts = [part for part in node.body if not isinstance(part, (ast.Assign, ast.AnnAssign, ast.Expr))]
            for part in parts if code in CODES else ():
                yield from _walk(part)
        elif isinstance(node, ast.Call) and getattr(node.func, 'id', '') in ('Example', 'CannotRun'):
            continue
        elif not isinstance(node, ast.Raise) and not (
            isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        ):
            yield node
            yield from _walk(node)


def _find_strings(node: ast.AST, constants: Dict[str, ast.expr], depth: int = 0) -> Iterator[str]:
    """Yield the string constants that an expression may evaluate to."""
    if isinstance(node, ast.Constant):
        yield from [node.value] if isinstance(node.value, str) and node.value else ()
    elif isinstance(node, ast.IfExp):
        yield from (*_find_strings(node.body, constants, depth), *_find_strings(node.orelse, constants, depth))
    elif isinstance(node, (ast.List, ast.Tuple)):
        yield from (text for one in node.elts for text in _find_strings(one, constants, depth))
    elif isinstance(node, ast.Dict):
        yield from (text for one in node.values for text in _find_strings(one, constants, depth))
    elif isinstance(node, ast.Subscript):
        yield from _find_strings(node.value, constants, depth)
    elif isinstance(node, ast.Name) and node.id in constants and depth < 3:
        yield from _find_strings(constants[node.id], constants, depth + 1)


def _find_nouns(arguments: List[ast.expr], constants: Dict[str, ast.expr]) -> Iterator[Tuple[str, str]]:
    from mmguard.text import plural

    words = [list(_find_strings(getattr(one, 'value', one) if isinstance(one, ast.Starred) else one, constants))
             for one in arguments]  # fmt: skip
    if len(words) == 1 and isinstance(arguments[0], ast.Starred):  # pairs
        yield from zip(words[0][::2], words[0][1::2])
    elif words:
        for one in words[0]:
            yield one, words[1][0] if len(words) > 1 and words[1] else plural(2, one)


def read(path: Path = CATALOGUE) -> Dict[str, Tuple[str, str]]:
    """Read a .po file: text -> (plural, translation)."""
    entries: Dict[str, Tuple[str, str]] = {}
    for block in path.read_text(encoding='utf-8').split('\n\n'):
        fields: Dict[str, str] = {}
        name = ''
        for line in block.splitlines():
            keyword, _, text = line.rpartition(' ') if line.startswith('"') else line.partition(' ')
            if line.startswith('#'):
                continue
            if line.startswith('"'):
                text = line
            else:
                name = keyword
            fields[name] = fields.get(name, '') + json.loads(text)
        if 'msgid' in fields:
            translation = fields.get('msgstr', fields.get('msgstr[0]', ''))
            entries[fields['msgid']] = fields.get('msgid_plural', ''), translation
    return entries


def write(entries: Dict[str, Tuple[str, str]], path: Path = CATALOGUE) -> None:
    """Write a .po file, and the .mo file next to it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    blocks = []
    for text, (plural, translation) in entries.items():
        lines = [f'msgid {_quote(text)}', f'msgstr {_quote(translation)}']
        if plural:
            lines[1:] = [f'msgid_plural {_quote(plural)}', f'msgstr[0] {_quote(translation)}']
        blocks.append('\n'.join(lines))
    path.write_text('\n\n'.join(blocks) + '\n', encoding='utf-8')
    path.with_suffix('.mo').write_bytes(compile_entries(entries))


def _quote(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def compile_entries(entries: Dict[str, Tuple[str, str]]) -> bytes:
    """Return the content of a .mo file (https://www.gnu.org/software/gettext/manual/html_node/MO-Files.html)."""
    translated = {
        (f'{text}\0{plural}' if plural else text).encode(): translation.encode()
        for text, (plural, translation) in entries.items()
        if translation
    }
    keys = sorted(translated)
    strings, table = b'', {True: b'', False: b''}
    begin = 28 + 16 * len(keys)
    for is_key in (True, False):
        for key in keys:
            text = key if is_key else translated[key]
            table[is_key] += struct.pack('<2I', len(text), begin + len(strings))
            strings += text + b'\0'
    head = struct.pack('<7I', 0x950412DE, 0, len(keys), 28, 28 + 8 * len(keys), 0, 0)
    return head + table[True] + table[False] + strings


HEADER = 'Content-Type: text/plain; charset=UTF-8\nPlural-Forms: nplurals=1; plural=0;\n'


def main() -> None:
    known = read() if CATALOGUE.exists() else {}
    wanted = extract()
    entries = {text: (plural, known.get(text, ('', ''))[1]) for text, plural in sorted(wanted.items())}
    write({'': ('', HEADER), **entries})
    missing = [text for text, (_, translation) in entries.items() if not translation]
    print(f'{len(entries)} texts, {len(missing)} without a translation', *missing[:20], sep='\n  ')


if __name__ == '__main__':
    main()
