"""What is no data set and no config is said to be none, with exit code 2; nothing of it is run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Dict, List

import pytest

from mmguard.cli import main

SCRIPT = "open({ran!r}, 'w').close()\nmodel = dict(layers=3)\ndata = {{}}\n"
MAIN = "import torch\nopen({ran!r}, 'w').close()\nmodel = dict(type='Net')\nif __name__ == '__main__':\n    pass\n"
LAZY = (
    "from detectron2.config import LazyCall as L\nopen({ran!r}, 'w').close()\nmodel = L(dict)(type='GeneralizedRCNN')\n"
)
YOLO = 'train: images/train\nval: images/val\nnc: 2\nnames: [cat, dog]\n'
DETECTRON = '_BASE_: Base.yaml\nMODEL:\n  WEIGHTS: here\n'
RTDETR = "task: detection\n__include__: ['coco.yml']\nnum_classes: 3\n"
HRNET = 'DATASET:\n  DATASET: cityscapes\n  NUM_CLASSES: 6\nMODEL:\n  NAME: pidnet_small\n'

NO_CONFIGS = {
    'script.py': (SCRIPT, 'a script'),
    'train.py': (MAIN, 'a script (it imports torch)'),
    'lazy.py': (LAZY, 'detectron2'),
    'data.yaml': (YOLO, 'a data.yaml (YOLO)'),
    'faster.yaml': (DETECTRON, 'a config of detectron2'),
    'rtdetr.yml': (RTDETR, 'a config of RT-DETR, D-FINE or DEIM'),
    'pidnet.yaml': (HRNET, 'a config of HRNet, PIDNet or their like: scan its label files'),
    'other.yaml': ('lr: 3\n', 'the keys lr'),
}
COMMANDS: Dict[str, List[str]] = {'scan': [], 'check': [], 'apply': ['-o', 'guarded.py']}


@pytest.mark.parametrize('command', sorted(COMMANDS))
@pytest.mark.parametrize('name', sorted(NO_CONFIGS))
def test_no_config_is_not_run_and_said_to_be_none(
    command: str, name: str, tmp_path: Path, capsys: pytest.CaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip('mmengine')
    monkeypatch.chdir(tmp_path)
    text, looks = NO_CONFIGS[name]
    (tmp_path / name).write_text(text.format(ran=str(tmp_path / 'ran')) if name.endswith('.py') else text)
    assert main([command, name, *COMMANDS[command]]) == 2
    said = capsys.readouterr()
    if name == 'rtdetr.yml' and command != 'apply':  # it is read, with what it includes
        assert said.err == f'mmguard {command}: coco.yml cannot be read\n'
    elif (command, name) == ('scan', 'data.yaml'):  # and so is this
        assert 'images/train does not exist, which data.yaml names' in said.err
    else:
        assert f'{name} is no config of MMSegmentation or MMDetection' in said.err
        assert looks in said.err
    assert 'othing found' not in said.out + said.err
    assert sorted(path.name for path in tmp_path.iterdir()) == [name], 'nothing was run, nothing written'


@pytest.mark.parametrize(
    'text',
    [
        "_base_ = './base.py'\n",
        "default_scope = 'mmseg'\n",
        "model = dict(type='EncoderDecoder')\n",
        "if True:\n    model = {'type': 'EncoderDecoder'}\n",
        'from mmengine.config import read_base\nwith read_base():\n    from .base import *\n',
        "optim_wrapper = dict(type='OptimWrapper')\n",
        'data = dict(samples_per_gpu=2)\n',
        "train_pipeline = [dict(type='LoadImageFromFile')]\n",
        'train_dataloader = dict(batch_size=2)\n',
    ],
)
def test_configs_of_any_style_are_recognized(text: str, tmp_path: Path) -> None:
    from mmguard.config.recognized import check_is_config

    (tmp_path / 'config.py').write_text(text)
    check_is_config(str(tmp_path / 'config.py'))


def test_a_coco_json_is_no_config(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    pytest.importorskip('mmengine')
    (tmp_path / 'coco.json').write_text(json.dumps(dict(images=[], annotations=[], categories=[])))
    assert main(['check', str(tmp_path / 'coco.json')]) == 2
    assert '`mmguard scan` reads it' in capsys.readouterr().err


@pytest.mark.parametrize(
    ('names', 'looks'),
    [
        ([], 'holds no files'),
        (['a.nii.gz', 'b.nii.gz'], 'volumes (.nii.gz)'),
        (['a.json'], 'a file of COCO or LVIS is named itself'),
        (['a.mat'], 'Here are .mat'),
    ],
)
def test_a_folder_of_which_nothing_is_read(
    names: List[str], looks: str, tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    folder = tmp_path / 'labels' / 'train'
    folder.mkdir(parents=True)
    for name in names:
        (folder / name).write_text('0 0.5 0.5 0.25 0.125\n1 0.1 0.1 0.2 0.2\n')
    assert main(['scan', str(tmp_path / 'labels'), '--num-classes', '2']) == 2
    said = capsys.readouterr()
    assert 'nothing was read' in said.err
    assert looks in said.err
    assert 'Nothing found' not in said.out


@pytest.mark.parametrize('layout', ['{kind}/train', 'train/{kind}'])
def test_a_data_set_of_yolo(layout: str, tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    for kind, names in (('images', ['0.jpg', '1.jpg']), ('labels', ['0.txt', '1.txt', 'classes.txt'])):
        folder = tmp_path / layout.format(kind=kind)
        folder.mkdir(parents=True)
        for name in names:
            # An image without objects has an empty text.
            text = {'1.txt': '0 0.5 0.5 0.25 0.125\n', 'classes.txt': 'cat\ndog\n'}.get(name, '')
            (folder / name).write_text(text)
    assert main(['scan', str(tmp_path), '--num-classes', '2']) == 1
    said = capsys.readouterr().out
    assert '2 files; 1 instances' in said  # not 'classes.txt'
    assert 'cannot be decoded: ' in said  # the images are texts


def test_one_file_that_is_not_read(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    (tmp_path / 'a.nii.gz').write_text('0 0.5 0.5 0.25 0.125\n')
    assert main(['scan', str(tmp_path / 'a.nii.gz')]) == 2
    assert 'volumes (.nii.gz)' in capsys.readouterr().err


def test_a_suffix_that_fits_no_name(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    from label_files import BLOCKS, write

    write(tmp_path / 'a.png', BLOCKS)
    assert main(['scan', str(tmp_path), '--suffix', '_trainIds.png']) == 2
    assert 'No name ends with _trainIds.png (--suffix); the first is a.png' in capsys.readouterr().err


@pytest.mark.parametrize(
    ('text', 'looks'),
    [
        ('[{"image_id": 1, "category_id": 1, "bbox": [1, 2, 3, 4], "score": 0.5}]', "looks like predictions in COCO's"),
        ('[1, 2]', 'It is a list'),
        ('{"shapes": {}, "imagePath": "a.jpg"}', 'looks like a file of Labelme'),
        ('{"lr": 1}', 'its keys are lr'),
        ('{}', 'it is an empty object'),
        ('{"images": [], "annotations": [], "categories": []}', 'without images, annotations and categories'),
    ],
)
def test_a_json_of_which_nothing_is_read(text: str, looks: str, tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    (tmp_path / 'a.json').write_text(text)
    assert main(['scan', str(tmp_path / 'a.json'), '--num-classes', '2']) == 2
    said = ' '.join(capsys.readouterr().out.split())
    assert 'nothing was read. ' in said
    assert looks in said


def test_a_damaged_json_is_a_finding(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    (tmp_path / 'a.json').write_text('{"images": [')
    assert main(['scan', str(tmp_path / 'a.json')]) == 1
    assert 'MG132' in capsys.readouterr().out


def test_a_detr_yaml_with_its_loaders_is_not_taken_for_a_config_of_mmdet(
    tmp_path: Path, capsys: pytest.CaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip('mmengine')
    monkeypatch.chdir(tmp_path)
    loader = '  type: DataLoader\n  dataset:\n    type: CocoDetection\n    ann_file: train.json\n'
    Path('coco.yml').write_text(
        f'task: detection\nnum_classes: 5\nremap_mscoco_category: True\ntrain_dataloader:\n{loader}'
    )
    assert main(['apply', 'coco.yml', *COMMANDS['apply']]) == 2
    assert '`mmguard scan` reads it' in capsys.readouterr().err
    assert main(['check', 'coco.yml']) == 1
    assert 'MG162' in capsys.readouterr().out
