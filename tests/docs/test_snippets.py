"""Every block of code in README and docs/ is run: pasted into a real config, executed, or typed.

A program needs what stands around it in a reader's loop: ``loop()`` has that, real tensors and a small module.
"""

from __future__ import annotations

import ast
import importlib
import json
import re
import shlex
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Dict, Iterator, List

import pytest
import torch
from coco_cases import ann, coco, write
from doc_pages import ROOT, Block, blocks, pages, text_of
from torch import nn
from volume_facts import HAS_NNUNET

from mmguard.cli import _build_parser, main
from mmguard.loops import TallyLog

PYTHON = blocks('python')
#: How a block of Python begins that another test runs, where its packages are.
RUN_ELSEWHERE = (
    'targets = guard_targets(',  # tests/peers/test_transformers.py
    "targets = [{'class_labels': c,",
    'from nnunetv2.training',  # tests/nnunet/test_example_nnunet.py
    'import torch.nn.functional as F\nfrom nnunetv2',
    'from lightning.pytorch import',  # tests/test_lightning.py
    'from rfdetr.training import',  # tests/test_rfdetr_training.py
    'import mmguard\n\nlog = mmguard.read_log(',  # test_log_page.py
    "import json\n\nwith open('train.json')",  # test_datasets_page.py
    '# test_trainer.py\nimport json\n',  # tests/nnunet/test_nnunet_properties.py
    '# test_data.py\nimport torch\n',  # torchvision and a project of the reader's; the functions: tests/properties
)
#: What a line in a shell starts with, beside mmguard: tools that are not installed with it.
OTHER_TOOLS = (
    'pip install',
    'make ',
    'nnUNetv2_train',
    'eval "$(mmguard nnunet)"',
    'python tools/train.py',
    'mim train',
    'jq ',
    'git ',
    'cd ',
)


def is_config(block: Block) -> bool:
    """It sets what a config sets, at its top."""
    names = {getattr(t, 'id', '') for node in ast.parse(block.code).body for t in getattr(node, 'targets', ())}
    return bool(names & {'_base_', 'custom_hooks', 'custom_imports'}) or block.code.startswith('model = dict(')


CONFIGS = [block for block in PYTHON if is_config(block)]
PROGRAMS = [block for block in PYTHON if not is_config(block) and not block.code.startswith(RUN_ELSEWHERE)]


# ---- configs


def folder_of_configs(folder: Path) -> Path:
    """The files that the pages call ``my_*.py``."""
    from mmguard.compat.stack import build_base_source

    for name, stock in (
        ('my_config.py', 'mmseg::fcn/fcn_r50-d8_4xb2-40k_cityscapes-512x1024.py'),
        ('my_fcn.py', 'mmseg::fcn/fcn_r50-d8_4xb2-40k_cityscapes-512x1024.py'),
        ('my_pidnet.py', 'mmseg::pidnet/pidnet-s_2xb6-120k_1024x1024-cityscapes.py'),
        ('my_retinanet.py', 'mmdet::retinanet/retinanet_r50_fpn_1x_coco.py'),
        ('my_rtmdet.py', 'mmdet::rtmdet/rtmdet_s_8xb32-300e_coco.py'),
        ('my_voc.py', 'mmdet::pascal_voc/faster-rcnn_r50_fpn_1x_voc0712.py'),
    ):
        (folder / name).write_text(f'_base_ = [{build_base_source(stock)}]\n')
    return folder


@pytest.fixture(scope='module')
def configs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip('mmseg')
    pytest.importorskip('mmdet')
    return folder_of_configs(tmp_path_factory.mktemp('configs'))


def pasted(block: Block, folder: Path) -> Any:
    """The config with the block in it, read as a training reads it.

    A whole one stands for itself; a part goes into a config that inherits, and a ``guard`` to the place that the
    comment names: last in both pipelines.
    """
    from mmengine.config import Config

    base = 'my_retinanet.py' if 'bbox_head' in block.code else 'my_fcn.py'
    code = block.code if '_base_' in block.code else f'_base_ = {base!r}\n{block.code}'
    if 'guard = ' in code and 'train_dataloader' not in code:
        code += (
            'train_dataloader = dict(dataset=dict(pipeline=[*_base_.train_pipeline, guard]))\n'
            'val_dataloader = dict(dataset=dict(pipeline=[*_base_.test_pipeline, guard]))\n'
            'test_dataloader = val_dataloader\n'
        )
    path = folder / f'pasted_{Path(block.page).stem}_{block.line}.py'
    path.write_text(code)
    return Config.fromfile(str(path))


def builds(config: Any) -> None:
    """Hooks, losses and pipelines, through the registries."""
    import mmengine

    import mmguard  # noqa: F401

    scope = config.default_scope
    mmengine.registry.init_default_scope(scope)
    for hook in config.get('custom_hooks', ()):
        mmengine.registry.HOOKS.build(hook)
    for loss in found(config.model, 'loss_decode', 'loss_cls'):
        mmengine.registry.MODELS.build(loss)
    for loader in (config.train_dataloader, config.val_dataloader):
        steps = list(found(loader, 'pipeline'))
        assert steps
        for step in steps:
            mmengine.registry.TRANSFORMS.build(step)


def found(tree: Any, *keys: str) -> Iterator[Any]:
    """What stands under these keys, wherever in a config; of a list its entries."""
    for key, value in tree.items() if isinstance(tree, dict) else ((None, one) for one in tree):
        if key in keys:
            yield from value if isinstance(value, (list, tuple)) else [value]
        elif isinstance(value, (dict, list, tuple)):
            yield from found(value, *keys)


@pytest.mark.slow
@pytest.mark.parametrize('block', CONFIGS, ids=lambda block: block.name)
def test_a_config_can_be_pasted(block: Block, configs: Path) -> None:
    config = pasted(block, configs)
    builds(config)
    steps = [step['type'] for step in found(config.train_dataloader, 'pipeline')]
    if {'GuardSegLabels', 'GenerateEdge'} <= set(steps):  # no edge is drawn around an invalid pixel
        assert steps.index('GuardSegLabels') < steps.index('GenerateEdge')


@pytest.mark.slow
@pytest.mark.parametrize(
    'block', [block for block in CONFIGS if 'GuardSegLabels' in block.code], ids=lambda block: block.name
)
def test_what_was_pasted_trains_on_invalid_labels(block: Block, configs: Path, cityscapes: str, work_dir: str) -> None:
    from small_runs import shrink, train

    run = train(shrink(pasted(block, configs), cityscapes, work_dir, iters=2))
    assert run.lines()
    assert run.lines('val')  # validation is guarded, too


@pytest.mark.slow
@pytest.mark.parametrize(
    'block',
    [block for block in CONFIGS if 'GuardInstanceLabels' in block.code and 'model = ' in block.code],
    ids=lambda block: block.name,
)
def test_what_was_pasted_trains_a_detector_on_invalid_labels(block: Block, configs: Path, tmp_path: Path) -> None:
    from small_det_data import expected_samples, make_coco, make_voc
    from small_det_runs import faults_in, shrink
    from small_runs import train

    family, make = ('faster_rcnn', make_voc) if 'my_voc.py' in block.code else ('mask_rcnn', make_coco)
    root, config = make(str(tmp_path / 'data')), pasted(block, configs)
    run = train(shrink(config, root, str(tmp_path / 'run'), data_classes=23 if make is make_voc else 83))
    samples = [sample for line in run.lines() for sample in line['samples']]
    assert len(samples) == len(expected_samples(faults_in(family, root)))


# ---- programs


def loop() -> Dict[str, Any]:
    """What a training loop has by the time that the lines of a page stand in it."""
    torch.manual_seed(0)
    target = torch.randint(0, 5, (2, 8, 8))
    boxes = torch.tensor([[0.4, 0.4, 0.5, 0.5]])
    batch = [(torch.zeros(3, 8, 8), {'boxes': boxes, 'labels': torch.tensor([1]), 'image_id': i}) for i in (1, 2)]
    images, targets = ([pair[place] for pair in batch] for place in (0, 1))
    return {
        'logits': torch.randn(2, 5, 8, 8, requires_grad=True),
        'target': target,
        'class_weight': torch.ones(5),
        'images': images,
        'targets': targets,
        'loader': [(images, targets)],
        'losses': {'loss': torch.ones(1, requires_grad=True).sum()},
        'metric_logger': SimpleNamespace(update=lambda **values: None),
        'outputs': SimpleNamespace(loss_dict={'loss_vfl': torch.ones(1, requires_grad=True).sum()}),
    }


class Detector(nn.Module):
    """A model of one weight, called as a detector in training."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(1))

    def forward(self, images: Any, targets: Any) -> Dict[str, torch.Tensor]:
        return {'loss_cls': self.weight.sum(), 'loss_box': 2 * self.weight.sum()}


class Segmenter(nn.Module):
    """A model of one weight, called as one of transformers."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(5))

    def forward(self, pixel_values: torch.Tensor) -> Any:
        return SimpleNamespace(logits=self.weight[None, :, None, None].expand(2, 5, 4, 4))


def write_maps(folder: Path) -> None:
    """Label maps of twelve classes, one of them with a value beyond."""
    Image = pytest.importorskip('PIL.Image')
    folder.mkdir(parents=True)
    for number in range(4):
        label = Image.new('L', (16, 16), number)
        label.paste(40 if number == 3 else 11, (0, 0, 4, 4))
        label.save(folder / f'{number}.png')


@pytest.mark.parametrize('block', PROGRAMS, ids=lambda block: block.name)
def test_a_program_runs(block: Block, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    needed = re.findall(r'^(?:import|from) (mmengine|mmseg|pandas)\b', block.code, re.MULTILINE)
    for package in (*needed, *(['matplotlib'] if '.plot(' in block.code else [])):
        pytest.importorskip(package)
    if 'my_config.py' in block.code:
        pytest.importorskip('mmseg')
        folder_of_configs(tmp_path)
    if "dict(type='Guarded" in block.code:
        pytest.importorskip('mmdet')
    if 'from PIL' in block.code:
        pytest.importorskip('PIL')
    if 'mmguard.scan(' in block.code:
        pytest.importorskip('pandas')
        write_maps(tmp_path / 'data' / 'camvid' / 'trainannot')
    if 'from mmguard.losses' in block.code:  # an example registers its guard: not for the tests behind this one
        pytest.importorskip('mmseg')
        guards = importlib.import_module('mmguard.losses.guards')
        monkeypatch.setattr(guards, 'GUARD_BY_NAME', dict(guards.GUARD_BY_NAME))
    # The line that docs/log.md shows, in the file that its lines read.
    lines = [json.loads(shown.code) for shown in blocks('json') if shown.page == 'docs/log.md']
    (tmp_path / 'label_guard.jsonl').write_text('\n'.join(map(json.dumps, lines)))
    names = {'__name__': '__main__', **loop()}
    names['model'] = Segmenter() if 'pixel_values' in block.code else Detector()
    names['optimizer'] = torch.optim.SGD(names['model'].parameters(), lr=0.1)
    names['batch'] = {'pixel_values': torch.zeros(2, 3, 8, 8), 'labels': names['target']}
    exec(compile(block.code, block.name, 'exec'), names)


@pytest.mark.parametrize('block', blocks('json'), ids=lambda block: block.name)
def test_a_line_of_a_log_is_one(block: Block) -> None:
    assert {'mode', 'iter', 'samples'} <= json.loads(block.code).keys()


# ---- a shell


def typed() -> List[str]:
    """Every line of a block that is typed into a shell, once."""
    found: Dict[str, None] = {}
    for block in blocks('bash') + blocks(''):
        lines = [line[2:] if line.startswith('$ ') else line for line in block.code.splitlines()]
        shown = block.language == '' and not any(re.match(r'(mmguard|pip|make|python|mim|jq) ', line) for line in lines)
        if not shown:
            starts = re.compile(r'(mmguard|pip|make|python|mim|jq|eval|nnUNetv2_train|git) ')
            kept = (line for line in lines if block.language == 'bash' or starts.match(line))
            found.update(dict.fromkeys(line.partition('  #')[0].strip() for line in kept if line.strip()))
    return list(found)


#: Line -> its exit code, in the folder that ``workshop`` fills.
TYPED = {
    'mmguard scan data/camvid/trainannot --num-classes 11': 1,
    'mmguard explain train.log': 1,
    'mmguard report work_dirs/retinanet': 1,
    'mmguard scan train.json --framework rt-detr --num-classes 3': 0,
    'mmguard apply my_config.py -o guarded.py': 0,
}
#: Run in tests/commands, tests/nnunet and test_datasets_page.py, where their data are.
READ_ALONE = (
    'mmguard env',
    'mmguard demo --data',
    'mmguard scan stock.py',
    'mmguard scan coco8/data.yaml',
    'mmguard fix coco8/data.yaml --out fixed --edit safe',
    'mmguard fix coco8/data.yaml --out fixed --num-classes 80',
    'mmguard scan my_config.py --split train --processes 16',
    'mmguard fix first/train.json --out fixed/first --classes cat,dog,car',
    'mmguard fix second/train.json --out fixed/second --classes cat,dog,car',
    'mmguard scan /data/labels --num-classes 19 --dask scheduler:8786',
    'mmguard replay CONFIG work_dirs/x/20260101_120000/label_guard_flight.jsonl',
    'mmguard scan $nnUNet_raw/Dataset001_X',
    'mmguard dry-run configs/my_fcn.py',
    'mmguard report $nnUNet_results/Dataset001_X/nnUNetTrainerGuarded__nnUNetPlans__3d_fullres/fold_0',
)


@pytest.fixture(scope='module')
def workshop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with what the lines name: labels, a COCO file, a log that ends in an error, the folder of a run."""
    Image = pytest.importorskip('PIL.Image')
    folder = tmp_path_factory.mktemp('workshop')
    (folder / 'data/camvid/trainannot').mkdir(parents=True)
    label = torch.arange(12, dtype=torch.uint8).repeat(12, 1).numpy()
    for number in range(3):
        Image.fromarray(label).save(folder / f'data/camvid/trainannot/000{number}.png')
    log = 'Traceback (most recent call last):\n  File "train.py", line 9, in <module>\n    loss.backward()\n'
    (folder / 'train.log').write_text(log + 'RuntimeError: CUDA error: device-side assert triggered\n')
    boxes = [ann(label, 0, label, (4, 4, 9, 9)) for label in range(3)]
    write(folder, coco(boxes, 1, [f'class {label}' for label in range(3)], 0))
    from mmguard import Tally

    TallyLog(str(folder / 'work_dirs/retinanet'), num_classes=264).write(
        1, [Tally(total=4, skipped=1, values={264: 1}, source='000001.jpg')]
    )
    return folder


@pytest.mark.parametrize('line', TYPED)
def test_a_line_can_be_typed(
    line: str, workshop: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture
) -> None:
    monkeypatch.chdir(workshop)
    if ' apply ' in line:
        pytest.importorskip('mmseg')
        folder_of_configs(workshop)
    if '.json' in line:
        pytest.importorskip('msgspec')
    assert main(shlex.split(line)[1:]) == TYPED[line], ''.join(capfd.readouterr())


def test_every_line_is_run_or_known() -> None:
    lines = {line for line in typed() if not line.startswith(OTHER_TOOLS)}
    assert lines == {*TYPED, *READ_ALONE}


@pytest.mark.parametrize('block', blocks('yaml'), ids=lambda block: block.name)
def test_commands_of_a_workflow_are_understood(block: Block) -> None:
    lines = re.findall(r'(?:run|entry): mmguard (.*)$', block.code, re.MULTILINE)
    hooks = re.findall(r'- id: mmguard-(\w+)\n(?: +args: \[(.*)\])?', block.code)
    lines += [f'{command} {arguments.replace(",", "") or "a_file.py"}' for command, arguments in hooks]
    assert lines
    assert {_build_parser().parse_args(shlex.split(line)).command for line in lines} <= {'scan', 'check'}


def test_every_target_of_make_is_there() -> None:
    makefile = (ROOT / 'Makefile').read_text(encoding='utf-8')
    targets = set(re.findall(r'^([a-z-]+):', makefile, re.MULTILINE)) | {'test-lab', 'test-onedl', 'test-torch'}
    named = {target for page in pages() for target in re.findall(r'(?:^|`)make ([a-z-]+)', text_of(page), re.MULTILINE)}
    assert named
    assert named - targets == set()


def test_every_command_in_a_sentence_is_one() -> None:
    named = {name for page in pages() for name in re.findall(r'`mmguard ([a-z][\w-]*)', text_of(page))}
    (parsers,) = [action for action in _build_parser()._actions if action.dest == 'command']
    commands = set(parsers.choices or ())
    assert sorted(named - commands) == ([] if HAS_NNUNET else ['nnunet'])
    assert commands - named == set()
