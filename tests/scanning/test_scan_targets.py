"""What is no data set and no config is said to be none, with exit code 2; nothing of it is run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Dict, List, Tuple

import pytest
from put_file import put
from scans import codes, scan

from mmguard.cli import main

pytest.importorskip('rich')

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
    'script.py': (SCRIPT, 'script'),
    'train.py': (MAIN, 'torch'),
    'lazy.py': (LAZY, 'detectron2'),
    'data.yaml': (YOLO, 'YOLO'),
    'faster.yaml': (DETECTRON, 'detectron2'),
    'rtdetr.yml': (RTDETR, 'RT-DETR'),
    'pidnet.yaml': (HRNET, 'PIDNet'),
    'other.yaml': ('lr: 3\n', 'lr'),
}
#: Of frameworks that are not guarded; each names what can be done all the same.
NO_CONFIGS.update(
    {
        'model.yaml': ('nc: 3\nbackbone: []\nhead: []\n', 'data.yaml'),
        'args.yaml': ('task: detect\nmode: train\ndata: own.yaml\nbatch: 4\n', '`data`'),
        'monai.yaml': ('bundle_root: .\nnetwork_def:\n  _target_: UNet\n', 'dataset.json'),
        'lightning.yaml': ('trainer:\n  max_epochs: 3\nmodel:\n  class_path: my.Model\n', 'check_target'),
        'hydra.yaml': ('defaults:\n- model: unet\n', 'check_target'),
        'paddle.yml': ('iters: 9\ntrain_dataset:\n  type: Dataset\nmodel:\n  type: BiSeNet\n', 'check_target'),
        'typeless.py': (
            "open({ran!r}, 'w')\nmodel = dict(head=dict(type='Head'))\noptimizer = dict(type='SGD')\n",
            'check_target',
        ),
        'loop.py': ("import lightning\nopen({ran!r}, 'w')\n", 'check_target'),
        'yolo.py': ("from ultralytics import YOLO\nopen({ran!r}, 'w')\n", 'data.yaml'),
    }
)
COMMANDS: Dict[str, List[str]] = {'scan': [], 'check': [], 'apply': ['-o', 'guarded.py']}


@pytest.mark.parametrize('command', sorted(COMMANDS))
@pytest.mark.parametrize('name', sorted(NO_CONFIGS))
def test_no_config_is_not_run_and_what_it_looks_like_is_named(
    command: str, name: str, tmp_path: Path, capsys: pytest.CaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip('mmengine')
    monkeypatch.chdir(tmp_path)
    text, looks = NO_CONFIGS[name]
    (tmp_path / name).write_text(text.format(ran=str(tmp_path / 'ran')) if name.endswith('.py') else text)
    assert main([command, name, *COMMANDS[command]]) == 2
    said = capsys.readouterr().err
    if name == 'rtdetr.yml' and command != 'apply':  # it is read, with what it includes
        assert 'coco.yml' in said
    elif (command, name) == ('scan', 'data.yaml'):  # and so is this
        assert 'images/train' in said
    else:
        assert name in said
        assert looks in said
    assert sorted(path.name for path in tmp_path.iterdir()) == [name]  # nothing was run, nothing written


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
    from mmguard.config.recognition import check_is_config

    (tmp_path / 'config.py').write_text(text)
    check_is_config(str(tmp_path / 'config.py'))


def test_a_coco_json_is_no_config(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    pytest.importorskip('mmengine')
    (tmp_path / 'coco.json').write_text(json.dumps(dict(images=[], annotations=[], categories=[])))
    assert main(['check', str(tmp_path / 'coco.json')]) == 2
    assert '`mmguard scan`' in capsys.readouterr().err


@pytest.mark.parametrize(
    ('names', 'looks'), [([], ''), (['a.nrrd', 'b.nrrd'], '.nrrd'), (['a.json'], 'COCO'), (['a.mat'], '.mat')]
)
def test_a_folder_of_which_nothing_is_read(
    names: List[str], looks: str, tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    folder = tmp_path / 'labels' / 'train'
    folder.mkdir(parents=True)
    for name in names:
        (folder / name).write_text('0 0.5 0.5 0.25 0.125\n1 0.1 0.1 0.2 0.2\n')
    assert main(['scan', str(tmp_path / 'labels'), '--num-classes', '2']) == 2
    assert looks in capsys.readouterr().err


@pytest.mark.parametrize('layout', ['{kind}/train', 'train/{kind}'])
def test_a_data_set_of_yolo(layout: str, tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    for kind, names in (('images', ['0.jpg', '1.jpg']), ('labels', ['0.txt', '1.txt', 'classes.txt'])):
        for name in names:
            # An image without objects has an empty text.
            text = {'1.txt': '0 0.5 0.5 0.25 0.125\n', 'classes.txt': 'cat\ndog\n'}.get(name, '')
            put(tmp_path / layout.format(kind=kind) / name, text)
    reported = scan(capsys, tmp_path, '--num-classes', '2')
    assert (reported['code'], reported['facts']['files'], reported['facts']['total']) == (1, 2, 1)  # not 'classes.txt'
    assert 'MG132' in codes(reported)  # the images are texts


def test_a_suffix_that_fits_no_name(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    from label_files import BLOCKS, write

    write(tmp_path / 'a.png', BLOCKS)
    assert main(['scan', str(tmp_path), '--suffix', '_trainIds.png']) == 2
    said = capsys.readouterr().err
    assert '_trainIds.png' in said
    assert 'a.png' in said


@pytest.mark.parametrize(
    ('text', 'looks'),
    [
        ('[{"image_id": 1, "category_id": 1, "bbox": [1, 2, 3, 4], "score": 0.5}]', 'predictions'),
        ('[1, 2]', 'list'),
        ('{"lr": 1}', 'lr'),
        ('{}', 'empty'),
        ('{"images": [], "annotations": [], "categories": []}', 'annotations'),
    ],
)
def test_a_json_of_which_nothing_is_read(text: str, looks: str, tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    (tmp_path / 'a.json').write_text(text)
    assert main(['scan', str(tmp_path / 'a.json'), '--num-classes', '2']) == 2
    assert looks in capsys.readouterr().out


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
    assert '`mmguard scan`' in capsys.readouterr().err
    assert main(['check', 'coco.yml']) == 1
    assert 'MG162' in capsys.readouterr().out


OWN_SETS = """
import torch
from mmdet.registry import DATASETS as DET
from mmengine.dataset import BaseDataset
from mmseg.registry import DATASETS as SEG


class Plain(torch.utils.data.Dataset):
    def __init__(self, root): pass
    def __len__(self): return 3
    def __getitem__(self, place): return dict(target=torch.zeros(4, 4))


class Listed(BaseDataset):
    METAINFO = dict(classes=('a', 'b'))
    def load_data_list(self):
        return [dict(img_path='a.jpg', instances=[dict(bbox=[1, 2, 20, 30], bbox_label=7, ignore_flag=0)])]


SEG.register_module(name='PlainSet', force=True)(Plain)
DET.register_module(name='PlainSet', force=True)(Plain)
DET.register_module(name='ListedSet', force=True)(Listed)
"""


@pytest.mark.parametrize(
    ('scope', 'dataset', 'step'),
    [
        ('mmseg', "dict(type='PlainSet', root='.')", 'check_target'),
        ('mmdet', "dict(type='PlainSet', root='.')", 'guard_targets'),
        ('mmdet', "dict(type='ListedSet', pipeline=[])", 'mmguard trace'),
    ],
)
def test_a_data_set_of_the_users_own_is_not_called_broken(
    scope: str, dataset: str, step: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    pytest.importorskip(scope)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / 'own_sets_of_test.py').write_text(OWN_SETS)
    (tmp_path / 'config.py').write_text(
        f"default_scope = {scope!r}\ncustom_imports = dict(imports=['own_sets_of_test'])\n"
        f"model = dict(type='M', decode_head=dict(type='FCNHead', num_classes=2))\n"
        f'train_dataloader = dict(batch_size=2, dataset={dataset})\n'
    )
    assert main(['scan', 'config.py']) == 2
    captured = capsys.readouterr()
    assert step in captured.out + captured.err
    # What has samples as mmengine's data sets have can be traced.
    assert main(['trace', 'config.py', '--num-classes', '2']) == (1 if 'Listed' in dataset else 2)


@pytest.mark.parametrize(
    ('images', 'labels'),
    [
        ('{}', '{}annot'),
        ('{}', '{}_labels'),
        ('{}/images', '{}/masks'),
    ],
)
@pytest.mark.parametrize('splits', [('train', 'val', 'test'), ('train', 'valid')])
def test_every_split_of_a_root_is_read(
    images: str, labels: str, splits: Tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    from label_files import BLOCKS, write

    root = tmp_path / 'data'
    for split in splits:
        for number in range(2):
            write(root / labels.format(split) / f'{split}{number}.png', BLOCKS)
            write(root / images.format(split) / f'{split}{number}.jpg', BLOCKS, 'RGB')
    code = main(['scan', str(root), '--num-classes', '9', '--json', str(tmp_path / 'scan.json')])
    sets = json.loads((tmp_path / 'scan.json').read_text())['datasets']
    assert [one['facts']['files'] for one in sets] == [2] * len(splits), capsys.readouterr().out
    assert [Path(one['name']).relative_to(root).as_posix() for one in sets] == [labels.format(s) for s in splits]
    assert code == 0
    assert main(['scan', str(root), '--num-classes', '9', '--split', 'train']) == 0
    assert f'{splits[1]}0' not in capsys.readouterr().out
    assert main(['fix', str(root), '--num-classes', '2', '--out', str(tmp_path / 'fixed')]) == 0
    assert len(list((tmp_path / 'fixed').rglob('*.png'))) == 2 * len(splits)


def test_without_num_classes_the_advice_is_to_pass_it(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    from label_files import BLOCKS, write

    write(tmp_path / 'a.png', BLOCKS)
    (unknown,), (known,) = (scan(capsys, tmp_path, *more)['findings'] for more in ((), ('--num-classes', '5')))
    assert [one['code'] for one in (unknown, known)] == ['MG100', 'MG100']
    assert '--num-classes' in unknown['advice']
    assert 'trace' not in unknown['advice']
    assert '--images' in known['advice']  # before one looks elsewhere
