"""One tiny data set per test process, in four declarations."""

from __future__ import annotations

import importlib.util
import os
import shutil
from pathlib import Path
from typing import Any, Dict, Iterator

import pytest

# Without nnU-Net nothing here is collected.
if importlib.util.find_spec('nnunetv2') is not None:
    import small_nnunet as small


@pytest.fixture(scope='session')
def nnunet_root(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Where nnU-Net reads and writes: raw, preprocessed and results."""
    before = dict(os.environ)
    root = tmp_path_factory.mktemp('nnunet')
    for folder in ('preprocessed', 'results'):
        (root / folder).mkdir()
    small.set_folders(root)
    yield root
    os.environ.clear()
    os.environ.update(before)


@pytest.fixture(scope='session')
def preprocessed(nnunet_root: Path) -> Dict[str, Path]:
    """Name -> preprocessed data set: ``plain``, ``ignoring``, ``regions``, ``ignoring_regions`` hold invalid labels,
    ``clean`` none. Planned once: nnU-Net starts processes for it."""
    declared: Dict[str, Any] = {
        'plain': small.PLAIN,
        'ignoring': small.IGNORING,
        'regions': small.REGIONS,
        'ignoring_regions': small.IGNORING_REGIONS,
        'clean': small.PLAIN,
    }
    folders: Dict[str, Path] = {}
    for number, (name, labels) in enumerate(declared.items(), start=1):
        dataset = f'Dataset{number:03d}_{name}'
        raw = nnunet_root / 'raw' / dataset
        small.make_raw(raw, labels, {} if name == 'clean' else small.PLANTED)
        if name == 'plain':
            folders[name] = small.plan_and_preprocess(nnunet_root, number)
        else:
            folders[name] = small.with_the_plans_of(folders['plain'], nnunet_root, dataset)
    return folders


@pytest.fixture
def no_results(nnunet_root: Path) -> None:
    """Trainings of other tests leave nothing behind."""
    shutil.rmtree(nnunet_root / 'results')
    (nnunet_root / 'results').mkdir()
