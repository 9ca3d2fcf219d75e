"""Files of programs that are not read: what they are is said, and what to do."""

from __future__ import annotations

from pathlib import Path
from typing import Dict, Tuple

import numpy as np
import pytest
from PIL import Image

from mmguard.cli import main

#: Place of a file -> what is in it, and what is said.
FILES: Dict[str, Tuple[bytes, str]] = {
    'Annotations/train/7.xml': (
        b'<annotation><filename>7.jpg</filename><folder>a</folder><imagesize><nrows>9</nrows></imagesize>'
        b'<object><name>cat</name><polygon><pt><x>1</x><y>1</y></pt></polygon></object></annotation>',
        'XML of the LabelMe of MIT',
    ),
    'annotations/train.json': (
        b'{"dm_format_version": "1.0", "categories": {"label": {"labels": []}}, "items": [{"annotations": []}]}',
        'JSON of Datumaro',
    ),
    'annotations/train-annotations-bbox.csv': (
        b'ImageID,Source,LabelName,Confidence\na,x,/m/01,1\n',
        'csv of OpenImages',
    ),
    'trainval/7.mat': (b'MATLAB 5.0 MAT-file, Platform: GLNXA64' + bytes(100), 'pascal_context.py'),
}  # fmt: skip


@pytest.mark.parametrize('name', sorted(FILES))
def test_what_they_are_is_said(name: str, tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    content, said = FILES[name]
    file = tmp_path / 'set' / name
    file.parent.mkdir(parents=True)
    file.write_bytes(content)
    (tmp_path / 'set/a.csv').write_text('name,number\n')
    (tmp_path / 'set/images').mkdir()
    Image.fromarray(np.zeros((48, 64, 3), np.uint8)).save(tmp_path / 'set/images/7.jpg')
    for target in (tmp_path / 'set', file.parent, file):
        assert main(['scan', str(target)]) == 2
        assert said in capsys.readouterr().err, target
        assert main(['fix', str(target), '--out', str(tmp_path / 'fixed')]) == 2
        assert said in capsys.readouterr().err, target
    assert not (tmp_path / 'fixed').exists()


@pytest.mark.parametrize('name', sorted(FILES))
def test_label_maps_beside_them_are_read(name: str, tmp_path: Path) -> None:
    (tmp_path / Path(name).name).write_bytes(FILES[name][0])
    Image.fromarray(np.zeros((48, 64), np.uint8)).save(tmp_path / 'a.png')
    assert main(['scan', str(tmp_path), '--num-classes', '2', '--suffix', '.png']) in (0, 1)
    if not name.endswith('.xml'):  # among which label maps are no label maps without being asked for
        assert main(['scan', str(tmp_path), '--num-classes', '2']) in (0, 1)
