"""One import, with torch and numpy alone: nothing of mmengine is loaded, and the parts are attributes."""

from __future__ import annotations

from warm import run_beside_torch


def test_installed_frameworks_are_not_loaded() -> None:
    """The parts for plain PyTorch, wherever they are used."""
    parts = 'mmguard.nn, mmguard.functional, mmguard.distributed, mmguard.detection'
    code = (
        f'import sys, torch, numpy\nbefore = set(sys.modules)\nimport {parts}\n'
        'files = {m: str(getattr(sys.modules[m], "__file__", "")) for m in set(sys.modules) - before}\n'
        'print(*(m for m, file in files.items() if "site-packages" in file))\n'
        'assert "mmguard.nn" in sys.modules'
    )
    ended = run_beside_torch(code)
    assert ended.returncode == 0, ended.stderr
    others = {name.split('.')[0] for name in ended.stdout.split()} - {'mmguard', 'torch', 'numpy'}
    assert not others, others
