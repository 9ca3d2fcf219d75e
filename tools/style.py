"""Check of CONTRIBUTING.md's rules on style: docstrings and names with ``ast``, texts with a list of words.

``python tools/style.py`` prints each line that breaks a rule, and then exits with 1.
"""

from __future__ import annotations

import ast
import builtins
import re
import subprocess
import sys
import tokenize
from pathlib import Path
from typing import Container, Iterable, Iterator, List, Set, Tuple

ROOT = Path(__file__).parents[1]

#: No docstring begins with these.
QUESTIONS = {'What', 'Which', 'Whether', 'Where', 'Who', 'How', 'Of', 'As', 'Why', 'When'}
#: Docstrings of functions begin with one of these.
_VERBS = """
Accept Add Adopt Allow Append Apply Ask Assert Assign Attach Average Begin Bind Bring Build Cache Call Cast Change Check
Choose Clamp Clear Clip Close Collect Combine Compare Compile Compose Compute Connect Convert Copy Correct Count Create
Crop Cut Decide Decode Decompress Deliver Describe Detach Detect Diagnose Divide Download Draw Drop Empty Enable Encode
End Ensure Escape Estimate Evaluate Exclude Exit Expand Explain Export Fail Fetch Fill Filter Find Finish Fit Flatten
Flush Follow Forget Format Gather Get Give Group Guard Handle Hash Hide Hold Identify Ignore Import Include Infer
Initialize Insert Install Iterate Join Judge Keep Leave Limit List Load Locate Lock Log Look Make Map Mark Mask Match
Measure Merge Mix Move Name Normalize Note Number Offer Open Order Pack Pad Parse Pass Patch Pick Plan Plot Predict
Prepare Print Propose Prove Put Raise Rank Read Record Recount Reduce Refer Refuse Register Reinstall Release Remember
Remove Rename Render Renumber Repeat Replace Replay Report Request Require Reset Reshape Resize Resolve Restart Restore
Resume Retry Return Rewrite Round Run Sample Sanitize Save Say Scale Scan Search Seed Select Send Separate Serialize Set
Share Shift Shorten Show Skip Sort Spawn Split Start Stop Store Strip Suggest Sum Summarize Swap Switch Synchronize Take
Tell Test Toggle Train Transform Translate Try Turn Understand Unpack Unwrap Update Use Validate Verify Visit Wait Walk
Warn Watch Weigh Wrap Write Yield
"""
VERBS = frozenset(_VERBS.split())
#: A predicate's docstring.
PREDICATES = ('True if', 'Return True if')
#: Names of functions begin with a verb, or are nouns: not with a participle or a preposition.
NO_FIRST = re.compile(r'(\w+ed|of|at|in|by|with|without|for|behind|beside|taken|written|shown|known|given|meant|said)$')
FIRST = {'need', 'embed', 'feed', 'seed', 'exceed', 'speed'}
#: Words to replace; e.g. "another X than" by "X that differs from", "Known are X" by "X are known".
BANNED = re.compile(
    r'\b(?:[Aa]new|[Bb]eside|[Bb]ehind|[Nn]obody|[Ss]tands|[Ll]ies|(?:[Ii]s|[Aa]re) (?:no|none)|[Ll]earnt|[Mm]isspelt'
    r'|(?:[Aa]n)?other (?:\w+ ){1,2}than|(?:Known|Expected|Valid|Guarded|Given) (?:is|are))\b'
)
#: Words to avoid in names of functions.
BANNED_PARTS = {
    'wording',
    'words',
    'brief',
    'culprits',
    'heeds',
    'knows',
    'absent',
    'otherwise',
    'bad',
    'util',
    'process',
}
#: Types of other packages that docstrings may name although no module imports them by name.
FOREIGN = {'BaseBoxes', 'DataLoader', 'Dataset', 'LabelManager'}
#: An entry of ``Args:`` or ``Attributes:``, with its type.
_TYPED = re.compile(r'^ {4}\w[\w*, ]* \(([^`\n]*?)\):', re.MULTILINE)

#: Calls that open a file by its name. Only ``mmguard/files`` may: it refuses pipes and devices, and limits the work.
_OPENERS = re.compile(
    r'((os|io|gzip|tarfile|tokenize|codecs|Image|h5py)\.)?open|os\.fdopen|.*\.(read|write)_(bytes|text)|Path\(.*\)\.open'
    r'|(np|numpy)\.(load|save|savez|fromfile|memmap|loadtxt|genfromtxt)|(nib|nibabel|torch)\.(load|save)'
    r'|(cv2|mmcv|skimage\.io)\.im(read|write)|COCO|tempfile\.\w+|shutil\.copy\w*|sqlite3\.connect|.*\.tofile'
)
#: Other modules that may open files, and why.
_OPENING = {
    'mmguard/cli.py': 'the null device',
    'mmguard/formats/volumes/nifti.py': 'nibabel opens by name what check_regular has seen: its refusals are compared',
    'mmguard/properties/validation.py': 'a folder of its own and files of the program, in its process',
    'mmguard/properties/runner.py': 'the work_dir of the program, in its process',
    'mmguard/properties/worker.py': '/proc and the null device',
    'mmguard/commands/apply/output.py': 'mkstemp makes a new file',
    'mmguard/commands/demo/train.py': 'the log of the demo, in a folder that it made',
    'mmguard/commands/explain/reader.py': 'a log that the user names may be a pipe',
}

Hit = Tuple[int, str]


def check_file(path: Path, types: Container[str]) -> List[Hit]:
    """Return (line, message) for each line of a file that breaks a rule.

    Args:
        path (Path): A module, or a page.
        types (Container[str]): Names that docstrings may give as types.
    """
    text = path.read_text(encoding='utf-8')
    if path.suffix != '.py':
        return [hit for n, line in enumerate(text.splitlines(), 1) for hit in _check_words(n, line)]
    tree = ast.parse(text)
    hits = [*_check_tree(tree), *_check_types(tree, types), *check_openers(path, tree)]
    with tokenize.open(path) as file:
        for token in tokenize.generate_tokens(file.readline):
            if token.type in (tokenize.COMMENT, tokenize.STRING):
                hits += _check_words(token.start[0], token.string)
    return sorted(set(hits))


def _check_words(number: int, text: str) -> Iterator[Hit]:
    for found in BANNED.finditer(text):
        yield number, f'word: {found.group()}'


def _check_tree(tree: ast.Module) -> Iterator[Hit]:
    for node in ast.walk(tree):
        if not isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            continue
        first = (ast.get_docstring(node) or '').split(None, 1)[:1]
        line = getattr(node, 'lineno', 1)
        if first and first[0].rstrip(',:') in QUESTIONS:
            yield line, f'docstring begins with {first[0]}'
        if isinstance(node, (ast.Module, ast.ClassDef)):
            continue
        named = node.name.strip('_').split('_')
        for part in BANNED_PARTS & set(named):
            yield line, f'name: {node.name} ({part})'
        if _is_noun(node):
            continue
        docstring = ast.get_docstring(node) or ''
        if first and first[0] not in VERBS and not docstring.startswith(PREDICATES):
            yield line, f'docstring of {node.name} begins with {first[0]}'
        if NO_FIRST.match(named[0]) and named[0] not in FIRST:
            yield line, f'name: {node.name} begins with {named[0]}'


def _check_types(tree: ast.Module, types: Container[str]) -> Iterator[Hit]:
    for node in ast.walk(tree):
        if isinstance(node, (ast.ClassDef, ast.FunctionDef)):
            written = ' '.join(_TYPED.findall(ast.get_docstring(node) or ''))
            for name in re.findall(r'\b[A-Z]\w*', written):
                if name not in types:
                    yield node.lineno, f'docstring of {node.name}: no type is called {name}'


def check_openers(path: Path, tree: ast.Module) -> Iterator[Hit]:
    """Yield the calls outside of ``mmguard/files`` that open a file by its name."""
    name = path.relative_to(ROOT).as_posix() if ROOT in path.parents else path.name
    if name in _OPENING or name.startswith('mmguard/files/') or sys.version_info < (3, 9):
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and _OPENERS.fullmatch(ast.unparse(node.func)):
            yield node.lineno, f'{ast.unparse(node.func)}: only mmguard/files opens files'


def find_types(trees: Iterable[ast.Module]) -> Set[str]:
    """Return the names of classes that modules define or import, and of their own type aliases."""
    found = {*FOREIGN, *dir(builtins)}
    for node in (node for tree in trees for node in ast.walk(tree)):
        if isinstance(node, ast.ClassDef):
            found.add(node.name)
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            found.update(alias.asname or alias.name for alias in node.names)
        elif isinstance(node, ast.Assign):
            found.update(target.id for target in node.targets if isinstance(target, ast.Name))
        elif isinstance(node, ast.Attribute):
            found.add(node.attr)  # nn.Module
    return found


def _is_noun(node: ast.AST) -> bool:
    """True if a function is a property, a fixture, a special method or a test, whose names need no verb."""
    name = getattr(node, 'name', '')
    decorators = [ast.unparse(one) if sys.version_info >= (3, 9) else '' for one in getattr(node, 'decorator_list', [])]
    is_property = any(re.search(r'property|setter|fixture|contextmanager|overload', one) for one in decorators)
    return is_property or name.startswith(('__', 'test_'))


def _files() -> List[str]:
    listed = subprocess.run(
        ['git', 'ls-files', 'mmguard/*.py', 'docs/*.md', 'README.md', 'CONTRIBUTING.md', 'SECURITY.md'],
        cwd=ROOT, stdout=subprocess.PIPE, check=True, text=True,
    ).stdout.split()  # fmt: skip
    return [name for name in listed if (ROOT / name).exists()]


def main() -> int:
    """Run the check; the exit code is 1 if it fails."""
    names = _files()
    types = find_types(ast.parse((ROOT / name).read_text(encoding='utf-8')) for name in names if name.endswith('.py'))
    hits = [f'{name}:{line}: {what}' for name in names for line, what in check_file(ROOT / name, types)]
    if hits:
        print('\n'.join(hits))
    return 1 if hits else 0


if __name__ == '__main__':
    sys.exit(main())
