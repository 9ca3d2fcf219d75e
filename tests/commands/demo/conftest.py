from __future__ import annotations

from pathlib import Path
from typing import Dict, NamedTuple

import pytest


class Drawn(NamedTuple):
    """A data root, and the planted pixels: label file -> invalid value -> number."""

    root: Path
    planted: Dict[str, Dict[int, int]]


@pytest.fixture(scope='session')
def dataset(tmp_path_factory) -> Drawn:
    from mmguard.commands.demo.dataset import write_dataset

    root = tmp_path_factory.mktemp('cityscapes')
    return Drawn(root, write_dataset(root))
