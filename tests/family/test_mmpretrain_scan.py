"""`mmguard scan` of the data sets of mmpretrain: lines, folders, several labels, and what it says where nothing is."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Tuple

import pytest
from mmengine.config import Config
from small_cls import CLASSES, IMAGES, PLANTED, cls_config, make_images, make_multi, make_single, name_of

from mmguard.cli import main

Output = Any


def scanned(config: Config, folder: Path, capsys: Output, *options: str) -> Tuple[int, str]:
    """Exit code and what is shown."""
    file = folder / 'config.py'
    config.dump(str(file))
    capsys.readouterr()
    code = main(['scan', str(file), *options])
    shown = capsys.readouterr()
    return code, ' '.join((shown.out + shown.err).split())


def test_a_line_out_of_range_is_named(tmp_path: Path, capsys: Output) -> None:
    code, text = scanned(cls_config(make_single(tmp_path / 'data'), tmp_path), tmp_path, capsys)
    assert code == 1
    for number, label in PLANTED.items():
        assert re.search(rf'train\.txt\D+{number + 1}\b.*{name_of(number)} {label}\b', text)
    assert "dict(type='GuardClsLabels', num_classes=3)" in text


def test_clean_lines(tmp_path: Path, capsys: Output) -> None:
    assert scanned(cls_config(make_single(tmp_path / 'data', {}), tmp_path), tmp_path, capsys)[0] == 0


def test_a_folder_that_is_no_class_of_the_head(tmp_path: Path, capsys: Output) -> None:
    """Folders are numbered by their names, so the fourth moves the others, too."""
    root = tmp_path / 'data'
    make_images(root)
    for number in range(IMAGES):
        folder = root / 'images' / (*CLASSES, 'cow')[number % 4]
        folder.mkdir(exist_ok=True)
        (root / 'images' / name_of(number)).rename(folder / name_of(number))
    config = cls_config(root, tmp_path, dataset=dict(type='CustomDataset'))
    code, text = scanned(config, tmp_path, capsys)
    assert code == 1
    assert re.search(r'MG108 .*\bdog\b', text)
    assert f'images/dog/{name_of(1)}: 3' in text
    out = tmp_path / 'out.py'
    assert main(['apply', str(tmp_path / 'config.py'), '-o', str(out), '--scan', '--edit', '1', '--quiet']) == 0
    written = Config.fromfile(str(out))
    assert written.model.head.num_classes == written.data_preprocessor.num_classes == 4
    assert main(['scan', str(out)]) == 0


def test_several_labels_of_an_image(tmp_path: Path, capsys: Output) -> None:
    config = cls_config(
        make_multi(tmp_path / 'data'),
        tmp_path,
        head=dict(type='MultiLabelLinearClsHead'),
        dataset=dict(type='MultiLabelDataset', ann_file='train.json'),
    )
    code, text = scanned(config, tmp_path, capsys)
    assert code == 1
    assert f'images/{name_of(1)}: 1, 2, 3' in text
    assert re.search(rf'\b{2 * IMAGES + len(PLANTED)} .*\b{len(PLANTED)} ', text)


def test_lines_that_are_none_are_named_and_do_not_end_the_scan(tmp_path: Path, capsys: Output) -> None:
    root = make_single(tmp_path / 'data')
    (root / 'train.txt').write_text('00.png\n01.png one\n\n02.png 2\n', encoding='utf-8')
    code, text = scanned(cls_config(root, tmp_path), tmp_path, capsys)
    assert code == 1
    assert set(re.findall(r'train\.txt: line (\d)', text)) >= {'1', '2', '3'}
    assert "'one'" in text


def test_images_that_are_not_there(tmp_path: Path, capsys: Output) -> None:
    root = make_single(tmp_path / 'data', {})
    (root / 'images' / name_of(4)).unlink()
    code, text = scanned(cls_config(root, tmp_path), tmp_path, capsys)
    assert (code, name_of(4) in text) == (1, True)


@pytest.mark.parametrize('what', ['no file', 'an empty file', 'no folder of classes', 'a type that nobody knows'])
def test_code_is_not_0_where_nothing_was_read(what: str, tmp_path: Path, capsys: Output) -> None:
    root = make_single(tmp_path / 'data')
    config = cls_config(root, tmp_path)
    if what == 'no file':
        (root / 'train.txt').unlink()
    elif what == 'an empty file':
        (root / 'train.txt').write_text('', encoding='utf-8')
    elif what == 'no folder of classes':
        config.train_dataloader.dataset.ann_file = ''
    else:
        config.train_dataloader.dataset.type = 'MyOwnDataset'
    assert scanned(config, tmp_path, capsys)[0] == 2


def test_nothing_is_fetched(tmp_path: Path, capsys: Output) -> None:
    config = cls_config(tmp_path, tmp_path, dataset=dict(type='CIFAR10'))
    assert scanned(config, tmp_path, capsys)[0] == 2
    assert not any((tmp_path / 'images').glob('*.tar*'))
