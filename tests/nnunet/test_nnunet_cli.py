"""What a user types, in a shell of its own: mmguard nnunet, then nnUNetv2_train.

nnU-Net imports all of its own trainers to find one. One of them imports timm, which imports torchvision: where that is
missing (conftest.py), it finds none.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Dict

import pytest

pytest.importorskip('torchvision')

pytest.importorskip('nnunetv2')

from small_nnunet import PLANTED, lines_of

from mmguard.nnunet.export import FOLDER

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures('no_results')]

#: One short epoch in place of 1,000 long ones, as nnU-Net's own variants do it.
SHORT = """
from mmguard.nnunet.trainer import nnUNetTrainerGuarded


class nnUNetTrainerGuardedShort(nnUNetTrainerGuarded):
    def __init__(self, plans, configuration, fold, dataset_json, device):
        super().__init__(plans, configuration, fold, dataset_json, device)
        self.num_epochs, self.num_iterations_per_epoch, self.num_val_iterations_per_epoch = 1, 12, 3
"""


def test_nnunet_finds_the_trainer() -> None:
    """nnU-Net's own search, in a fresh process."""
    code = (
        'from nnunetv2.utilities.find_objects import recursive_find_trainer_class_by_name as find\n'
        'trainer = find("nnUNetTrainerGuarded")\n'
        'print(trainer.__mro__[1].__name__, trainer.__mro__[2].__name__)'
    )
    environment = {**os.environ, 'nnUNet_extTrainer': str(FOLDER)}
    found = subprocess.run([sys.executable, '-c', code], env=environment, capture_output=True, text=True)
    assert found.returncode == 0, found.stderr
    assert found.stdout.splitlines()[-1].split() == ['GuardsLabels', 'nnUNetTrainer']


def in_a_shell(script: str, **variables: str) -> subprocess.CompletedProcess[str]:
    commands = {'mmguard': 'mmguard.cli', 'nnUNetv2_train': 'nnunetv2.run.run_training'}
    for name, module in commands.items():
        script = script.replace(f'{name} ', f'{shlex.quote(sys.executable)} -m {module} ')
    environment = {**os.environ, **variables, 'nnUNet_n_proc_DA': '1', 'OMP_WAIT_POLICY': 'PASSIVE'}
    return subprocess.run(['sh', '-c', script], env=environment, capture_output=True, text=True)


def test_what_a_user_types_trains_validates_and_tells(
    preprocessed: Dict[str, Path], nnunet_root: Path, tmp_path: Path
) -> None:
    data = preprocessed['plain']
    short = tmp_path / 'trainers'
    short.mkdir()
    (short / 'short.py').write_text(SHORT)
    guarded = in_a_shell(
        'eval "$(mmguard nnunet)" && nnUNetv2_train 1 2d 0 -tr nnUNetTrainerGuardedShort -device cpu',
        nnUNet_extTrainer=str(short),
    )
    assert guarded.returncode == 0, guarded.stderr
    results = nnunet_root / 'results' / data.name / 'nnUNetTrainerGuardedShort__nnUNetPlans__2d' / 'fold_0'
    lines = lines_of(results)
    sources = {sample['source'] for line in lines for sample in line['samples']}
    assert sources
    assert sources <= set(PLANTED)
    assert 'nan' not in guarded.stdout.lower()
    assert (results / 'checkpoint_final.pth').is_file()
    # The last thing nnU-Net does: it predicts whole cases, and compares them with the label files.
    assert (results / 'validation' / 'summary.json').is_file()
