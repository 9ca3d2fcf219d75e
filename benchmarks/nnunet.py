"""Scan of nnU-Net's raw data sets, compared with nnU-Net's integrity check: ``python -m benchmarks.nnunet``.

Needs an environment with nnU-Net and mmguard: ``PYTHONPATH=. .venv-nnunet/bin/python -m benchmarks.nnunet [--cases 8]
[--rounds 5]``. In other environments it prints that it is skipped.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import os
import sys
import tempfile
from typing import Any, Callable, Dict, List, Optional

import numpy as np

from benchmarks.timing import Row, interleaved

#: Voxels in x, y, z: a brain at 1.5 mm. Like most volumes it is smooth with noise, and 0 outside.
SHAPE = (128, 160, 112)
CHANNELS = 2
CASES = 8
BAR = 0.6


def rows(device: str, rounds: int, cases: int = CASES) -> List[Row]:
    """Measure the time per case for int16 and float32 images, with one process and with two."""
    missing = [name for name in ('nnunetv2', 'nibabel', 'SimpleITK') if importlib.util.find_spec(name) is None]
    if missing:
        print(
            f'nnunet: skipped, {", ".join(missing)} is not installed here (see benchmarks/nnunet.py)', file=sys.stderr
        )
        return []
    table: List[Row] = []
    for dtype in ('int16', 'float32'):
        with tempfile.TemporaryDirectory() as folder:
            make(folder, dtype, cases)
            table += _reading(folder, dtype, cases, rounds)
            for processes in (1, 2):
                table += _commands(folder, dtype, cases, processes, max(2, rounds // 2))
    return table


def _smooth(rng: np.random.Generator, size: float) -> np.ndarray:
    from scipy.ndimage import zoom

    coarse = rng.normal(size=[max(2, int(length / size)) for length in SHAPE])
    whole = zoom(coarse, [length / n for length, n in zip(SHAPE, coarse.shape)], order=1)
    return np.asarray(whole)


def make(folder: str, dtype: str, cases: int) -> None:
    """Write a data set with valid labels, two channels and three classes."""
    import json

    import nibabel

    for name in ('imagesTr', 'labelsTr'):
        os.mkdir(os.path.join(folder, name))
    affine = np.diag([1.5, 1.5, 1.5, 1.0])
    for case in range(cases):
        rng = np.random.default_rng(case)
        inside = _smooth(rng, 40) > -0.3
        for channel in range(CHANNELS):
            image = np.where(inside, 800 + 300 * _smooth(rng, 6) + rng.normal(size=SHAPE) * 20, 0).astype(dtype)
            nibabel.save(nibabel.Nifti1Image(image, affine), f'{folder}/imagesTr/c{case}_{channel:04d}.nii.gz')
        organs = _smooth(rng, 20)
        label = (inside * ((organs > 0.4).astype(np.uint8) + (organs > 0.8))).astype(np.uint8)
        nibabel.save(nibabel.Nifti1Image(label, affine), f'{folder}/labelsTr/c{case}.nii.gz')
    content = dict(
        channel_names={str(channel): 'MR' for channel in range(CHANNELS)},
        labels={'background': 0, 'organ': 1, 'lesion': 2},
        numTraining=cases,
        file_ending='.nii.gz',
    )
    with open(os.path.join(folder, 'dataset.json'), 'w') as file:
        json.dump(content, file)


def _reading(folder: str, dtype: str, cases: int, rounds: int) -> List[Row]:
    """Measure the time per case in a running process: nnU-Net's two functions and our scan, without a pool."""
    from nnunetv2.experiment_planning.verify_dataset_integrity import check_cases, verify_labels
    from nnunetv2.imageio.simpleitk_reader_writer import SimpleITKIO

    from mmguard.formats import volumes as volume
    from mmguard.formats.format import scan_here
    from mmguard.nnunet.format import CaseSource

    labels = [f'{folder}/labelsTr/c{case}.nii.gz' for case in range(cases)]
    images = [[f'{folder}/imagesTr/c{case}_{c:04d}.nii.gz' for c in range(CHANNELS)] for case in range(cases)]

    def theirs() -> None:
        for label in labels:
            assert verify_labels(label, SimpleITKIO, [0, 1, 2])
        for image, label in zip(images, labels):
            assert check_cases(image, label, CHANNELS, SimpleITKIO)

    def ours() -> None:
        assert not CaseSource(folder).scan(scan_here).facts.values

    def by_zlib() -> None:
        with _without(volume, 'find_gzip_decoder', lambda: None):
            ours()

    took = interleaved({'theirs': theirs, 'ours': ours, 'zlib': by_zlib}, rounds)
    per_case = {name: time / cases for name, time in took.items()}
    return [
        Row(f'nnU-Net, {dtype}: a case, in a running process', per_case['ours'], per_case['theirs'], BAR),
        Row(f'nnU-Net, {dtype}: the same by zlib (no imagecodecs)', per_case['zlib'], per_case['theirs'], None),
    ]


@contextlib.contextmanager
def _without(module: Any, name: str, instead: Callable[[], Optional[Any]]) -> Any:
    kept = getattr(module, name)
    setattr(module, name, instead)
    try:
        yield
    finally:
        setattr(module, name, kept)


def _commands(folder: str, dtype: str, cases: int, processes: int, rounds: int) -> List[Row]:
    """Measure both commands as a user runs them, including the start of processes."""
    import subprocess

    commands: Dict[str, List[str]] = {
        'theirs': [
            '-c',
            'import sys; from nnunetv2.experiment_planning.verify_dataset_integrity import verify_dataset_integrity\n'
            "if __name__ == '__main__': verify_dataset_integrity(sys.argv[1], int(sys.argv[2]))",
            folder,
            str(processes),
        ],
        'ours': ['-m', 'mmguard.cli', 'scan', folder, '--processes', str(processes)],
    }

    def run(words: List[str]) -> Callable[[], None]:
        def call() -> None:
            subprocess.run([sys.executable, *words], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

        return call

    took = interleaved({name: run(words) for name, words in commands.items()}, rounds)
    what = f'nnU-Net, {dtype}: {cases} cases, whole command, {processes} process{"es" * (processes > 1)}, per case'
    return [Row(what, took['ours'] / cases, took['theirs'] / cases, BAR)]


def main() -> int:
    parser = argparse.ArgumentParser(prog='benchmarks.nnunet', description=__doc__)
    parser.add_argument('--cases', type=int, default=CASES)
    parser.add_argument('--rounds', type=int, default=5)
    args = parser.parse_args()
    table = rows('cpu', args.rounds, args.cases)
    for row in table:
        bar = '' if row.bar is None else f', bar {row.bar:g}: {"holds" if row.holds else "MISSED"}'
        print(f'{row.what}: {row.ours:.1f} ms against {row.peer:.1f} ms, ratio {row.figure:.3f}{bar}')
    return 0 if all(row.holds for row in table) else 1


if __name__ == '__main__':
    sys.exit(main())
