"""Prints the table of the README. ``python -m benchmarks [--device cuda] [--only losses hooks]``."""

from __future__ import annotations

import argparse
import sys
import warnings
from typing import List

import torch

from benchmarks import coco, detection, explain, hooks, imports, losses, nnunet, pytorch, ranks, scan, transforms
from benchmarks.timing import Row

GROUPS = {
    'losses': losses.rows,
    'pytorch': pytorch.rows,
    'transforms': transforms.rows,
    'detection': detection.rows,
    'coco': coco.rows,
    'hooks': hooks.rows,
    'ranks': ranks.rows,
    'imports': imports.rows,
    'scan': scan.rows,
    'explain': explain.rows,
    'nnunet': nnunet.rows,
}


def main() -> int:
    parser = argparse.ArgumentParser(prog='benchmarks', description=__doc__)
    parser.add_argument('--device', choices=('cpu', 'cuda'), default='cpu')
    parser.add_argument('--rounds', type=int, default=15, help='how often each side runs')
    parser.add_argument('--only', nargs='+', choices=list(GROUPS), default=list(GROUPS))
    args = parser.parse_args()
    if args.device == 'cuda' and not torch.cuda.is_available():
        parser.error('there is no CUDA device here')
    warnings.filterwarnings('ignore')
    table: List[Row] = []
    for name in args.only:
        print(f'measuring {name} ...', file=sys.stderr, flush=True)
        table += GROUPS[name](args.device, args.rounds)
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
