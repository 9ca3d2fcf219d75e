"""Which stack an installation is, that neither is judged by the other's rules, and which versions were tested."""

from __future__ import annotations

from typing import Any, Dict, List

import pytest

from mmguard.commands.env import describe_environment, gather, read_matrix
from mmguard.facts.environment import EnvironmentFacts
from mmguard.findings import Finding, diagnose
from mmguard.findings.edits import Edit
from mmguard.findings.finding import ERROR, WARNING
from mmguard.findings.messages import format_finding

OPENMMLAB = {'mmengine': '0.10.7', 'mmcv': '2.1.0', 'mmsegmentation': '1.2.2', 'mmdet': '3.3.0'}
ONEDL = {
    'onedl-mmengine': '0.10.12',
    'onedl-mmcv': '2.3.6',
    'onedl-mmsegmentation': '1.4.2',
    'onedl-mmdetection': '3.5.1',
}


def environment(versions: Dict[str, str], **more: Any) -> EnvironmentFacts:
    return EnvironmentFacts(python='3.11.7', versions={'torch': '2.5.0', 'numpy': '2.2.6', **versions}, **more)


def found_in(versions: Dict[str, str], **more: Any) -> List[Finding]:
    return diagnose(environment=environment(versions, **more))


def stack_of(versions: Dict[str, str]) -> str:
    return describe_environment(environment(versions))['stack']


def written(edit: Edit) -> List[str]:
    """Return the packages that are installed with an edit."""
    return [name for name, version in edit.environment.items() if version is not None]


@pytest.mark.parametrize(('stack', 'versions'), [('OpenMMLab', OPENMMLAB), ('onedl', ONEDL)])
def test_one_stack_is_named_and_in_order(stack: str, versions: Dict[str, str]) -> None:
    assert stack_of(versions) == f'{stack}: {", ".join(versions)}'
    assert found_in(versions, missing=['cv2'], ops=True) == []


def test_neither_is_no_fault() -> None:
    assert found_in({}, missing=['mmengine', 'mmcv', 'mmseg', 'mmdet', 'cv2']) == []
    assert 'PyTorch' in stack_of({})
    assert stack_of({'nnunetv2': '2.8.1'}).startswith('nnU-Net')


def test_both_distributions_of_one_name_are_an_error_with_both_ways_out(snapshot: Any) -> None:
    mixed = {**ONEDL, 'mmengine': '0.10.7'}
    assert stack_of(mixed) == f'mixed; OpenMMLab: mmengine; onedl: {", ".join(ONEDL)}'
    (finding,) = found_in(mixed, missing=['cv2', 'mmdet'])
    assert (finding.code, finding.severity) == ('MG502', ERROR)
    # Then either stack, of the modules that were there, and no others.
    assert [written(edit) for edit in finding.edits] == [['mmengine', 'mmcv', 'mmsegmentation'], list(ONEDL)[:3]]
    assert {name for name, version in finding.edits[0].environment.items() if version is None} == {*ONEDL}
    snapshot('env', 'parts of both stacks', format_finding(finding, 100))


def test_parts_of_both_that_do_not_overlap_are_a_warning() -> None:
    apart = {'onedl-mmengine': '0.10.12', 'onedl-mmcv': '2.3.6', 'mmdet': '3.3.0'}
    (finding,) = found_in(apart, missing=['cv2', 'mmseg'])
    assert (finding.code, finding.severity, len(finding.edits)) == ('MG502', WARNING, 2)


@pytest.mark.parametrize(('versions', 'package'), [(OPENMMLAB, 'mmcv'), (ONEDL, 'onedl-mmcv')])
def test_advice_names_the_package_of_the_stack_that_is_there(versions: Dict[str, str], package: str) -> None:
    (finding,) = found_in(versions, missing=['cv2'], ops=False)
    assert [written(edit) for edit in finding.edits] == [[package]]


def test_the_stack_that_is_here_is_named_alike_everywhere() -> None:
    from this_stack import IS_ONEDL

    from mmguard.compat.stack import is_onedl

    found = describe_environment(gather(try_imports=False))['stack']
    assert found.startswith('onedl:') == IS_ONEDL == is_onedl('mmengine')


@pytest.mark.parametrize('name', ['torch', 'numpy'])
def test_a_version_is_compared_with_those_that_were_tested(name: str) -> None:
    tested = [row[name] for row in read_matrix()]
    for version, was in ((tested[0], 'was tested'), (f'{tested[-1]}+cu126', 'was tested'), ('99.0', 'not tested')):
        line = describe_environment(environment({name: version}))[f'mmguard with {name}']
        assert was in line
        assert line.endswith(f'{tested[0]} to {tested[-1]})')
