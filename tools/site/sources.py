"""Writes what Sphinx reads: the pages of docs/ and of the root, and those made of the parser and of the modules.

Usage: ``python -m tools.site.sources FOLDER``.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import sys
from pathlib import Path
from typing import Dict, List, Tuple

ROOT = Path(__file__).resolve().parents[2]

#: Heading -> its pages; what is in none of them is not on the site, and the build fails.
PARTS: Dict[str, Tuple[str, ...]] = {
    'Get started': ('get_started', 'hooks', 'nnunet', 'recipes'),
    'Guides': ('log', 'commands', 'testing', 'ranks', 'flight_recorder', 'replay', 'storage', 'scale', 'stacks'),
    'Reference': ('cli', 'api', 'formats', 'findings', 'errors', 'mmdet_losses'),
    'Explanation': ('labels', 'averages', 'architecture', 'benchmarks'),
    'Project': ('CONTRIBUTING', 'CHANGELOG', 'SECURITY'),
}
FROM_ROOT = ('CONTRIBUTING', 'CHANGELOG', 'SECURITY')
#: Modules whose public names are the interface.
MODULES = (
    'mmguard',
    'mmguard.nn',
    'mmguard.functional',
    'mmguard.detection',
    'mmguard.distributed',
    'mmguard.transforms',
    'mmguard.hooks',
    'mmguard.losses',
    'mmguard.log.tally_log',
    'mmguard.testing',
)


def index() -> str:
    """The first page: README without its list of pages, and the tables of contents."""
    text = (ROOT / 'README.md').read_text(encoding='utf-8').partition('## Read on')[0]
    text = '\n'.join(line for line in text.splitlines() if not line.startswith('English | '))
    trees = [
        f'```{{toctree}}\n:caption: {part}\n:hidden:\n\n' + '\n'.join(pages) + '\n```' for part, pages in PARTS.items()
    ]
    return '\n\n'.join([linked(text.replace('](docs/', ']('), ROOT), *trees]) + '\n'


def linked(text: str, folder: Path) -> str:
    """Links to what is no page of the site become the path in the repository."""
    pages = {name for names in PARTS.values() for name in names}

    def replace(found: re.Match) -> str:
        label, target = found[1], found[2]
        if '://' in target or target.startswith(('#', 'images/')):
            return found[0]
        name, _, anchor = target.partition('#')
        stem = Path(name).stem
        if name.endswith('.md') and stem in pages:
            return f'[{label}]({stem}.md{"#" + anchor if anchor else ""})'
        path = Path(os.path.normpath(folder / name))
        path = path if path.exists() else ROOT / name
        assert path.exists(), f'{target} leads nowhere'
        return f'`{path.relative_to(ROOT).as_posix()}`'

    parts = re.split(r'(^```.*?^```$)', text, flags=re.MULTILINE | re.DOTALL)
    return ''.join(
        part if part.startswith('```') else re.sub(r'(?<!!)\[([^\]]*)\]\(([^)\s]+)\)', replace, part) for part in parts
    )


def cli() -> str:
    """Every command, in the words of its parser."""
    from mmguard.cli import _parser

    os.environ['COLUMNS'] = '100'
    commands = next(a for a in _parser()._actions if isinstance(a, argparse._SubParsersAction)).choices
    pages = [f'## mmguard {name}\n\n```text\n{parser.format_help().strip()}\n```' for name, parser in commands.items()]
    return '\n\n'.join(['# Command line', 'What `mmguard COMMAND --help` prints.', *pages]) + '\n'


def api() -> str:
    """The public names, from their docstrings."""
    blocks = {name: f'.. automodule:: {name}\n   :members:' for name in MODULES}
    blocks['mmguard'] += '\n\n.. autofunction:: mmguard.tools.apply.guarded.guard_config'  # needs a framework
    pages = [f'## {name}\n\n```{{eval-rst}}\n{block}\n```' for name, block in blocks.items()]
    start = 'What is not listed here is not public. In a config the classes are named by their type alone.'
    return '\n\n'.join(['# Python', start, *pages]) + '\n'


def write(folder: Path) -> List[str]:
    """Writes all sources; returns the names of the pages."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    shutil.copytree(ROOT / 'docs/images', folder / 'images')
    shutil.copytree(ROOT / 'tools/site/static', folder / 'static')
    shutil.copy(ROOT / 'tools/site/conf.py', folder)
    texts = {'index': index(), 'cli': cli(), 'api': api()}
    for path in [*(ROOT / 'docs').glob('*.md'), *(ROOT / f'{name}.md' for name in FROM_ROOT)]:
        texts[path.stem] = linked(path.read_text(encoding='utf-8').replace('](docs/', ']('), path.parent)
    for name, text in texts.items():
        (folder / f'{name}.md').write_text(text, encoding='utf-8')
    return sorted(texts)


if __name__ == '__main__':
    print(*write(Path(sys.argv[1])))
