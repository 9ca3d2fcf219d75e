from __future__ import annotations

import pytest


@pytest.fixture(scope='session')
def nnunet() -> None:
    """nnU-Net itself, which the tests compare with."""
    pytest.importorskip('nnunetv2')
