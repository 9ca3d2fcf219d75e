"""Command ``mmguard nnunet``."""

from __future__ import annotations

import argparse
from typing import Any

from mmguard.commands import CLEAN
from mmguard.nnunet.export import SHELLS, build_line


def add_to(commands: Any) -> None:
    parser = commands.add_parser(
        'nnunet',
        help='print the shell line that lets nnUNetv2_train find nnUNetTrainerGuarded',
        description='Prints the shell line that appends the folder of nnUNetTrainerGuarded to the environment variable '
        'nnUNet_extTrainer. In bash, run eval "$(mmguard nnunet)", then nnUNetv2_train DATASET CONFIGURATION FOLD -tr '
        'nnUNetTrainerGuarded. Exit code: 0 if the line was printed, 2 if this Python has no nnU-Net that '
        'reads nnUNet_extTrainer.',
    )
    parser.add_argument(
        '--shell',
        choices=SHELLS,
        default='sh',
        help='shell in which you run the line; sh also covers bash and zsh; default: %(default)s',
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    print(build_line(args.shell))
    return CLEAN
