"""The snapshot files hold no section that no test compares."""

from __future__ import annotations

from pathlib import Path

from snapshot_files import FOLDER, read_sections, write_sections

ROOT = FOLDER.parents[1]


def test_every_section_is_named_in_a_test_or_a_rule(pytestconfig):
    """A name is written out in a test (or is the code of a rule); ``--update-snapshots`` drops the others."""
    files = [path for part in ('tests', 'mmguard') for path in Path(ROOT, part).rglob('*.py')]
    code = '\n'.join(path.read_text(encoding='utf-8') for path in files)
    for path in sorted(FOLDER.glob('*.txt')):
        sections = read_sections(path)
        stale = [name for name in sections if f"'{name}'" not in code]
        if pytestconfig.getoption('--update-snapshots'):
            write_sections(path, {name: text for name, text in sections.items() if name not in stale})
        else:
            assert stale == [], path.name
