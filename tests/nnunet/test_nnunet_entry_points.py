"""Entry points of nnU-Net's part; a training with it loads no rule before an offence."""

from __future__ import annotations

import subprocess
import sys

from mmguard.entry_points import find_entry_points


def test_it_registers_as_an_installed_package_does() -> None:
    for group, number in (('mmguard.commands', 1), ('mmguard.formats', 1), ('mmguard.rules', 11)):
        own = [point for point in find_entry_points(group) if not point.package]
        assert len(own) == number
        for point in own:
            assert point.load().__module__.startswith('mmguard.nnunet')


def test_a_training_without_an_offence_loads_no_rule() -> None:
    code = (
        'import sys, torch, mmguard.nnunet.case_log\n'
        'print([m for m in sys.modules if m.startswith(("mmguard.findings", "mmguard.config", "mmguard.commands"))])'
    )
    done = subprocess.run([sys.executable, '-c', code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == '[]'
