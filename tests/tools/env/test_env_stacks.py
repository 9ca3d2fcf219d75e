"""Which stack an installation is, that neither is judged by the other's rules, and which versions were tried."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, Dict, List

import pytest

from mmguard.compat.stack import find_module_folder
from mmguard.findings import Finding, diagnose
from mmguard.findings.edits import Edit
from mmguard.findings.environment import EnvironmentFacts, build_version_key
from mmguard.findings.finding import ERROR, WARNING
from mmguard.findings.messages import format_finding
from mmguard.tools.env.facts import (
    OK,
    EnvironmentLine,
    build_table,
    gather,
    read_accepted_mmcv,
    read_declared_mmcv,
    read_matrix,
)

OPENMMLAB = {'mmengine': '0.10.7', 'mmcv': '2.1.0', 'mmsegmentation': '1.2.2', 'mmdet': '3.3.0'}
ONEDL = {
    'onedl-mmengine': '0.10.12',
    'onedl-mmcv': '2.3.6',
    'onedl-mmsegmentation': '1.4.2',
    'onedl-mmdetection': '3.5.1',
}
ACCEPTS = {
    'OpenMMLab': {'mmseg': ('2.0.0rc4', '2.2.0'), 'mmdet': ('2.0.0rc4', '2.2.0')},
    'onedl': {'mmdet': ('2.0.0', '')},
}


def environment(versions: Dict[str, str], **more: Any) -> EnvironmentFacts:
    return EnvironmentFacts(python='3.11.7', versions={'torch': '2.5.0', 'numpy': '2.2.6', **versions}, **more)


def lines_of(versions: Dict[str, str], **more: Any) -> Dict[str, EnvironmentLine]:
    here = environment(versions, **more)
    return {line.name: line for line in build_table(here, diagnose(environment=here))}


def finding_at(line: str, versions: Dict[str, str], **more: Any) -> Finding:
    (finding,) = [one for one in diagnose(environment=environment(versions, **more)) if line in one.places]
    return finding


def written(edit: Edit) -> List[str]:
    """Return the packages that are installed with an edit."""
    return [name for name, version in edit.environment if version is not None]


def missing(*there: str) -> List[str]:
    return [module for module in ('mmengine', 'mmcv', 'mmseg', 'mmdet', 'cv2') if module not in there]


@pytest.mark.parametrize(('stack', 'versions'), [('OpenMMLab', OPENMMLAB), ('onedl', ONEDL)])
def test_one_stack_is_named_and_in_order(stack: str, versions: Dict[str, str]) -> None:
    lines = lines_of(versions, missing=['cv2'], ops=True, accepts=ACCEPTS[stack])
    assert lines['stack'].found == f'{stack}: {", ".join(versions)}'
    # A note on a loss of onedl's, which `check` finds where a config has it, is no disorder.
    assert {line.level for line in lines.values()} == {OK}


def test_neither_is_no_fault() -> None:
    lines = lines_of({}, missing=missing())
    assert 'PyTorch' in lines['stack'].found
    assert {line.level for line in lines.values()} == {OK}
    assert lines_of({'nnunetv2': '2.8.1'}, missing=missing())['stack'].found.startswith('nnU-Net')


def test_both_distributions_of_one_name_are_an_error_with_both_ways_out(snapshot: Any) -> None:
    mixed = {**ONEDL, 'mmengine': '0.10.7'}
    lines = lines_of(mixed, missing=['cv2', 'mmdet'])
    assert (lines['stack'].level, lines['mmengine'].level) == (ERROR, ERROR)
    assert lines['stack'].found == f'mixed; OpenMMLab: mmengine; onedl: {", ".join(ONEDL)}'
    finding = finding_at('stack', mixed, missing=['cv2', 'mmdet'])
    assert finding.code == 'MG502'
    # Then either stack, of the modules that were there, and no others.
    assert [written(edit) for edit in finding.edits] == [['mmengine', 'mmcv', 'mmsegmentation'], list(ONEDL)[:3]]
    assert {name for name, version in finding.edits[0].environment if version is None} == {'mmengine', *ONEDL}
    snapshot('env', 'parts of both stacks', format_finding(finding, 100))


def test_parts_of_both_that_do_not_overlap_are_a_warning() -> None:
    apart = {'onedl-mmengine': '0.10.12', 'onedl-mmcv': '2.3.6', 'mmdet': '3.3.0'}
    line = lines_of(apart, missing=['cv2', 'mmseg'])['stack']
    assert (line.level, line.found) == (WARNING, 'mixed; OpenMMLab: mmdet; onedl: onedl-mmengine, onedl-mmcv')
    assert len(finding_at('stack', apart, missing=['cv2', 'mmseg']).edits) == 2


def test_advice_names_the_packages_of_the_stack_that_is_there() -> None:
    old = finding_at(
        'mmcv for mmdet', {**ONEDL, 'onedl-mmcv': '1.9.0'}, missing=['cv2'], ops=True, accepts=ACCEPTS['onedl']
    )
    there = {name: version for name, version in ONEDL.items() if name != 'onedl-mmengine'}
    found = (
        old,
        finding_at('mmengine', there, missing=['mmengine']),
        finding_at("mmcv's compiled ops", ONEDL, missing=['cv2'], ops=False),
    )
    packages = [[written(edit) for edit in finding.edits] for finding in found]
    assert packages == [[['onedl-mmcv']], [['onedl-mmengine']], [['onedl-mmcv']]]


def test_limits_are_read_where_the_frameworks_that_are_here_say_them() -> None:
    pytest.importorskip('mmdet')
    found = read_accepted_mmcv(find_module_folder('mmdet')) or read_declared_mmcv('mmdet')
    assert found in (ACCEPTS['OpenMMLab']['mmdet'], ACCEPTS['onedl']['mmdet'])


def test_the_stack_that_is_here_is_named_alike_everywhere() -> None:
    from this_stack import IS_ONEDL

    from mmguard.compat.stack import is_onedl
    from mmguard.tools.env.facts import gather

    (line,) = [line for line in build_table(gather(try_imports=False), []) if line.name == 'stack']
    assert line.found.startswith('onedl:') == IS_ONEDL == is_onedl('mmengine')


def found_in(**facts: Any) -> List[Finding]:
    return diagnose(environment=EnvironmentFacts(python='3.11.7', **facts))


def line_of(name: str, **facts: Any) -> EnvironmentLine:
    lines = build_table(EnvironmentFacts(python='3.11.7', **facts), found_in(**facts))
    (line,) = [line for line in lines if line.name == name]
    return line


@pytest.mark.parametrize(
    ('version', 'level', 'between'),
    [
        ('2.1.2', OK, []),
        ('2.1.2+cu118', OK, []),
        ('2.1.0', OK, ['2.0.1', '2.1.2']),
        ('2.5.1+cu124', OK, ['2.4.1', '2.6.0']),
        ('1.12.1', ERROR, []),
    ],
)
def test_a_torch_is_compared_with_those_that_were_tried(
    version: str, level: str, between: List[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A version beside which a test failed counts for nothing."""
    seen = {'1.13.1': 0, '2.0.1': 0, '2.1.2': 0, '2.4.1': 0, '2.5.1': 3, '2.6.0': 0}
    rows = [{'torch': torch, 'numpy': '1.26.4', 'failed': failed} for torch, failed in seen.items()]
    (tmp_path / 'tried.json').write_text(json.dumps(rows))
    monkeypatch.setattr('mmguard.tools.env.facts.TRIED_FILE', tmp_path / 'tried.json')
    line = line_of('mmguard with torch', versions={'torch': version}, tried=gather(try_imports=False).tried)
    assert (line.level, re.findall(r'\d[\w.+]+', line.found)) == (level, [version, *between])
    assert line.codes == (['MG507'] if level == ERROR else [])


@pytest.mark.parametrize('name', ['torch', 'numpy'])
def test_both_ends(name: str) -> None:
    seen = gather(try_imports=False).tried
    ordered = sorted((row[name] for row in read_matrix()), key=build_version_key)
    newer = line_of(f'mmguard with {name}', versions={name: '99.0'}, tried=seen)
    assert newer.level == OK
    assert ordered[-1] in newer.found
    (older,) = found_in(versions={name: '0.1'}, tried=seen)
    (edit,) = older.edits
    ((package, version),) = edit.environment
    assert (older.code, package) == ('MG507', name)
    assert build_version_key(version) >= build_version_key(ordered[0])
