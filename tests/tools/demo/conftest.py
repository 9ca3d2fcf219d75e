from __future__ import annotations

from typing import Any

import pytest


@pytest.fixture(scope='session')
def dataset(tmp_path_factory) -> Any:
    from mmguard.tools.demo.dataset import write_dataset

    return write_dataset(tmp_path_factory.mktemp('cityscapes'))
