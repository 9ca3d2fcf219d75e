"""Write the sources for Sphinx: a copy of the pages with their paths in the repository, and the generated pages.

Usage: ``python -m tools.site.sources FOLDER``. Neither torch nor a framework is imported.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import sys
from pathlib import Path
from typing import Dict, Iterator, Tuple

from tools.site.examples import draw_examples

ROOT = Path(__file__).resolve().parents[2]
SITE = 'tools/site'

#: Heading -> its pages. Sphinx warns of a page without a heading.
PARTS: Dict[str, Tuple[str, ...]] = {
    'Get started': (
        'docs/get_started',
        'configs/README',
        'examples/README',
        'docs/nnunet',
        'docs/datasets',
        'docs/recipes',
        'docs/integrations',
    ),
    'Guides': (
        'docs/log',
        'docs/hooks',
        'docs/commands',
        'docs/testing',
        'docs/ranks',
        'docs/flight_recorder',
        'docs/storage',
        'docs/scale',
        'docs/stacks',
    ),
    'Reference': (
        'cli',
        'python_api',
        'docs/formats',
        'Codes <docs/findings>',
        'Error messages <docs/errors>',
        'docs/mmdet_losses',
    ),
    'Background': ('docs/labels', 'docs/averages', 'docs/architecture', 'docs/benchmarks'),
    'Project': ('CONTRIBUTING', 'CHANGELOG', 'SECURITY'),
    '中文': ('README_zh-CN', 'docs/zh/get_started', 'docs/zh/labels', 'docs/zh/log'),
}
#: Modules whose names are the public interface.
MODULES = (
    'mmguard',
    'mmguard.nn',
    'mmguard.functional',
    'mmguard.detection',
    'mmguard.distributed',
    'mmguard.transforms',
    'mmguard.hooks',
    'mmguard.losses',
    'mmguard.loops',
    'mmguard.testing',
)
#: Folders whose files are shown on the page of their README.
SHOWN = ('configs', 'examples')
CODE = r'MG\d{3}'


def write(folder: Path) -> None:
    """Write all sources of the site into a folder, which is emptied first."""
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(ROOT / 'docs/images', folder / 'docs/images')
    for name in ('conf.py', 'static', 'templates'):
        path = ROOT / SITE / name
        (shutil.copytree if path.is_dir() else shutil.copy)(path, folder / name)
    texts = {'cli': describe_commands(), 'python_api': list_modules()}
    for page in read_pages():
        name = 'index' if page == 'README' else page
        texts[name] = link_pages((ROOT / f'{page}.md').read_text(encoding='utf-8'), page)
    texts['index'] = texts['index'].partition('## Documentation')[0] + list_parts()
    for shown in SHOWN:
        texts[f'{shown}/README'] += show_files(ROOT / shown)
    for page in ('docs/findings', 'docs/errors'):
        texts.update(split_codes(page, texts))
    for code, text in draw_examples(folder / 'docs/images/codes', '../images/codes'):
        texts[f'docs/codes/{code}'] += text
    for name, text in texts.items():
        path = folder / f'{name}.md'
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding='utf-8')


def read_pages() -> Iterator[str]:
    """Yield the names of all pages of the repository that the site shows, without their suffix."""
    for pattern in ('*.md', 'docs/**/*.md', *(f'{shown}/*.md' for shown in SHOWN)):
        for path in sorted(ROOT.glob(pattern)):
            yield path.relative_to(ROOT).with_suffix('').as_posix()


def link_pages(text: str, page: str) -> str:
    """Return the text of a page, with links to codes, README and shown files replaced by links within the site."""

    def replace(found: re.Match) -> str:
        target, _, anchor = found[1].partition('#')
        path = os.path.normpath(os.path.join(os.path.dirname(page), target or f'{os.path.basename(page)}.md'))
        top, _, file = path.partition('/')
        if '://' in target:
            return found[0]
        if path in ('docs/findings.md', 'docs/errors.md') and re.fullmatch(CODE, anchor.upper()):
            return f'](/docs/codes/{anchor.upper()}.md)'
        if path == 'README.md':
            return '](/index.md)'
        if top in SHOWN and not file.endswith('.md'):
            return f'](/{top}/README.md#{_anchor(file)})' if file else f'](/{top}/README.md)'
        return found[0]

    return re.sub(r'\]\(([^)\s]+)\)', replace, text)


def _anchor(file: str) -> str:
    return re.sub(r'[^\w-]', '', os.path.basename(file))


def show_files(folder: Path) -> str:
    """Return a section with the text of each Python file in a folder; its subfolders are headings."""
    lines, heading = [], ''
    for path in sorted(folder.rglob('*.py')):
        inner = path.parent.relative_to(folder).as_posix()
        if inner not in ('.', heading):
            heading = inner
            lines += ['', f'## {heading}']
        level = '###' if heading else '##'
        lines += ['', f'{level} {path.name}', '', f'````python\n{path.read_text(encoding="utf-8")}````']
    return '\n'.join(lines) + '\n'


def split_codes(page: str, texts: Dict[str, str]) -> Dict[str, str]:
    """Return a page of codes without the codes' sections, and one page per code."""
    text = re.sub(r'^## (?!MG).*\n', '', texts[page], flags=re.MULTILINE)
    start, *sections = re.split(rf'^##+ ({CODE})$', text, flags=re.MULTILINE)
    pages = {}
    for code, section in zip(sections[::2], sections[1::2]):
        pages[f'docs/codes/{code}'] = re.sub(r'\s*\*\*(.*)\*\*', rf'# {code}: \1', section, count=1)
    tree = '\n'.join(f'/{name}' for name in sorted(pages))
    return {page: f'{start}\n```{{toctree}}\n:hidden:\n\n{tree}\n```\n', **pages}


def list_parts() -> str:
    """Return the tables of contents, one per heading of ``PARTS``."""
    trees = (f'```{{toctree}}\n:caption: {part}\n:hidden:\n\n' + '\n'.join(PARTS[part]) + '\n```' for part in PARTS)
    return '\n\n'.join(trees) + '\n'


def list_modules() -> str:
    """Return the page of the public modules."""
    tree = '\n'.join(f'api/{module.replace(".", "/")}/index' for module in MODULES)
    start = (
        'Names that are not listed here are not public. A config names transforms, hooks and losses by their type only.'
    )
    return f'# Python API\n\n{start}\n\n```{{toctree}}\n:maxdepth: 1\n\n{tree}\n```\n'


def describe_commands() -> str:
    """Return the page of all commands, with the ``--help`` of each."""
    from mmguard.cli import _build_parser

    os.environ['COLUMNS'] = '100'
    commands = next(a for a in _build_parser()._actions if isinstance(a, argparse._SubParsersAction)).choices
    helps = [f'## mmguard {name}\n\n```text\n{parser.format_help().strip()}\n```' for name, parser in commands.items()]
    return '\n\n'.join(['# Command line', 'The output of `mmguard COMMAND --help`.', *helps]) + '\n'


if __name__ == '__main__':
    write(Path(sys.argv[1]))
