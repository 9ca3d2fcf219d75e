"""What a command needs beyond torch and numpy, and how it is installed."""

from __future__ import annotations

from typing import Dict, Optional

from mmguard.compat.stack import install_words

#: The packages of the ``[scan]`` extra: whoever lacks one mostly lacks the others.
_SCAN = 'pip install pillow rich msgspec jinja2'

#: Module -> what to type.
INSTALL: Dict[str, str] = {
    **{module: install_words(module) for module in ('mmengine', 'mmcv', 'mmseg', 'mmdet')},
    **dict.fromkeys(('PIL', 'rich', 'jinja2', 'msgspec'), _SCAN),
    'cv2': 'pip install opencv-python-headless',
    'matplotlib': 'pip install matplotlib',
    'yaml': 'pip install pyyaml',
    'nibabel': 'pip install nibabel',
    'nnunetv2': 'pip install nnunetv2',
}


def how_to_install(error: ModuleNotFoundError) -> Optional[str]:
    """One line for the screen; ``None`` for a module that mmguard does not need, as a config's own.

    Example:
        >>> how_to_install(ModuleNotFoundError("No module named 'PIL'", name='PIL'))
        'needs PIL, which is not installed: pip install pillow rich msgspec jinja2'
        >>> how_to_install(ModuleNotFoundError("No module named 'my_project'", name='my_project'))
    """
    module = (error.name or '').partition('.')[0]
    return f'needs {module}, which is not installed: {INSTALL[module]}' if module in INSTALL else None
