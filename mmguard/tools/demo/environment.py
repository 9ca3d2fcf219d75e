"""Whether MMSegmentation is there and works."""

from __future__ import annotations

import importlib
import textwrap
import warnings
from typing import Optional

from mmguard.compat.stack import config_file
from mmguard.tools.demo.configs import STOCK

NEEDED = ('cv2', 'matplotlib', 'mmcv', 'mmcv.ops', 'mmseg', 'mmseg.models', 'mmseg.datasets', 'mmseg.engine')


def what_is_missing() -> Optional[str]:
    """Returns a paragraph that names what to install, or ``None`` where all is well."""
    name = ''
    try:
        with warnings.catch_warnings():
            warnings.simplefilter('ignore')  # what they deprecate is not this reader's business
            for name in NEEDED:
                importlib.import_module(name)
            name = f'reading the config {STOCK}'
            importlib.import_module('mmengine').Config.fromfile(config_file(STOCK))
    except Exception as error:  # a version assertion, a shared library that does not load, anything
        where = name if ' ' in name else f'`import {name}`'
        reason = f'{type(error).__name__}: {" ".join(str(error).split())}'
        return textwrap.fill(
            f'mmguard demo trains PIDNet from MMSegmentation, which does not work here: {where} fails with {reason}. '
            f'Install what is missing, of one stack: `pip install mmsegmentation ftfy regex`, and an mmcv that fits it '
            f'and has its compiled ops (`pip install openmim`, then `mim install "mmcv>=2.0.0,<2.2.0"`; mmcv-lite is '
            f'not enough), or `pip install onedl-mmengine onedl-mmcv onedl-mmsegmentation`; then run the demo again. '
            f'The rest of mmguard works without mmsegmentation.',
            width=100,
            break_long_words=False,
            break_on_hyphens=False,
        )
    return None
