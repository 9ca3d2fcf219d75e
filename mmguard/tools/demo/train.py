"""Training with a config from its folder: ``python -m mmguard.tools.demo.train CONFIG [WORK_DIR]``."""

from __future__ import annotations

import sys


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


if __name__ == '__main__':
    main(*sys.argv[1:])
