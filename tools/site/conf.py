"""Sphinx configuration with MyST and furo: pages are the repository's Markdown, autoapi reads the docstrings."""

import os
import sys
from pathlib import Path
from typing import Any, Dict, Optional, Tuple

import tomllib
from sphinx.pycode import ModuleAnalyzer

ROOT = next(folder for folder in Path(__file__).resolve().parents if (folder / 'pyproject.toml').exists())
sys.path.insert(0, str(ROOT))

from mmguard.version import __version__ as release  # noqa: E402
from tools.site.sources import MODULES  # noqa: E402

URLS = tomllib.loads((ROOT / 'pyproject.toml').read_text(encoding='utf-8'))['project'].get('urls', {})

project = 'mmguard'
copyright = 'the authors of mmguard'
extensions = ['myst_parser', 'sphinx.ext.napoleon', 'sphinx.ext.viewcode', 'autoapi.extension', 'sphinx_copybutton']
templates_path = ['templates']
exclude_patterns = ['templates']
suppress_warnings = ['autoapi.python_import_resolution']  # of names in modules that are not shown
highlight_language = 'none'  # a block without a language is what a shell prints
myst_heading_anchors = 4

html_theme = 'furo'
html_title = f'mmguard {release}'
html_show_sphinx = False
html_static_path = ['static']
html_css_files = ['site.css']
html_sidebars = {
    '**': [
        'sidebar/brand.html',
        'sidebar/language.html',
        'sidebar/search.html',
        'sidebar/scroll-start.html',
        'sidebar/navigation.html',
        'sidebar/scroll-end.html',
    ]
}
# Other versions of the site, each in a folder of that name next to this site: make docs VERSIONS='0.2.0 0.1.0'.
html_context = {'repository': URLS.get('Repository', ''), 'versions': os.environ.get('VERSIONS', '').split()}
if html_context['repository']:  # links to each page's source, and to edit it
    html_theme_options = {
        'source_repository': html_context['repository'],
        'source_branch': 'main',
        'source_directory': '',
    }

copybutton_prompt_text = '$ '
copybutton_exclude = '.linenos, .gp, .go'

napoleon_numpy_docstring = False
napoleon_use_rtype = False
napoleon_use_ivar = True  # or a NamedTuple's fields are described twice

autoapi_dirs = [str(ROOT / 'mmguard')]
# Reading modules that the public ones do not import takes a minute. Of the commands only guard_config is read.
UNUSED = ('config', 'facts', 'findings', 'formats', 'properties', 'scanning', 'commands/[!a]*')
autoapi_ignore = [f'*/mmguard/{name}/*' for name in UNUSED] + ['*/mmguard/commands/apply/[!g]*.py']
autoapi_root = 'api'
autoapi_add_toctree_entry = False
autoapi_keep_files = False
autoapi_member_order = 'groupwise'
autoapi_python_class_content = 'class'
autoapi_options = ['members', 'inherited-members', 'imported-members', 'show-inheritance']
autoapi_template_dir = 'templates/autoapi'


def skip_member(app: Any, what: str, name: str, obj: Any, skip: bool, options: Any) -> bool:
    """Skip modules that are not public, ``extra_repr``, and everything that autoapi skips by default."""
    if what in ('module', 'package'):
        return name not in MODULES
    return skip or name.endswith('.extra_repr')


def find_defining_module(app: Any, module: str, name: str) -> Optional[str]:
    """Return the defining module if autoapi is wrong: a function named like its module, or an imported class."""
    if (ROOT / module.replace('.', '/') / f'{name}.py').exists():
        return f'{module}.{name}'
    owner = name.partition('.')[0]
    found = app.env.autoapi_all_objects.get(f'{module}.{owner}')
    path = found.obj.get('original_path', '') if found else ''
    return module if path and not path.endswith(f'.{owner}') else None


def read_source(app: Any, module: str) -> Optional[Tuple[str, Dict[str, Any]]]:
    """Return text and tags of a module without importing it; autoapi has only the modules that are shown."""
    path = (ROOT / module.replace('.', '/')).with_suffix('.py')
    if not path.exists():
        return None
    analyzer = ModuleAnalyzer.for_file(path, module)
    analyzer.find_tags()
    return analyzer.code, analyzer.tags


def set_links(app: Any, page: str, template: str, context: Dict[str, Any], doctree: Any) -> None:
    """Set the language of a page, and the page in the other language; a generated page gets no edit link."""
    if not (ROOT / f'{page}.md').exists():
        context['page_source_suffix'] = ''
    chinese = page.startswith('docs/zh/') or page == 'README_zh-CN'
    context['language'] = 'zh-CN' if chinese else 'en'
    if chinese:
        other = page.replace('docs/zh/', 'docs/') if page.startswith('docs/') else 'index'
    else:
        other = page.replace('docs/', 'docs/zh/')
        other = other if other in app.env.found_docs and other != page else 'README_zh-CN'
    context['other_language'] = other


def adapt_html(app: Any, page: str, template: str, context: Dict[str, Any], doctree: Any) -> None:
    """Give captions a level, make wide blocks scrollable by keyboard (axe-core), list the page's language first."""
    for key, old, new in (
        ('furo_navigation_tree', 'role="heading"', 'role="heading" aria-level="2"'),
        ('body', '<pre>', '<pre tabindex="0">'),
        ('body', '<div class="table-wrapper ', '<div tabindex="0" class="table-wrapper '),
    ):
        context[key] = context.get(key, '').replace(old, new)
    if context['language'] == 'zh-CN':  # its pages come first
        start, *parts = context['furo_navigation_tree'].split('<p class="caption"')
        context['furo_navigation_tree'] = '<p class="caption"'.join([start, *parts[-1:], *parts[:-1]])


def setup(app: Any) -> None:
    app.connect('autoapi-skip-member', skip_member)
    app.connect('viewcode-follow-imported', find_defining_module, 100)  # before autoapi
    app.connect('viewcode-find-source', read_source, 100)
    app.connect('html-page-context', set_links)
    app.connect('html-page-context', adapt_html, 900)  # after furo
