"""The time of scan and fix grows with the number of names, not with its square."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any, Callable, Dict

import pytest
from coco_cases import ann, coco, write
from PIL import Image
from voc_cases import obj, xml

from mmguard.cli import main


def write_yolo(root: Path, names: int) -> str:
    for folder in ('images', 'labels'):
        (root / folder).mkdir(parents=True)
    Image.new('RGB', (48, 32)).save(root / 'images/a.jpg')
    (root / 'labels/a.txt').write_text('0 .5 .5 .1 .1\n')
    listed = ','.join(f'name_{number % (names - 1)}' for number in range(names))
    (root / 'data.yaml').write_text(f'train: images\nval: images\nnames: [{listed}]\n')
    return str(root)


def write_coco(root: Path, names: int) -> str:
    root.mkdir()
    twice = [f'{"Name" if n % 2 else "name"} {n // 2}' for n in range(names)]  # written differently
    return write(root, coco([ann(number, category=number) for number in range(names)], 1, twice, 0))


def write_voc(root: Path, names: int) -> str:
    (root / 'Annotations').mkdir(parents=True)
    (root / 'Annotations/a.xml').write_text(xml(*(obj(f'n{number}') for number in range(names))))
    return str(root)


FORMATS: Dict[str, Callable[[Path, int], str]] = {
    'yolo': write_yolo,
    'coco': write_coco,
    'voc': write_voc,
}


def seconds(call: Callable[[], Any]) -> float:
    start = time.process_time()
    call()
    return time.process_time() - start


@pytest.mark.parametrize('command', ['scan', 'fix'])
@pytest.mark.parametrize('name', FORMATS)
def test_the_time_grows_with_the_names(name: str, command: str, tmp_path: Path) -> None:
    def run(names: int) -> float:
        target = FORMATS[name](tmp_path / f'{names}', names)
        words = ['-o', str(tmp_path / f'out{names}')] if command == 'fix' else []
        return seconds(lambda: main([command, target, *words]))

    run(10)  # what is imported
    few, many = run(1500), run(24_000)
    assert many < 48 * few, (few, many)
