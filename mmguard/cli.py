"""The command line."""

from __future__ import annotations

import argparse
import sys
from typing import List, Optional

from mmguard.version import __version__


def main(argv: Optional[List[str]] = None) -> int:
    """Runs a command. Returns its exit code."""
    parser = argparse.ArgumentParser(
        prog='mmguard', description='Keeps bad labels from killing, or quietly spoiling, a training run.'
    )
    parser.add_argument('--version', action='version', version=f'mmguard {__version__}')
    parser.parse_args(argv)
    parser.print_help()
    return 0


if __name__ == '__main__':
    sys.exit(main())
