"""Stock trainings on the planted labels of ``every_architecture.py``, unguarded: ``make zoo STOCK=1``.

Each runs in a process of its own: after a device-side assert none can use the GPU any more.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Counter as Counts

import pytest
from architectures import ALL, CONFIG_FOLDERS, small_config
from every_architecture import NOT_TRAINED
from guarded_twice import named_apart
from mmengine.registry import init_default_scope
from small_runs import Run

OFFLINE = [one for one in ALL if not any(str(one).startswith(part) for part in NOT_TRAINED)]
ASSERT, EXCEPTION, TRAINED = 'device-side assert', 'another exception', 'trained on the invalid labels'
ended: Counts[str] = Counter()


def train(number: int, folder: Path) -> None:
    architecture = OFFLINE[number]
    init_default_scope(architecture.scope)
    os.chdir(CONFIG_FOLDERS[architecture.scope].parent)  # distillation names the config of its teacher
    config, _ = small_config(architecture, str(folder / 'data'), str(folder / 'work'))
    Run(named_apart(config, folder / 'stock')).train()


@pytest.mark.timeout(1800)
@pytest.mark.parametrize('number', range(len(OFFLINE)), ids=[str(one) for one in OFFLINE])
def test_stock(number: int, tmp_path: Path) -> None:
    ran = subprocess.run(
        [sys.executable, '-W', 'ignore', __file__, str(number), str(tmp_path)],
        env={**os.environ, 'PYTHONPATH': os.pathsep.join(filter(None, sys.path))},
        capture_output=True,
        text=True,
        timeout=1800,
        check=False,
    )
    last = ran.stderr.strip().splitlines()[-1:]
    asserts = 'device-side assert' in ran.stderr
    ended[ASSERT if asserts else EXCEPTION if ran.returncode else TRAINED] += 1
    if ran.returncode and not asserts:  # of the labels, not of the program
        assert 'Error' in ''.join(last), ran.stderr[-2000:]
        assert 'No module named' not in ran.stderr


def test_the_column_of_docs_stacks(capsys: pytest.CaptureFixture, request: pytest.FixtureRequest) -> None:
    with capsys.disabled():
        print(*(f'\nstock: {kind}: {ended[kind]} of {sum(ended.values())}' for kind in (ASSERT, EXCEPTION, TRAINED)))
    ran = [item for item in request.session.items if item.name.startswith('test_stock[')]
    assert sum(ended.values()) == len(ran) > 0


if __name__ == '__main__':
    train(int(sys.argv[1]), Path(sys.argv[2]))
