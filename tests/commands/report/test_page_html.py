"""Nothing that is written into the page can break out of its place."""

from __future__ import annotations

import base64
import hashlib
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any, List, Tuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from mmguard.commands.page import html
from mmguard.commands.page.html import build_page
from mmguard.findings import Finding, LabelFacts, diagnose
from mmguard.findings.edits import Edit
from mmguard.scanning.run import SetResult
from mmguard.text import visible

HOSTILE = (
    '<script>alert(1)</script>.png',
    '"><img src=x onerror=alert(1)>',
    "' onmouseover='alert(1)",
    '</style></title><svg onload=alert(1)>',
    'javascript:alert(1)',
    '&lt;b&gt;{values}%s',
    'caf\udce9.png',
    'abc\u202egnp.exe',
    'line\nbreak\x00\x1b[31m',
)

#: Of a finding that calls the labels fine.
FINE = 'class="card finding fine"'
TEMPLATES = sorted(Path(html.__file__).with_name('templates').glob('*.html'))


class Tags(HTMLParser):
    """The tags and attributes of a page, as a browser sees them, and its text."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: List[Tuple[str, dict]] = []
        self.text = ''

    def handle_starttag(self, tag: str, attrs: list) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data


def parsed(html: str) -> Tags:
    tags = Tags()
    tags.feed(html)
    tags.close()
    return tags


def section(name: str, **kwargs: Any) -> SetResult:
    """A section with a name in every place that may hold one."""
    facts = LabelFacts(
        values={9: 3}, num_classes=2, ignore_index=255, class_names=[name, name], histogram={0: 5, 1: 3, 9: 3, 255: 1},
        files=2, offending_files=1, total=12,
    )  # fmt: skip
    edits = (Edit(f'Write `{name}`', question=name),)
    finding = Finding('MG107', name, name, f'`{name}` and `', 0.5, files=(name,), places=(name,), edits=edits)
    worst = [
        dict(file=name, path=kwargs.pop('label', name), image=name, stored={9: 3}, invalid=3),
        dict(file=name, path=None, image=None, stored={}, invalid=1),
    ]
    return SetResult(facts, worst, name=name, findings=[finding], notes=[name])


def tags_of(name: str, **kwargs: Any) -> Tags:
    return parsed(build_page(name, [section(name, **kwargs), section(name, **kwargs)]))


@pytest.mark.parametrize('name', HOSTILE)
def test_hostile_names_add_no_tag_and_no_attribute(name: str, tmp_path: Path) -> None:
    image = tmp_path / 'image.png'
    Image.fromarray(np.zeros((8, 8), np.uint8)).save(image)
    plain, hostile = tags_of('plain.png', label=str(image)), tags_of(name, label=str(image))
    assert [(tag, set(attrs)) for tag, attrs in hostile.tags] == [(tag, set(attrs)) for tag, attrs in plain.tags]
    assert visible(name) in hostile.text


@given(st.text(alphabet=st.characters(), max_size=30))
def test_any_text_is_text_again_in_a_browser(name: str) -> None:
    tags = parsed(build_page(name, [SetResult(LabelFacts(num_classes=2), name='train')]))
    assert tags.text.count(visible(name)) >= 2  # the title and the heading


@pytest.mark.parametrize('name', HOSTILE)
def test_every_page_is_utf_8_and_loads_nothing(name: str) -> None:
    content = build_page(name, [section(name)]).encode('utf-8').decode('utf-8')
    tags = parsed(content)
    assert [attrs for tag, attrs in tags.tags if tag == 'script'] == [{}]
    assert not {'iframe', 'link', 'object', 'form'} & {tag for tag, _ in tags.tags}
    for _, attrs in tags.tags:
        assert not any(key.startswith('on') for key in attrs)
        for key in ('href', 'src'):
            assert attrs.get(key, '#').startswith(('#', 'data:image/'))
    assert '://' not in ''.join(str(value) for _, attrs in tags.tags for value in attrs.values() if value)


@pytest.mark.parametrize('template', TEMPLATES, ids=lambda path: path.name)
def test_templates_escape_everything_and_link_to_nothing_outside(template: Path) -> None:
    content = template.read_text(encoding='utf-8')
    assert not re.search(r'\|\s*safe|autoescape|=\{[{%]', content)  # an attribute without quotes is left by a space
    links = re.findall(r'\b(?:href|src|action)="([^"]*)', content)
    assert all(link.startswith(('#', '{{ panel.picture.data }}')) for link in links)


def test_the_one_script_is_the_same_everywhere_and_its_digest_allows_nothing_else() -> None:
    made = build_page('t', [section('plain.png')])
    (script,) = re.findall(r'<script>(.*?)</script>', made, re.DOTALL)
    assert script == (html._TEMPLATES / 'page.js').read_text(encoding='utf-8')
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    (policy,) = [attrs['content'] for tag, attrs in parsed(made).tags if 'http-equiv' in attrs]
    assert policy.endswith(f"; script-src 'sha256-{digest}'")
    assert "'unsafe-inline'" not in policy.partition('script-src')[2]


def test_each_edit_has_its_own_lines_to_write() -> None:
    edits = (Edit('One.', question='Is it so?', lines=('a=1',)), Edit('Both.', lines=('b=2', 'c=3')))
    finding = Finding('MG107', 'title', 'seen', 'advice', 0.5, edits=edits)
    made = build_page('t', [SetResult(LabelFacts(num_classes=2), name='train', findings=[finding])])
    parts = made.partition('<dl>')[2].split('<dt>')[2:]
    assert [re.findall('class="write">(.*?)<', part) for part in parts] == [['a=1'], ['b=2', 'c=3']]


def test_fine_labels_are_called_fine_and_others_never() -> None:
    clean = LabelFacts(num_classes=2, ignore_index=255, histogram={0: 5, 1: 5}, total=10, files=1)
    assert FINE in build_page('t', [SetResult(clean, name='train', findings=diagnose(clean))])
    invalid = LabelFacts(values={9: 1}, num_classes=2, ignore_index=255, total=10, files=1, offending_files=1)
    for findings in ([], diagnose(invalid)):
        assert FINE not in build_page('t', [SetResult(invalid, name='train', findings=findings)])


def test_the_histogram_tells_valid_ignored_and_invalid_apart() -> None:
    facts = LabelFacts(values={7: 3}, num_classes=3, ignore_index=255, histogram={0: 90, 1: 1, 7: 3, 255: 6}, total=100)
    tags = parsed(build_page('t', [SetResult(facts, name='train')]))
    rows = [attrs['class'] for tag, attrs in tags.tags if tag == 'tr' and 'class' in attrs]
    assert rows == ['valid', 'valid', 'valid', 'invalid', 'ignored']  # 0, 1, 2 (never seen), 7, 255


def test_many_values_stay_few_rows() -> None:
    counts = {value: value + 1 for value in range(60_000)}
    facts = LabelFacts(values=counts, num_classes=2, ignore_index=255, histogram=counts, total=1)
    made = build_page('t', [SetResult(facts, name='train')])
    assert len(made) < 150_000
    assert '59,952' in made
