"""Cases that are read in the workers of an executor: the same JSON."""

from __future__ import annotations

import multiprocessing
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import pytest
from executor_cases import write_sets

pytest.importorskip('nibabel')


def test_the_same_json(tmp_path: Path) -> None:
    scan = write_sets(tmp_path, ('nnunet',))['nnunet']
    with ProcessPoolExecutor(2, multiprocessing.get_context('spawn')) as executor:
        assert scan(executor=executor) == scan(processes=2) == scan(processes=1)
