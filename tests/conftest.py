"""Tiny data sets, made once per test process."""

from __future__ import annotations

import contextlib
import gc
import importlib.util
import itertools
import os
import random
import signal
import sys
from functools import lru_cache
from pathlib import Path
from typing import Any, Callable, Iterator, Optional

# The texts that tests compare are English, whatever the locale.
os.environ['MMGUARD_LANG'] = 'en'
# Before torch is imported. Test processes side by side would wait for each other's threads.
os.environ.setdefault('OMP_NUM_THREADS', '1')
# Nor does torch.compile start processes that import torch first.
os.environ.setdefault('TORCHINDUCTOR_COMPILE_THREADS', '1')
# A GPU is used by `make test-gpu` only: after a device-side assert, none works in that process any more.
if os.environ.get('MMGUARD_TEST_GPU') != '1':
    os.environ['CUDA_VISIBLE_DEVICES'] = ''
# Asking the driver whether there is one would start CUDA, which does not survive a fork.
os.environ.setdefault('PYTORCH_NVML_BASED_CUDA_CHECK', '1')

import numpy as np
import pytest
import torch
from hypothesis import settings
from snapshot_files import FOLDER, normalize, read_sections, write_sections

# A busy machine is no failure; pytest-timeout ends what hangs.
# CI runs the same examples every time; a developer's run explores others.
settings.register_profile('mmguard', deadline=None, derandomize=bool(os.environ.get('CI')))
settings.load_profile('mmguard')

# Where the tests run in the background of a shell, it ignores Ctrl-C for them and for all that they start.
signal.signal(signal.SIGINT, signal.default_int_handler)


#: How many modules were imported when what there is was last taken out of garbage collections.
frozen = {'modules': 0}


@pytest.fixture(autouse=True)
def seeded() -> None:
    """Each test draws the same numbers in every run, alone and among others."""
    # What torch 2.1 compiles is linked with -ffast-math: loading it turns subnormal numbers off for the whole thread.
    torch.set_flush_denormal(False)
    random.seed(0)
    np.random.seed(0)
    torch.manual_seed(0)


@pytest.fixture(autouse=True)
def no_default_scope() -> Iterator[None]:
    """Clears mmengine's default scope: an mmseg run of another test must not decide where one builds."""
    _clear_scopes()
    yield
    _clear_scopes()


def _clear_scopes() -> None:
    registry = sys.modules.get('mmengine.registry')  # not imported for this: it may not be installed
    if registry is not None:
        registry.DefaultScope._instance_dict.clear()


@pytest.fixture(autouse=True)
def imports_are_not_collected() -> None:
    """Takes what has been imported out of garbage collections: each data set of mmengine asks for one, 0.5 s long."""
    if len(sys.modules) > frozen['modules'] + 50:
        gc.collect()
        gc.freeze()
        frozen['modules'] = len(sys.modules)


@pytest.fixture(scope='session', autouse=True)
def index_files_are_parsed_once() -> Iterator[None]:
    """mmengine parses some 75 index files of a framework, for 0.5 s, for each config that inherits from ``mmseg::...``.

    They are read, never changed: what is in them is remembered.
    """
    if importlib.util.find_spec('mmengine') is None:
        yield
        return
    from mmengine.config import utils

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(utils, 'load', lru_cache(maxsize=None)(utils.load))
        yield


@pytest.fixture(scope='session')
def cityscapes(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Root of a data set in Cityscapes' layout; ``small_runs.PLANTED`` says what is wrong with it."""
    pytest.importorskip('mmengine')
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
def snapshot(pytestconfig: pytest.Config, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str, str], None]:
    """Return ``compare(command, name, text)``: the text equals the section of ``snapshots/{command}.txt``.

    ``--update-snapshots`` writes the section instead; the difference is read in review.
    """
    monkeypatch.setenv('COLUMNS', '200')  # no temporary path is broken

    def compare(command: str, name: str, text: str) -> None:
        path, text = FOLDER / f'{command}.txt', normalize(text)
        if pytestconfig.getoption('--update-snapshots'):
            import fcntl

            lock = os.open(FOLDER, os.O_RDONLY)  # the workers of xdist write one after another
            fcntl.flock(lock, fcntl.LOCK_EX)
            write_sections(path, {**read_sections(path), name: text})
            os.close(lock)
            return
        kept = read_sections(path).get(name, '')
        assert text == kept, f'section {name} of {path.name}: see "Snapshots" in tests/README.md'

    return compare


@pytest.fixture
def refuses(snapshot: Callable[[str, str, str], None], request: pytest.FixtureRequest) -> Callable[..., Any]:
    """Return ``pytest.raises`` for errors that are only text: it is compared with ``snapshots/errors.txt``."""
    numbers = itertools.count(1)

    @contextlib.contextmanager
    def raises(expected: Any, match: Optional[str] = None) -> Iterator[Any]:
        with pytest.raises(expected, match=match) as caught:
            yield caught
        section = f'{request.node.path.stem}::{request.node.name} {next(numbers)}'
        snapshot('errors', section, f'{type(caught.value).__name__}: {caught.value}')

    return raises


@pytest.fixture
def work_dir(tmp_path: Path) -> str:
    return str(tmp_path)
