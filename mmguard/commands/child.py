"""Child processes of this interpreter that import nothing from the working directory."""

from __future__ import annotations

import os
import site
import sys
from typing import List

_HERE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def build_python_command(code: str) -> List[str]:
    """Return the command that runs code in a child process; the caller appends arguments for its ``sys.argv[1:]``.

    The child finds the packages of this process, also those in PYTHONPATH and the user site, and editable ones. It does
    not search the working directory, because a ``json.py`` there must not replace that of the standard library.
    """
    here = os.path.realpath(os.getcwd())
    paths = [path for path in sys.path if os.path.isabs(path) and os.path.realpath(path) != here]
    paths += [] if _HERE in paths else [_HERE]  # after the standard library
    begin = f'import sys\nsys.path[:] = {paths!r}\n'
    if site.ENABLE_USER_SITE:  # editable installations are found by their .pth files
        begin += f'import site\nsite.addsitedir({site.getusersitepackages()!r})\n'
    return [os.path.abspath(sys.executable), '-I', '-c', begin + code]
