"""The time of scan and fix grows with the number of names, not with its square."""

from __future__ import annotations

import time
from pathlib import Path
from timeit import timeit
from typing import Callable, Dict

import pytest
from coco_cases import ann, coco, write
from pictures import picture
from put_file import put
from voc_cases import obj, xml

from mmguard.cli import main

pytest.importorskip('PIL')


def write_yolo(root: Path, names: int) -> str:
    put(root / 'images/a.jpg', picture())
    put(root / 'labels/a.txt', '0 .5 .5 .1 .1\n')
    listed = ','.join(f'name_{number % (names - 1)}' for number in range(names))
    return str(put(root / 'data.yaml', f'train: images\nval: images\nnames: [{listed}]\n').parent)


def write_coco(root: Path, names: int) -> str:
    twice = [f'{"Name" if n % 2 else "name"} {n // 2}' for n in range(names)]  # written differently
    return write(root, coco([ann(number, category=number) for number in range(names)], 1, twice, 0))


def write_voc(root: Path, names: int) -> str:
    put(root / 'Annotations/a.xml', xml(*(obj(f'n{number}') for number in range(names))))
    return str(root)


FORMATS: Dict[str, Callable[[Path, int], str]] = {'yolo': write_yolo, 'coco': write_coco, 'voc': write_voc}


@pytest.mark.parametrize('command', ['scan', 'fix'])
@pytest.mark.parametrize('name', FORMATS)
def test_the_time_grows_with_the_names(name: str, command: str, tmp_path: Path) -> None:
    def run(names: int) -> float:
        target = FORMATS[name](tmp_path / f'{names}', names)
        words = ['-o', str(tmp_path / f'out{names}')] if command == 'fix' else []
        return timeit(lambda: main([command, target, *words]), timer=time.process_time, number=1)

    run(10)  # what is imported
    few, many = run(1500), run(24_000)
    assert many < 48 * few, (few, many)
