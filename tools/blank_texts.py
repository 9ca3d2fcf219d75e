"""Replace every text of some rules by the rule's code, in a copy of the tree, and list the tests that then fail.

    python tools/blank_texts.py --seed 3 tests/findings
    python tools/blank_texts.py --codes MG102,MG214 --select framework

Such a test asserts a sentence. Snapshots and generated pages are rewritten first; other arguments are pytest's.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Dict, List, Sequence, Set

ROOT = Path(__file__).parents[1]
#: File of the copy -> code to append.
PATCHES = {
    'mmguard/findings/rules/__init__.py': """
for _rule in RULES:
    for _name in dir(_rule) if _rule.code in {codes} else ():
        if not _name.startswith('__') and isinstance(getattr(_rule, _name), str) and ' ' in getattr(_rule, _name):
            setattr(_rule, _name, _rule.code)
""",
    'mmguard/findings/engine.py': """
import dataclasses


@dataclasses.dataclass(frozen=True)
class Blank(Finding):
    def __post_init__(self):
        for name in ('title', 'evidence', 'advice'):
            object.__setattr__(self, name, self.code)


def _blank(edit, code):
    return replace(edit, title=code, question=edit.question and code, notes=tuple(code for _ in edit.notes))


def _blank_all(found):
    if found.code not in {codes}:
        return found
    values = dict(vars(found))
    for name in ('edits', 'candidates'):
        values[name] = tuple(_blank(edit, found.code) for edit in values[name])
    return Blank(**values)


_diagnose = diagnose
diagnose = lambda *args, **more: [_blank_all(found) for found in _diagnose(*args, **more)]
""",
}
#: Generated pages -> their module.
PAGES = {'docs/findings.md': 'mmguard.findings.catalogue', 'docs/errors.md': 'mmguard.findings.signatures'}


def copy_tree(root: Path) -> None:
    """Copy the tracked files, with uncommitted changes."""
    for name in subprocess.check_output(['git', 'ls-files', '-z'], cwd=ROOT, text=True).rstrip('\0').split('\0'):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        if (ROOT / name).is_file():
            shutil.copy(ROOT / name, root / name)


def blank_rules(root: Path, codes: Sequence[str]) -> None:
    """Patch the copy, and rewrite its generated pages."""
    for name, code in PATCHES.items():
        with (root / name).open('a', encoding='utf-8') as file:
            file.write(code.format(codes=set(codes)))
    for name, module in PAGES.items():
        command = [sys.executable, '-m', module]
        (root / name).write_bytes(subprocess.check_output(command, cwd=root, env=_env(root)))


def find_failures(root: Path, words: Sequence[str]) -> Set[str]:
    """Run pytest in the copy; return the ids of the tests that fail."""
    cache = root / '.pytest_cache/v/cache/lastfailed'
    has_snapshots = any('--update-snapshots' in file.read_text('utf-8') for file in root.glob('**/conftest.py'))
    command = [sys.executable, '-m', 'pytest', '-q', '-n', '2', '--tb=no', *words]
    subprocess.run([*command, *['--update-snapshots'] * has_snapshots], cwd=root, env=_env(root))
    return set(json.loads(cache.read_text(encoding='utf-8'))) if cache.exists() else set()


def _env(root: Path) -> Dict[str, str]:
    return {**os.environ, 'PYTHONPATH': str(root), 'OMP_NUM_THREADS': '1'}


def main(words: List[str]) -> int:
    from mmguard.findings.rules import RULES

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--rules', type=int, default=10, help='how many are drawn (default: 10)')
    parser.add_argument('--seed', type=int, default=0)
    parser.add_argument('--codes', help='these rules instead, separated by commas')
    args, more = parser.parse_known_args(words)
    drawn = random.Random(args.seed).sample([rule.code for rule in RULES], args.rules)
    codes = args.codes.split(',') if args.codes else sorted(drawn)
    print('rules:', ', '.join(codes), flush=True)
    with TemporaryDirectory() as folder:
        root = Path(folder)
        copy_tree(root)
        blank_rules(root, codes)
        failed = find_failures(root, more)
        if failed:  # again without the patches: a test that still fails does not assert a sentence
            for name in (*PATCHES, *PAGES):
                shutil.copy(ROOT / name, root / name)
            failed -= find_failures(root, [*more, '--lf'])
    print('\n'.join([f'{len(failed)} tests fail only without the sentences', *sorted(failed)]))
    return 1 if failed else 0


if __name__ == '__main__':
    sys.path.insert(0, str(ROOT))
    sys.exit(main(sys.argv[1:]))
