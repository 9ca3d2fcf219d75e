"""Install line of each machine, and the lines that were executed."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, Dict, Optional

import pytest

from mmguard.cli import main
from mmguard.commands.env import EXECUTED, build_install_line
from mmguard.facts.environment import Cuda, EnvironmentFacts

ROOT = Path(__file__).parents[3]
CLASSIC = 'mmcv==2.1.0 mmengine==0.10.7 mmsegmentation==1.2.2 mmdet==3.3.0 ftfy regex'
ONEDL = 'onedl-mmcv==2.3.6 onedl-mmengine==0.10.12 onedl-mmsegmentation==1.4.2 onedl-mmdetection==3.5.1'
BUILD = 'pip install "setuptools<81" wheel ninja '
THEN = ' && pip install --no-build-isolation '
MMENGINE = {'OpenMMLab': {'mmengine': '0.10.7'}, 'onedl': {'onedl-mmengine': '0.10.12'}}
CPU = Cuda('')
RTX_50 = ('NVIDIA GeForce RTX 5090',), (12, 0)
RTX_30 = ('NVIDIA GeForce RTX 3090',), (8, 6)


def machine(
    python: str, torch: str, cuda: Optional[Cuda] = CPU, system: str = 'Linux-6.1', **installed: str
) -> EnvironmentFacts:
    versions: Dict[str, str] = {**installed, **({'torch': torch} if torch else {})}
    return EnvironmentFacts(python=f'{python}.1', system=system, versions=versions, cuda=cuda)


def wheels(cuda: str) -> str:
    return f'-f https://download.openmmlab.com/mmcv/dist/{cuda}/torch2.1.0/index.html '


def index(local: str) -> str:
    return f' --extra-index-url https://download.pytorch.org/whl/{local}'


OLD = f'{CLASSIC} "opencv-python<4.12"'


@pytest.mark.parametrize(
    ('seen', 'line'),
    [
        # As they were typed, for docs/stacks.md says which of them ended well.
        (machine('3.8', '2.1.2', Cuda('12.1')), f'{BUILD}torch==2.1.2 "numpy<2"{THEN}{wheels("cu121")}{OLD}'),
        (machine('3.11', '2.13.0', mmengine='0.10.7'), f'{BUILD}torch==2.13.0{THEN}{CLASSIC}'),
        (machine('3.12', '2.13.0'), f'{BUILD}torch==2.13.0{THEN}{ONEDL}'),
        # torch for another CUDA, or for the CPU, comes from PyTorch's index, and mmcv's wheel is that of it.
        (
            machine('3.10', '2.1.0+cu118', Cuda('11.8', *RTX_30)),
            f'{BUILD}torch==2.1.0{index("cu118")} "numpy<2"{THEN}{wheels("cu118")}{OLD}',
        ),
        (
            machine('3.10', '2.1.0+cpu'),
            f'{BUILD}torch==2.1.0{index("cpu")} "numpy<2"{THEN}{wheels("cpu")}{OLD}',
        ),
        # No wheel of mmcv < 2.2 for later ones, and unknown if nothing was imported.
        (machine('3.11', '2.4.1', Cuda('12.1', *RTX_30)), f'{BUILD}torch==2.4.1{THEN}{CLASSIC}'),
        (machine('3.10', '2.1.0', None), f'{BUILD}torch==2.1.0 "numpy<2"{THEN}{OLD}'),
        # onedl needs Python 3.10.
        (machine('3.9', '2.6.0', Cuda('12.4', *RTX_30)), f'{BUILD}torch==2.6.0{THEN}{CLASSIC}'),
        (machine('3.10', '2.6.0', Cuda('12.4', *RTX_30)), f'{BUILD}torch==2.6.0{THEN}{ONEDL}'),
        (machine('3.11', '2.9.0', **{'onedl-mmcv': '2.3.6'}), f'{BUILD}torch==2.9.0{THEN}{ONEDL}'),
        # RTX 50: a torch for CUDA 12.8 in place of one that has no kernels for it.
        (machine('3.10', '2.1.2', Cuda('12.1', *RTX_50)), f'{BUILD}torch==2.8.0{index("cu128")}{THEN}{ONEDL}'),
        (machine('3.12', '2.7.1+cu126', Cuda('12.6', *RTX_50)), f'{BUILD}torch==2.8.0{index("cu128")}{THEN}{ONEDL}'),
        (
            machine('3.12', '2.9.1+cu130', Cuda('13.0', *RTX_50)),
            f'{BUILD}torch==2.9.1{index("cu130")}{THEN}{ONEDL}',
        ),
        (machine('3.9', '2.1.2', Cuda('12.1', *RTX_50)), None),
        (machine('3.12', ''), None),
    ],
)
def test_a_machine_gets_its_line(seen: EnvironmentFacts, line: Optional[str]) -> None:
    built = build_install_line(seen)
    assert (built and built.line) == line


def test_only_what_was_executed_is_called_so() -> None:
    for stack, python, torch in EXECUTED:
        same: Any = MMENGINE[stack]
        assert build_install_line(machine(python, torch, **same)).executed
        for other in (
            machine('3.13', torch, **same),
            machine(python, f'{torch}.9', **same),
            machine(python, f'{torch}+cu118', Cuda('11.8'), **same),
            machine(python, torch, system='Windows-10', **same),
            machine(python, torch, Cuda('12.1', *RTX_30), **same),
        ):
            assert not build_install_line(other).executed


def test_the_page_has_the_rows_that_were_executed() -> None:
    text = (ROOT / 'docs' / 'stacks.md').read_text(encoding='utf-8')
    section = text.partition('## Install a stack')[2].partition('\n## ')[0]
    rows = re.findall(r'^\| (\w+) \| (3\.\d+) \| (2[\d.]+) \|.*\| executed', section, re.MULTILINE)
    assert rows == list(EXECUTED)
    for stack, python, torch in EXECUTED:
        typed: Any = build_install_line(machine(python, torch, Cuda('12.1'), **MMENGINE[stack]))
        assert f'`{typed.line}`' in section


def test_env_ends_with_the_line_of_this_machine(tmp_path: Path, capsys: Any) -> None:
    from mmguard.commands.env import gather

    out = tmp_path / 'env.json'
    main(['env', '--no-import', '--json', str(out)])
    said, record = capsys.readouterr().out, json.loads(out.read_text())
    expected = build_install_line(gather(try_imports=False))
    assert record['install'] == {'line': expected.line, 'executed': expected.executed}
    assert said.splitlines()[-1].strip() == expected.line
