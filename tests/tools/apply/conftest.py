"""mmengine parses some 75 index files of a framework each time that a config inherits from ``mmseg::...``."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Iterator

import pytest


@pytest.fixture(scope='session', autouse=True)
def index_files_are_parsed_once() -> Iterator[None]:
    """Remembers what is in them: more than half of the time of these tests. They are read, never changed."""
    from mmengine.config import utils

    load = utils.load

    @lru_cache(maxsize=None)
    def index(path: str) -> Any:
        return load(path)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(utils, 'load', index)
        yield
