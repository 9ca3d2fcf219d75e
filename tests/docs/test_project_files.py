"""What carries the project on: the changelog, the issue forms, CI, the hooks before a commit."""

from __future__ import annotations

import re

import pytest
from doc_pages import ROOT, text_of

yaml = pytest.importorskip('yaml')
FORMS = sorted(path for path in (ROOT / '.github/ISSUE_TEMPLATE').glob('*.yml') if path.name != 'config.yml')


def test_the_changelog_is_kept() -> None:
    """As https://keepachangelog.com has it: versions, and in them what kind of change it is."""
    text = text_of('CHANGELOG.md')
    assert re.findall(r'^## (.*)$', text, re.MULTILINE)[0] == '[Unreleased]'
    kinds = set(re.findall(r'^### (.*)$', text, re.MULTILINE))
    assert kinds <= {'Added', 'Changed', 'Deprecated', 'Removed', 'Fixed', 'Security'}


@pytest.mark.parametrize('path', FORMS, ids=lambda path: path.stem)
def test_an_issue_form_is_whole(path) -> None:
    form = yaml.safe_load(path.read_text(encoding='utf-8'))
    assert form['name']
    assert form['description']
    ids = [field['id'] for field in form['body']]
    assert len(ids) == len(set(ids))
    assert all(field['attributes']['label'] for field in form['body'])
    if form['labels'] != ['idea']:
        labels = ' '.join(field['attributes']['label'] for field in form['body'])
        assert 'mmguard env --json -' in labels
        assert 'mmguard explain' in labels


def test_ci_runs_every_stack_as_ci_run_does() -> None:
    workflow = yaml.safe_load((ROOT / '.github/workflows/ci.yml').read_text(encoding='utf-8'))
    (stacks,) = re.findall(r'^STACKS := (.*)$', (ROOT / 'Makefile').read_text(encoding='utf-8'), re.MULTILINE)
    assert ['openmmlab', *workflow['jobs']['stack']['strategy']['matrix']['stack']] == stacks.split()
    commands = [step['run'] for job in workflow['jobs'].values() for step in job['steps'] if 'run' in step]
    here = (ROOT / '.ci/run').read_text(encoding='utf-8').splitlines()
    assert [line for line in ('make lint', 'make test') if line not in commands or line not in here] == []
    assert any('SELECT=stack' in command for command in commands)


def test_the_hooks_before_a_commit_are_those_of_lint() -> None:
    config = yaml.safe_load((ROOT / '.pre-commit-config.yaml').read_text(encoding='utf-8'))
    entries = [hook['entry'] for repository in config['repos'] for hook in repository['hooks']]
    lint = (ROOT / 'Makefile').read_text(encoding='utf-8').partition('lint: setup')[2].partition('format:')[0]
    assert all(entry.split()[0].rpartition('/')[2] in lint for entry in entries)
    assert len(entries) == len(re.findall(r'^\t', lint, re.MULTILINE))
