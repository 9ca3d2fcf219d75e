"""Label files for commands that are interrupted."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image


@pytest.fixture
def maps(tmp_path: Path) -> Path:
    """Label maps of three classes, with 3 among them."""
    folder = tmp_path / 'labels'
    random = np.random.default_rng(0)
    for number in range(24):
        path = folder / f'city_{number % 3}' / f'{number}.png'
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(random.integers(0, 4, (64, 64), np.uint8)).save(path)
    return folder
