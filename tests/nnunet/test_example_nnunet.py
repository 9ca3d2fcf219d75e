"""The example runs as it is documented, and so do the trainers of the documentation."""

from __future__ import annotations

import math
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any, Dict

import pytest

pytest.importorskip('nnunetv2')

from small_nnunet import PLANTED, lines_of, trainer

pytestmark = pytest.mark.slow

REPOSITORY = Path(__file__).resolve().parents[2]
BLOCKS = re.findall(r'```python\n(.*?)```', (REPOSITORY / 'docs' / 'nnunet.md').read_text(), re.S)


def test_the_example_shows_the_stock_trainer_die_and_the_guarded_one_finish() -> None:
    run = subprocess.run(
        [sys.executable, str(REPOSITORY / 'examples' / 'nnunet_guarded.py')],
        env={**os.environ, 'PYTHONPATH': str(REPOSITORY)},
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run.stderr
    assert re.search(r'^nnUNetTrainer .*RuntimeError: index 7\b', run.stdout, re.M)
    assert re.search(r'guard: epoch 0 iter \d+: \d+ of 3,456 .*\b7\b', run.stdout)


def documented(name: str) -> Any:
    names: Dict[str, Any] = {'__name__': 'documented'}
    for block in BLOCKS:
        exec(block, names)
    return names[name]


@pytest.mark.usefixtures('no_results')
@pytest.mark.parametrize('name', ['nnUNetTrainerDA5Guarded', 'nnUNetTrainerSmoothedCEGuarded'])
def test_documented_trainers_finish_and_tell(preprocessed: Dict[str, Path], name: str) -> None:
    for dataset in ('plain', 'ignoring'):
        made = trainer(documented(name), preprocessed[dataset], '3d_fullres', iterations=6)
        made.run_training()
        assert math.isfinite(made.logger.get_value('train_losses', step=-1))
        sources = {sample['source'] for line in lines_of(made.output_folder) for sample in line['samples']}
        assert sources
        assert sources <= set(PLANTED)
