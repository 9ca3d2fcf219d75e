"""The packages that a test file needs, and the stacks that run it: those of ``.ci/run`` that have them."""

from __future__ import annotations

import ast
import re
from functools import lru_cache
from pathlib import Path
from typing import Dict, FrozenSet, List, Set, Tuple

TESTS = Path(__file__).parent
ROOT = TESTS.parent

#: What only reads configs, annotations and logs, and says what is wrong with them, and what is text alone: no torch, no
#: model, no training. It runs in the first stack, or where its packages are. A test of anything else, a new one, too,
#: runs in every stack, unless it is marked ``same_everywhere``.
SAME_EVERYWHERE = (
    'commands/apply',
    'commands/check',
    'commands/explain',
    'findings',
    'interrupted',
    'commands/fix',
    'commands/report',
    'formats/test_[!c]*.py',  # test_conformance.py marks its cases
    'formats/test_class_folders.py',
    'formats/coco',
    'formats/maps',
    'formats/voc',
    'nnunet/rules',
    'scanning',
    'commands/scan',
    'formats/folders.py',
    'formats/yolo',
    'commands/demo/test_demo_d*.py',
    'commands/demo/test_demo_parts.py',
    'commands/demo/test_demo_ver*.py',
    'config/test_config_types.py',
    'files',
    'text',
    'log/test_log_reader.py',
    'log/test_messages.py',
    'examples/test_examples_table.py',
    'test_packaging.py',
    'stacks/test_matrix.py',
    'docs/test_pages.py',
    'docs/test_site.py',
)

#: What needs only torch: it runs with the oldest and the newest torch, and need not with frameworks that have the same.
TORCH_ALONE = ('functional', 'nn', 'detection', 'distributed', 'gpu')

#: A distribution -> its module, where the names differ.
MODULES = {'mmdetection': 'mmdet', 'mmsegmentation': 'mmseg', 'opencv-python': 'cv2', 'pillow': 'pil', 'pyyaml': 'yaml'}

#: What every Python has, on Linux.
PYTHON = {'fcntl', 'pip', 'pty', 'resource', 'termios'}


@lru_cache(maxsize=None)
def read_runs() -> Dict[str, str]:
    """Return {stack: SELECT} of the commands in .ci/run; ``make test`` is the first stack."""
    runs = {}
    for line in re.findall(r'^make (test.*)', (ROOT / '.ci' / 'run').read_text(encoding='utf-8'), re.MULTILINE):
        select = re.search(r'SELECT=(\w+)', line)
        for stack in re.findall(r'test-(\w+)', line) or ['openmmlab']:
            runs[stack] = select[1] if select else 'all'
    return runs


@lru_cache(maxsize=None)
def read_stack(stack: str) -> FrozenSet[str]:
    """Return the modules that a stack has, in lower case."""
    pins = (ROOT / 'tools' / 'stacks' / f'{stack}.txt').read_text(encoding='utf-8').lower().split()
    names = [pin.partition('==')[0].replace('onedl-', '') for pin in pins]
    return frozenset(MODULES.get(name, name.replace('-', '_')) for name in names) | PYTHON


@lru_cache(maxsize=None)
def read_imports(path: Path) -> Tuple[Set[str], Set[str]]:
    """Return what a file imports outside of functions, and what it names there to ``pytest.importorskip``."""
    imported, asked = set(), set()
    for node in ast.parse(path.read_text(encoding='utf-8')).body:
        if isinstance(node, ast.Import):
            imported.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            imported.add(str(node.module))
        elif isinstance(node, (ast.Assign, ast.Expr)):
            calls = [call for call in ast.walk(node) if isinstance(call, ast.Call)]
            asked.update(call.args[0].value for call in calls if getattr(call.func, 'attr', '') == 'importorskip')
    return {name.partition('.')[0] for name in imported}, {name.partition('.')[0] for name in asked}


@lru_cache(maxsize=None)
def find_helpers() -> Dict[str, Path]:
    return {path.stem: path for path in TESTS.rglob('*.py')}


def read_needs(path: Path) -> Set[str]:
    """Return the packages that a test file needs to be collected, in lower case.

    Those are the packages of any stack that it imports, itself or in a helper, and what it asks for.
    """
    found: Set[str] = set()
    known = frozenset().union(*map(read_stack, read_runs()))
    files = [path]
    for file in files:
        imported, asked = read_imports(file)
        found.update(name.lower() for name in imported if name.lower() in known)
        found.update(name.lower() for name in asked)
        helpers = [find_helpers()[name] for name in imported if name in find_helpers()]
        files += [helper for helper in helpers if helper not in files]
    return found


def is_left_out(path: Path, select: str) -> bool:
    """Return True if ``--select`` leaves out a file below ``mmguard/`` or ``tests/``, which the first stack runs."""
    patterns = {'all': (), 'stack': SAME_EVERYWHERE, 'framework': (*SAME_EVERYWHERE, *TORCH_ALONE)}[select]
    below = Path(*path.relative_to(ROOT).parts[1:])
    is_listed = any(part.match(pattern) for pattern in patterns for part in (below, *below.parents))
    return is_listed and read_needs(path) <= read_stack(next(iter(read_runs())))


def find_stacks(path: Path, *packages: str, same_everywhere: bool = False) -> List[str]:
    """Return the stacks that run a file, or the tests in it that need more packages or have a marker."""
    needs = read_needs(path).union(package.lower() for package in packages)
    runs = {stack: select for stack, select in read_runs().items() if select == 'all' or not same_everywhere}
    return [stack for stack, select in runs.items() if needs <= read_stack(stack) and not is_left_out(path, select)]


def find_test_files() -> List[Path]:
    """Return the files with tests, however they are named."""
    return [path for path in sorted(TESTS.rglob('*.py')) if re.search(r'^ *def test_', path.read_text('utf-8'), re.M)]
