"""One config of each folder that ships with mmyolo; ``every_mmyolo_config.py`` has all."""

from __future__ import annotations

import os.path as osp

import pytest
from mmyolo_configs import holds, outcome, shipped

FIRST = list({osp.dirname(name): name for name in reversed(shipped())}.values())


@pytest.mark.parametrize('name', FIRST)
def test_it_is_guarded_without_exception_or_false_alarm(name: str) -> None:
    holds(outcome(name))
