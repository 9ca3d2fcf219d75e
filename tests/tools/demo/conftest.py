from __future__ import annotations

import pytest

from mmguard.tools.demo.dataset import DataSet, write_dataset


@pytest.fixture(scope='session')
def dataset(tmp_path_factory) -> DataSet:
    return write_dataset(tmp_path_factory.mktemp('cityscapes'))
