"""Print the table of docs/benchmarks.md: ``python -m benchmarks [--device cuda] [--only losses hooks]``."""

from __future__ import annotations

import argparse
import sys
import warnings
from importlib import import_module
from typing import List

import torch

from benchmarks.timing import Row

#: Modules of this package, each imported when it is measured: no environment has the packages of all of them.
GROUPS = (
    'losses',
    'pytorch',
    'transforms',
    'detection',
    'coco',
    'hooks',
    'steps',
    'ranks',
    'imports',
    'scan',
    'explain',
    'dry_run',
    'yolo',
    'nnunet',
)


def main() -> int:
    parser = argparse.ArgumentParser(prog='benchmarks', description=__doc__)
    parser.add_argument('--device', choices=('cpu', 'cuda'), default='cpu')
    parser.add_argument('--rounds', type=int, default=15, help='how often each side runs')
    parser.add_argument('--only', nargs='+', choices=GROUPS, default=GROUPS)
    args = parser.parse_args()
    if args.device == 'cuda' and not torch.cuda.is_available():
        parser.error('there is no CUDA device here')
    warnings.filterwarnings('ignore')
    table: List[Row] = []
    for name in args.only:
        print(f'measuring {name} ...', file=sys.stderr, flush=True)
        table += import_module(f'benchmarks.{name}').rows(args.device, args.rounds)
    print(f'\ntorch {torch.__version__}, {args.device}, {torch.get_num_threads()} threads, medians of {args.rounds}\n')
    print('| measured | ours | peer | ratio | bar | |\n| --- | ---: | ---: | ---: | ---: | --- |')
    for row in table:
        peer = '' if row.peer is None else f'{row.peer:.3g} {row.unit}'
        ratio = '' if row.peer is None else f'{row.figure:.3f}'
        bar, verdict = ('', '') if row.bar is None else (f'{row.bar:g}', 'holds' if row.holds else 'MISSED')
        print(f'| {row.what} | {row.ours:.3g} {row.unit} | {peer} | {ratio} | {bar} | {verdict} |')
    return 0 if all(row.holds for row in table) else 1


if __name__ == '__main__':
    sys.exit(main())
