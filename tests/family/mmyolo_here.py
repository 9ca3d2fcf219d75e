"""Imports mmyolo beside mmcv 2.1: it refuses any mmcv from 2.1.0 on by its number alone."""

from __future__ import annotations

import mmcv

_version = mmcv.__version__
mmcv.__version__ = '2.0.1'
try:
    import mmyolo.datasets
    import mmyolo.models  # noqa: F401
finally:
    mmcv.__version__ = _version
