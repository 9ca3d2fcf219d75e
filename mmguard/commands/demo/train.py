"""Training with a config from its folder: ``python -m mmguard.commands.demo.train CONFIG [WORK_DIR]``."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Tuple

from mmguard.commands.child import build_python_command

#: Code of the child process, which sets the encoding of its output because ``python -I`` ignores PYTHONIOENCODING.
_CHILD_CODE = """
for stream in (sys.stdout, sys.stderr):
    stream.reconfigure(encoding='utf-8', errors='replace', line_buffering=True)
from mmguard.commands.demo.train import main
main(*sys.argv[1:])
"""


def main(config: str, work_dir: str = 'work_dirs') -> None:
    """Build the runner of a config and train."""
    from mmengine import Config
    from mmengine.device import utils
    from mmengine.runner import Runner

    if utils.DEVICE == 'mps':
        utils.DEVICE = 'cpu'  # Metal silently reads out of bounds, so the demo would show nothing
    loaded = Config.fromfile(config)
    loaded.work_dir = work_dir
    Runner.from_cfg(loaded).train()


def train_in_child(stem: str, folder: Path) -> Tuple[int, str]:
    """Train with the config ``<stem>.py`` in a child process, whose work directory is ``runs/<stem>``.

    Return the exit code and the output, which is also in ``runs/<stem>.txt``.
    """
    (folder / 'runs').mkdir(exist_ok=True)
    with open(folder / 'runs' / f'{stem}.txt', 'w+b') as log:
        command = [*build_python_command(_CHILD_CODE), f'{stem}.py', f'runs/{stem}']
        # Two threads waiting for each other on busy cores take ten times as long as one.
        env = {'OMP_NUM_THREADS': '1', **os.environ}
        child = subprocess.Popen(command, cwd=folder, env=env, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        try:
            code = child.wait()
        finally:  # also on Ctrl-C
            child.kill()
            child.wait()
        log.seek(0)
        return code, re.sub(r'\x1b\[[0-9;]*m', '', log.read().decode(errors='replace'))


if __name__ == '__main__':
    main(*sys.argv[1:])
