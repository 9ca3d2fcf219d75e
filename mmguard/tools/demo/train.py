"""Training with a config from its folder: ``python -m mmguard.tools.demo.train CONFIG [WORK_DIR]``."""

from __future__ import annotations

import os
import sys
import threading


def main(config: str, work_dir: str = 'work_dirs', tethered: str = '') -> None:
    """Build the runner of a config and train; ``tethered``: end when standard input is closed."""
    if tethered:
        threading.Thread(target=_end_with_parent, daemon=True).start()

    from mmengine import Config
    from mmengine.device import utils
    from mmengine.runner import Runner

    if utils.DEVICE == 'mps':
        utils.DEVICE = 'cpu'  # Metal silently reads out of bounds, so the demo would show nothing
    loaded = Config.fromfile(config)
    loaded.work_dir = work_dir
    Runner.from_cfg(loaded).train()


def _end_with_parent() -> None:
    """Wait until the parent has closed the pipe, however it ends."""
    while os.read(0, 1024):  # not sys.stdin, whose lock the interpreter needs when it ends
        pass
    os._exit(1)


if __name__ == '__main__':
    main(*sys.argv[1:])
