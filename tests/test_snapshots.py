"""The snapshot files hold no section that no test compares."""

from __future__ import annotations

import re
from pathlib import Path

from snapshot_files import FOLDER, read_sections, write_sections

ROOT = FOLDER.parents[1]


def is_named(name: str, code: str) -> bool:
    """Return True if a section is written out in the code, or begins with ``file::test`` of a test there."""
    of_test = re.match(r'\w+::(\w+)', name)
    return f'def {of_test[1]}(' in code if of_test else f"'{name}'" in code


def test_every_section_is_named_in_a_test_or_a_rule(pytestconfig):
    """A name is written out in a test (or is the code of a rule); ``--update-snapshots`` drops the others."""
    files = [path for part in ('tests', 'mmguard') for path in Path(ROOT, part).rglob('*.py')]
    code = '\n'.join(path.read_text(encoding='utf-8') for path in files)
    for path in sorted(FOLDER.glob('*.txt')):
        sections = read_sections(path)
        stale = [name for name in sections if not is_named(name, code)]
        if pytestconfig.getoption('--update-snapshots'):
            write_sections(path, {name: text for name, text in sections.items() if name not in stale})
        else:
            assert stale == [], path.name
