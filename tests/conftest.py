"""Tiny data sets, made once per test process."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Iterator

import pytest

# Before torch is imported. Test processes side by side would wait for each other's threads.
os.environ.setdefault('OMP_NUM_THREADS', '1')


@pytest.fixture(autouse=True)
def default_scope() -> Iterator[None]:
    """Gives back mmengine's default scope: a run of an mmseg config must not decide where the next test builds."""
    from mmengine.registry import DefaultScope

    before = dict(DefaultScope._instance_dict)
    yield
    DefaultScope._instance_dict.clear()
    DefaultScope._instance_dict.update(before)


@pytest.fixture(scope='session')
def cityscapes(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Root of a data set in Cityscapes' layout; ``small_runs.PLANTED`` says what is wrong with it."""
    from small_runs import make_cityscapes

    return make_cityscapes(str(tmp_path_factory.mktemp('cityscapes')))


@pytest.fixture(scope='session')
def clean_cityscapes(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The same, with valid training labels alone."""
    from small_runs import make_cityscapes

    return make_cityscapes(str(tmp_path_factory.mktemp('clean_cityscapes')), planted={})


@pytest.fixture(scope='session')
def camvid(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Root of a flat data set of 11 classes with void 11."""
    from small_runs import make_camvid

    return make_camvid(str(tmp_path_factory.mktemp('camvid')))


@pytest.fixture
def work_dir(tmp_path: Path) -> str:
    return str(tmp_path)
