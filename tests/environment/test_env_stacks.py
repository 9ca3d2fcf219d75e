"""Which stack an installation is, and that neither is judged by the other's rules."""

from __future__ import annotations

from typing import Any, Dict, List

import pytest

from mmguard.environment.facts import EnvironmentFacts
from mmguard.environment.limits import accepted_mmcv, declared_mmcv
from mmguard.environment.verdicts import ERROR, OK, WARNING, Verdict, verdicts
from mmguard.stack import folder_of

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


def judged(versions: Dict[str, str], **more: Any) -> Dict[str, Verdict]:
    found = EnvironmentFacts(python='3.11.7', versions={'torch': '2.5.0', 'numpy': '2.2.6', **versions}, **more)
    return {line.name: line for line in verdicts(found)}


def missing(*there: str) -> List[str]:
    return [module for module in ('mmengine', 'mmcv', 'mmseg', 'mmdet', 'cv2') if module not in there]


@pytest.mark.parametrize(('stack', 'versions'), [('OpenMMLab', OPENMMLAB), ('onedl', ONEDL)])
def test_one_stack_is_named_and_in_order(stack: str, versions: Dict[str, str]) -> None:
    lines = judged(versions, missing=['cv2'], ops=True, accepts=ACCEPTS[stack])
    assert lines['stack'].found == f'{stack}: {", ".join(versions)}'
    assert {line.level for line in lines.values()} == {OK}


def test_neither_is_no_fault() -> None:
    lines = judged({}, missing=missing())
    assert lines['stack'].found == 'plain PyTorch, no mmengine'
    assert {line.level for line in lines.values()} == {OK}
    assert judged({'nnunetv2': '2.8.1'}, missing=missing())['stack'].found == 'nnU-Net, no mmengine'


def test_both_distributions_of_one_name_are_an_error_with_the_way_out() -> None:
    lines = judged({**ONEDL, 'mmengine': '0.10.7'}, missing=['cv2', 'mmdet'])
    line = lines['stack']
    assert line.level == ERROR
    assert line.found == f'mixed; OpenMMLab: mmengine; onedl: {", ".join(ONEDL)}'
    assert 'same folder mmengine:' in line.advice
    assert f'pip uninstall -y mmengine {" ".join(ONEDL)}, then' in line.advice
    # Then either stack, of the modules that were there, and no others.
    assert 'pip install mmengine; mim install "mmcv>=2.0.0"; pip install mmsegmentation ftfy regex (OpenMMLab)' in (
        line.advice
    )
    assert 'pip install onedl-mmengine; pip install onedl-mmcv; pip install onedl-mmsegmentation (onedl)' in line.advice
    assert lines['mmengine'].level == ERROR


def test_parts_of_both_that_do_not_overlap_are_a_warning() -> None:
    line = judged({'onedl-mmengine': '0.10.12', 'onedl-mmcv': '2.3.6', 'mmdet': '3.3.0'}, missing=['cv2', 'mmseg'])[
        'stack'
    ]
    assert (line.level, line.found) == (WARNING, 'mixed; OpenMMLab: mmdet; onedl: onedl-mmengine, onedl-mmcv')


def test_advice_names_the_packages_of_the_stack_that_is_there() -> None:
    old = {**ONEDL, 'onedl-mmcv': '1.9.0'}
    advice = judged(old, missing=['cv2'], ops=True, accepts=ACCEPTS['onedl'])['mmcv for mmdet'].advice
    assert advice == 'pip uninstall onedl-mmcv, then pip install --no-build-isolation "onedl-mmcv>=2.0.0"'
    there = {name: version for name, version in ONEDL.items() if name != 'onedl-mmengine'}
    assert judged(there, missing=['mmengine'])['mmengine'].advice.endswith('pip install onedl-mmengine')
    assert 'mim' not in judged(ONEDL, missing=['cv2'], ops=False)["mmcv's compiled ops"].advice


def test_limits_are_read_where_the_frameworks_that_are_here_say_them() -> None:
    pytest.importorskip('mmdet')
    found = accepted_mmcv(folder_of('mmdet')) or declared_mmcv('mmdet')
    assert found in (ACCEPTS['OpenMMLab']['mmdet'], ACCEPTS['onedl']['mmdet'])


def test_the_stack_that_is_here_is_named_alike_everywhere() -> None:
    from this_stack import IS_ONEDL

    from mmguard.environment.facts import gather
    from mmguard.stack import is_onedl

    (line,) = [line for line in verdicts(gather(try_imports=False)) if line.name == 'stack']
    assert line.found.startswith('onedl:') == IS_ONEDL == is_onedl('mmengine')
