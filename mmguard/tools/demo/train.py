"""Trains with a config, run from its folder: ``python -m mmguard.tools.demo.train CONFIG [--work-dir DIR]``."""

from __future__ import annotations

import argparse
import os
import threading
from typing import List, Optional


def main(argv: Optional[List[str]] = None) -> None:
    """Builds the runner of a config and trains."""
    parser = argparse.ArgumentParser(prog='python -m mmguard.tools.demo.train', description='Trains with a config.')
    parser.add_argument('config')
    parser.add_argument('--work-dir', default='work_dirs')
    parser.add_argument('--tethered', action='store_true', help='end as soon as standard input is closed')
    args = parser.parse_args(argv)
    if args.tethered:
        threading.Thread(target=_end_with_parent, daemon=True).start()

    from mmengine import Config
    from mmengine.runner import Runner

    _avoid_mps()
    config = Config.fromfile(args.config)
    config.work_dir = args.work_dir
    Runner.from_cfg(config).train()


def _end_with_parent() -> None:
    """Waits until the parent has closed the pipe, which it does however it ends."""
    while os.read(0, 1024):  # not sys.stdin: its lock would be missed when the interpreter ends
        pass
    os._exit(1)


def _avoid_mps() -> None:
    """On a Mac the CPU: Metal reads out of bounds without a word, and then the demo would show nothing."""
    from mmengine.device import utils

    if utils.DEVICE == 'mps':
        utils.DEVICE = 'cpu'


if __name__ == '__main__':
    main()
