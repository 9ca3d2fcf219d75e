"""Whether MMSegmentation is there and works."""

from __future__ import annotations

import importlib
from typing import Optional

from mmguard.compat.stack import config_file
from mmguard.tools.demo.configs import STOCK

NEEDED = ('cv2', 'matplotlib', 'mmcv', 'mmcv.ops', 'mmseg', 'mmseg.models', 'mmseg.datasets', 'mmseg.engine')


def what_is_missing() -> Optional[str]:
    """Returns a paragraph that names what to install, or ``None`` where all is well."""
    name = ''
    try:
        for name in NEEDED:
            importlib.import_module(name)
        config_file(STOCK)
    except Exception as error:  # a version assertion, a shared library that does not load, anything
        reason = f'{type(error).__name__}: {" ".join(str(error).split())}'
        return (
            f'mmguard demo trains PIDNet from MMSegmentation, which does not work here: `import {name}` fails with '
            f'{reason}.\nInstall what is missing: `pip install mmsegmentation ftfy regex`, and an mmcv with its ops '
            f'(`pip install openmim`,\nthen `mim install "mmcv>=2.0.0,<2.2.0"`), or `pip install onedl-mmengine '
            f'onedl-mmcv onedl-mmsegmentation`.'
        )
    return None
