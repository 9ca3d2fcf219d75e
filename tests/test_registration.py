from __future__ import annotations

import ast
import importlib
from pathlib import Path
from typing import Dict

import pytest
from mmengine.registry import Registry
from put_file import put
from warm import run_beside_torch

import mmguard
from mmguard.losses import mmdet as det_losses
from mmguard.losses import mmseg as seg_losses


def python(code: str, *path: str) -> str:
    """Runs code where torch alone is imported, with folders in front of its path."""
    setup = f'import sys; sys.path[:0] = {list(path)!r}\n'
    done = run_beside_torch(setup + code)
    assert done.returncode == 0, done.stderr
    return done.stderr + done.stdout  # what the code prints comes last, behind other warnings


@pytest.mark.parametrize(
    ('scope', 'kind', 'name', 'expected'),
    [
        ('mmengine', 'MODELS', 'GuardedCrossEntropyLoss', seg_losses.GuardedCrossEntropyLoss),
        ('mmengine', 'MODELS', 'mmdet.GuardedCrossEntropyLoss', det_losses.GuardedCrossEntropyLoss),
        ('mmseg', 'MODELS', 'GuardedCrossEntropyLoss', seg_losses.GuardedCrossEntropyLoss),
        ('mmseg', 'MODELS', 'mmseg.GuardedCrossEntropyLoss', seg_losses.GuardedCrossEntropyLoss),
        ('mmseg', 'MODELS', 'mmdet.GuardedCrossEntropyLoss', det_losses.GuardedCrossEntropyLoss),
        ('mmdet', 'MODELS', 'GuardedCrossEntropyLoss', det_losses.GuardedCrossEntropyLoss),
        ('mmdet', 'MODELS', 'mmdet.GuardedCrossEntropyLoss', det_losses.GuardedCrossEntropyLoss),
        ('mmdet', 'MODELS', 'mmseg.GuardedCrossEntropyLoss', seg_losses.GuardedCrossEntropyLoss),
        ('mmseg', 'MODELS', 'GuardedLoss', seg_losses.GuardedLoss),
        ('mmdet', 'MODELS', 'mmseg.GuardedLoss', seg_losses.GuardedLoss),
        ('mmdet', 'MODELS', 'GuardedLoss', det_losses.GuardedLoss),
        ('mmengine', 'MODELS', 'GuardedLoss', mmguard.GuardedLoss),
        ('mmseg', 'TRANSFORMS', 'GuardSegLabels', mmguard.GuardSegLabels),
        ('mmdet', 'TRANSFORMS', 'GuardSegLabels', mmguard.GuardSegLabels),
        ('mmdet', 'HOOKS', 'LabelGuardHook', mmguard.LabelGuardHook),
    ],
)
def test_the_bare_word_and_the_scoped_word_work_in_every_scope(
    scope: str, kind: str, name: str, expected: type
) -> None:
    for framework in ('mmseg', 'mmdet'):
        pytest.importorskip(f'{framework}.registry')
    registry: Registry = getattr(importlib.import_module(f'{scope}.registry'), kind)
    assert registry.get(name) is expected


@pytest.mark.parametrize('later', ['mmengine.runner', 'mmseg.registry', 'mmdet.models', 'mmcv.cnn'])
def test_mmguard_may_be_imported_first(later: str) -> None:
    """As in a script that begins with it: ``custom_imports`` finds it imported, and does nothing."""
    if later != 'mmengine.runner':
        pytest.importorskip(later)
    out = python(
        f'import mmguard.nn\nassert not any(name.startswith("mmengine") for name in sys.modules)\nimport {later}\n'
        'from mmengine.registry import HOOKS, MODELS\n'
        'print(HOOKS.get("LabelGuardHook").__name__, MODELS.get("GuardedLoss").__name__)'
    )
    assert out.splitlines()[-1].split() == ['LabelGuardHook', 'RootGuardedLoss']


def test_importing_adds_nothing_heavy_to_mmengine_and_mmcv() -> None:
    out = python(
        'import mmengine.runner, mmcv.transforms\n'
        'before = set(sys.modules)\n'
        'import mmguard\n'
        'added = {m: getattr(sys.modules[m], "__file__", None) or "" for m in set(sys.modules) - before}\n'
        'print(sorted(m for m, file in added.items() if "site-packages" in file and not m.startswith("mmguard")))'
    )
    added = ast.literal_eval(out.strip().splitlines()[-1])
    frameworks = {m for m in added if m.split('.')[0] in ('mmseg', 'mmdet')}
    assert all('registry' in m or m.count('.') == 0 or m.endswith('version') for m in frameworks)
    assert len(added) - len(frameworks) < 10, added


#: Packages of the runtime, of which a training may load anything.
RUNTIME = {
    *('compat', 'distributed', 'errors', 'files', 'functional', 'hooks', 'labels', 'language', 'log', 'losses', 'nn'),
    *('registration', 'text', 'transforms', 'version'),
}
#: Lines that a clean training may load beside the runtime.
MOST_LINES = 2500


def packages_of_a_training(root: str, folder: Path, guard: bool) -> Dict[str, Dict[str, int]]:
    """Package -> its modules that a real training has loaded, with their lines: of a config file with a base."""
    out = python(
        'from mmengine.config import Config\n'
        'from small_runs import GUARD, LOAD, PACK, add_loop, dataset_config, runner_of, tiny_config\n'
        f'root, folder, guard = {root!r}, {str(folder)!r}, {guard}\n'
        'pipeline = [*LOAD, PACK] if guard else [*LOAD, PACK, GUARD]\n'
        'config = tiny_config(root, folder, iters=2, pipeline=pipeline)\n'
        'add_loop(config, "val")\n'
        'config.val_dataloader.dataset = dataset_config(root, "train", pipeline)\n'
        'config.model.decode_head.loss_decode.type = "CrossEntropyLoss" if guard else "GuardedCrossEntropyLoss"\n'
        'config.custom_hooks = [dict(type="EMAHook")]\n'
        'object.__setattr__(config, "_format_python_code", False)\n'
        'config.dump(f"{folder}/base.py")\n'
        'hook = f"dict(type=\'LabelGuardHook\', guard={guard})"\n'
        'own = f"_base_ = \'base.py\'\\ncustom_hooks = [*_base_.custom_hooks, {hook}]\\n"\n'
        'open(f"{folder}/own.py", "w").write("custom_imports = dict(imports=[\'mmguard\'])\\n" + own)\n'
        'runner_of(Config.fromfile(f"{folder}/own.py")).train()\n'
        'loaded = {}\n'
        'for name, module in sys.modules.items():\n'
        '    if name.startswith("mmguard."):\n'
        '        lines = len(open(module.__file__).readlines())\n'
        '        loaded.setdefault(name.split(".")[1], {})[name] = lines\n'
        'print(loaded)',
        str(Path(__file__).parent),
    )
    loaded: Dict[str, Dict[str, int]] = ast.literal_eval(out.splitlines()[-1])
    return loaded


@pytest.mark.slow
@pytest.mark.parametrize('guard', [False, True])
def test_a_clean_training_loads_the_runtime_and_the_start_check(
    guard: bool, clean_cityscapes: str, tmp_path: Path
) -> None:
    loaded = packages_of_a_training(clean_cityscapes, tmp_path, guard)
    assert set(loaded) - RUNTIME == {'config'}
    assert 'mmguard.config.agreement' in loaded['config']
    assert ('mmguard.config.guarded_pipelines' in loaded['config']) == guard
    assert sum(loaded['config'].values()) <= MOST_LINES


@pytest.mark.slow
def test_an_offence_loads_the_rules_but_no_command_and_no_format(cityscapes: str, tmp_path: Path) -> None:
    loaded = packages_of_a_training(cityscapes, tmp_path, guard=False)
    assert set(loaded) - RUNTIME == {'config', 'entry_points', 'facts', 'findings', 'nnunet'}
    assert {name.rpartition('.')[0] for name in loaded['nnunet']} <= {
        'mmguard',
        'mmguard.nnunet',
        'mmguard.nnunet.rules',
    }


@pytest.mark.parametrize('label', [2, 7])
def test_a_loop_without_an_offence_loads_no_rule(label: int) -> None:
    out = python(
        'import torch, mmguard.detection, mmguard.distributed\n'
        'from mmguard.functional import check_target\n'
        'from mmguard.nn import CrossEntropyLoss\n'
        'scores = torch.zeros(2, 3, requires_grad=True)\n'
        f'target = torch.tensor([0, {label}])\n'
        'CrossEntropyLoss()(scores, target).backward()\n'
        'mmguard.detection.guard_targets([dict(boxes=torch.ones(1, 4), labels=target[:1])], num_classes=3)\n'
        'try:\n'
        '    check_target(scores, target)\n'
        'except ValueError:\n'
        '    pass\n'
        'print([m for m in sys.modules if m.startswith(("mmguard.findings", "mmguard.config", "mmguard.commands"))])'
    )
    assert (out.splitlines()[-1] == '[]') == (label == 2)


def test_without_the_frameworks_transforms_hook_and_losses_are_there() -> None:
    out = python(
        'sys.modules["mmseg"] = sys.modules["mmdet"] = None\n'
        'import mmguard, torch\n'
        'from mmengine.registry import HOOKS, MODELS, TRANSFORMS\n'
        'mmguard.register()\n'
        'loss = MODELS.build(dict(type="GuardedCrossEntropyLoss"))\n'
        'print(loss(torch.zeros(2, 3), torch.tensor([0, 7])).item())\n'
        'print(TRANSFORMS.get("GuardSegLabels").__name__, HOOKS.get("LabelGuardHook").__name__)'
    )
    assert '1.098' in out
    assert out.split()[-2:] == ['GuardSegLabels', 'LabelGuardHook']


@pytest.mark.parametrize('broken', ['mmseg', 'mmdet'])
def test_a_broken_install_of_one_framework_leaves_the_other_guarded(broken: str, tmp_path: Path) -> None:
    package = tmp_path / broken
    put(package / '__init__.py', "assert False, 'MMCV==2.2.0 is used but incompatible'\n")
    other = {'mmseg': 'mmdet', 'mmdet': 'mmseg'}[broken]
    pytest.importorskip(f'{other}.registry')
    out = python(
        f'import mmguard\nfrom {other}.registry import MODELS\n'
        'print(MODELS.module_dict["GuardedCrossEntropyLoss"].__module__)',
        str(tmp_path),
    )
    assert all(named in out for named in (f'mmguard.losses.{other}', broken, 'MMCV==2.2.0'))


def test_a_broken_mmcv_leaves_losses_hook_and_commands(tmp_path: Path) -> None:
    put(tmp_path / 'mmcv' / '__init__.py', "raise ImportError('libGL.so.1: cannot open shared object file')\n")
    out = python(
        'import mmguard, mmguard.cli\nmmguard.register()\n'
        'print(mmguard.GuardedLoss.__name__, hasattr(mmguard, "GuardSegLabels"))',
        str(tmp_path),
    )
    assert out.split()[-2:] == ['RootGuardedLoss', 'False']
    assert all(named in out for named in ('mmcv', 'libGL.so.1'))


def test_a_broken_mmengine_leaves_the_command_that_says_so(tmp_path: Path) -> None:
    put(tmp_path / 'mmengine' / '__init__.py', "raise ImportError('cannot import name Registry')\n")
    out = python(
        'import mmguard, mmguard.cli\nprint(hasattr(mmguard, "GuardedLoss"))\n'
        'print(mmguard.cli.main(["env", "--no-import"]))',
        str(tmp_path),
    )
    assert out.startswith('False')
    assert 'stack' in out


@pytest.mark.parametrize('first', ['mmguard.nn', 'mmengine'])
def test_an_mmengine_that_lacks_something_is_imported_all_the_same(first: str, tmp_path: Path) -> None:
    (tmp_path / 'mmengine').mkdir()
    for name in ('__init__', 'runner'):
        (tmp_path / 'mmengine' / f'{name}.py').touch()
    out = python(f'import {first}, mmguard.nn, mmengine.runner\nprint("imported")', str(tmp_path))
    assert out.split()[-1] == 'imported'
    assert 'mmengine' in out


def test_without_mmengine_the_pure_parts_import() -> None:
    out = python(
        'sys.modules.update(mmengine=None, mmcv=None, mmseg=None, mmdet=None, cv2=None, rich=None, yaml=None)\n'
        'import mmguard, mmguard.functional, mmguard.labels.rules, mmguard.findings, torch\n'
        'loss, counts = mmguard.functional.softmax_cross_entropy(torch.zeros(2, 3), torch.tensor([0, 7]))\n'
        'print(counts.tolist(), hasattr(mmguard, "GuardedLoss"))'
    )
    assert '[2, 1, 0] False' in out
