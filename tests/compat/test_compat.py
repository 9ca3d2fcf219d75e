"""Names of PyTorch that are not public, and OpenMMLab's packages next to their forks."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any, Iterator, List

import pytest
import torch
from warm import run_beside_torch

import mmguard
from mmguard.compat.stack import (
    INSTALL,
    STACKS,
    build_base_source,
    find_config_file,
    find_module_folder,
    install_command,
    weighs_ignored_labels,
)
from mmguard.compat.torch_names import is_compiling, is_fake, outlives_call

PACKAGE = Path(mmguard.__file__).parent
COMPAT = 'compat/torch_names.py'
#: Of the parts that compute: no code that one device runs and another does not.
COMPUTING = ('detection', 'functional', 'nn')


def private_names(source: str) -> List[str]:
    """Names of torch with a part that begins with an underscore: imported, or reached by attributes."""
    return [name for name in _names_of_torch(ast.parse(source)) if _is_private(name)]


def _is_private(name: str) -> bool:
    return any(part.startswith('_') and not part.startswith('__') for part in name.split('.')) or '.ops.aten' in name


def _names_of_torch(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or '').split('.')[0] == 'torch':
            yield from (f'{node.module}.{alias.name}' for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name.split('.')[0] == 'torch')
        elif isinstance(node, ast.Attribute):
            name = _dotted(node)
            if name.split('.')[0] in ('torch', 'forward_ad', 'F'):
                yield name
        elif isinstance(node, ast.Call) and _dotted(node.func) in ('getattr', 'hasattr', 'setattr', 'delattr'):
            owner, name = _dotted(node.args[0]), node.args[1]
            if owner.split('.')[0] == 'torch' and isinstance(name, ast.Constant):
                yield f'{owner}.{name.value}'


def _dotted(node: ast.AST) -> str:
    if isinstance(node, ast.Attribute):
        return f'{_dotted(node.value)}.{node.attr}'
    return node.id if isinstance(node, ast.Name) else ''


def test_private_names_stand_in_one_module() -> None:
    found = {str(path.relative_to(PACKAGE)): private_names(path.read_text()) for path in PACKAGE.rglob('*.py')}
    assert len(found) > 100
    assert {path: names for path, names in found.items() if names and path != COMPAT} == {}
    assert 0 < len(set(found[COMPAT])) <= 4


@pytest.mark.parametrize(
    'line',
    [
        'import torch._dynamo',
        'from torch.nn import _reduction',
        'from torch._subclasses import FakeTensor',
        'from torch.autograd import forward_ad\nforward_ad._current_level',
        'import torch\ntorch._C._len_torch_dispatch_stack()',
        'import torch\ntorch.ops.aten.nll_loss2d_backward',
        "import torch\ngetattr(torch._C, '_functorch', None)",
        "import torch\nhasattr(torch, '_dynamo')",
    ],
)
def test_the_check_sees_them(line: str) -> None:
    assert private_names(line)
    assert not private_names(
        'import torch\ntorch.compiler.is_compiling()\ntorch.nn.functional.cross_entropy\nself._counts'
    )


def test_no_branch_on_the_device() -> None:
    paths = [path for part in COMPUTING for path in (PACKAGE / part).rglob('*.py')]
    assert len(paths) > 10
    for path in paths:
        attributes = {node.attr for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Attribute)}
        assert not attributes & {'is_cuda', 'is_cpu', 'is_mps', 'is_xpu'}, path
        assert '.device.type' not in path.read_text(), path


#: Name -> how it is taken away in a process of its own, before mmguard is imported.
TAKEN_AWAY = {
    'torch.compiler.is_compiling, as before 2.3': "sys.modules['torch.compiler'] = None",
    'torch._utils.is_compiling, as in 1.13': (
        "sys.modules['torch.compiler'] = None\nimport torch._utils\nvars(torch._utils).pop('is_compiling', None)"
    ),
    'FakeTensor, as in 1.13': "sys.modules['torch._subclasses.fake_tensor'] = None",
}
TRAINS = """
import torch
from mmguard.nn import CrossEntropyLoss
from mmguard.compat.torch_names import is_compiling, is_fake, outlives_call
assert not is_compiling() and not is_fake(torch.ones(1)) and outlives_call(torch.ones(1))
criterion = CrossEntropyLoss()
logits = torch.randn(4, 3, requires_grad=True)
for _ in range(2):
    criterion(logits, torch.tensor([0, 1, 7, 2])).backward()
print(criterion.tally().total, criterion.tally().skipped, logits.grad[2].abs().sum().item())
"""


@pytest.mark.parametrize('name', TAKEN_AWAY)
def test_a_name_that_is_missing(name: str) -> None:
    code = f'import sys, torch\n{TAKEN_AWAY[name]}\n{TRAINS}'
    ended = run_beside_torch(code)
    assert ended.stdout == '8 2 0.0\n', ended.stderr


def test_what_outlives_a_call() -> None:
    assert outlives_call(torch.ones(3))
    assert not outlives_call(torch.ones(3, device='meta'))
    assert not is_compiling()
    func = pytest.importorskip('torch.func')
    seen = []
    func.vmap(lambda x: (seen.append(outlives_call(x)), x)[1])(torch.ones(2, 3))
    func.grad(lambda x: (seen.append(outlives_call(x)), x.sum())[1])(torch.ones(3))
    with pytest.importorskip('torch._subclasses.fake_tensor').FakeTensorMode() as mode:
        fake = mode.from_tensor(torch.ones(3))
        seen += [outlives_call(fake), not is_fake(fake)]
    assert seen == [False] * 4


PIDNET = 'mmseg::pidnet/pidnet-s_2xb6-120k_1024x1024-cityscapes.py'
RETINANET = 'mmdet::retinanet/retinanet_r50_fpn_1x_coco.py'


def test_both_stacks_name_the_same_modules() -> None:
    modules = [set(names) for names in STACKS.values()]
    assert modules[0] == modules[1]
    assert {stack: set(words) for stack, words in INSTALL.items()} == dict.fromkeys(STACKS, modules[0])
    # Neither is left out where it is not known which one somebody has.
    assert all(word in install_command('mmcv') for word in ('mim install', 'onedl-mmcv'))


def test_a_path_stays_as_it_is() -> None:
    assert find_config_file('configs/mine.py') == 'configs/mine.py'


def test_a_framework_that_is_not_there() -> None:
    with pytest.raises(ModuleNotFoundError) as caught:
        find_config_file('no_such_framework::a/b.py')
    assert caught.value.name == 'no_such_framework'
    assert find_module_folder('no_such_framework') is None


@pytest.mark.parametrize('name', [PIDNET, RETINANET])
def test_a_shipped_config_is_found_and_inherited_from(name: str, tmp_path: Path) -> None:
    pytest.importorskip(name[:5])
    from mmengine.config import Config

    file = find_config_file(name)
    assert eval(build_base_source(name)) == file
    mine = tmp_path / 'mine.py'
    mine.write_text(f'_base_ = [{build_base_source(name)}]\n')
    assert Config.fromfile(mine).to_dict() == Config.fromfile(file).to_dict()


def test_the_short_name_gives_the_same_where_it_resolves() -> None:
    pytest.importorskip('mmdet')
    from mmengine.config import Config

    from mmguard.commands.apply.output import remove_scopes

    short = Config.fromstring(f'_base_ = [{RETINANET!r}]', '.py').to_dict()
    assert remove_scopes(short) == Config.fromfile(find_config_file(RETINANET)).to_dict()


def test_a_config_that_is_not_shipped() -> None:
    pytest.importorskip('mmseg')
    with pytest.raises(FileNotFoundError, match=r'none\.py'):
        find_config_file('mmseg::pidnet/none.py')


def test_whether_ignored_labels_weigh_is_what_the_loss_that_is_here_does() -> None:
    pytest.importorskip('mmseg')
    import torch
    from mmseg.models.losses import CrossEntropyLoss

    scores, label = torch.randn(2, 3, generator=torch.Generator().manual_seed(0)), torch.tensor([0, 2])
    weight = [1.0, 1.0, 9.0]
    loss = CrossEntropyLoss(class_weight=weight)(scores, label, ignore_index=2)
    sums = torch.nn.functional.cross_entropy(scores[:1], label[:1], reduction='sum')
    torch.testing.assert_close(loss, sums / (10.0 if weighs_ignored_labels() else 1.0))


def bases(path: Path) -> Any:
    tree = ast.parse(path.read_text(encoding='utf-8'))
    found = [n.value for n in tree.body if isinstance(n, ast.Assign) and getattr(n.targets[0], 'id', '') == '_base_']
    return [] if not found else found[0].elts if isinstance(found[0], ast.List) else [found[0]]


def test_no_config_to_copy_has_a_name_that_only_one_stack_resolves() -> None:
    """onedl's mmengine resolves ``mmdet::``, whose distribution it does not ask for, but not ``mmseg::``."""
    configs = sorted(Path(__file__).parents[2].glob('configs/**/*.py'))
    named = [element for path in configs for element in bases(path)]
    assert len(named) >= 9
    texts = [element.value for element in named if isinstance(element, ast.Constant)]
    assert [text for text in texts if text.startswith('mmseg::')] == []
    assert len(texts) < len(named)
