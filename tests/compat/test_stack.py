"""What is asked of both OpenMMLab stacks, on the one that is here."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

import pytest

from mmguard.compat.stack import (
    INSTALL,
    STACKS,
    base_source,
    config_file,
    folder_of,
    ignored_labels_weigh,
    install_words,
)

PIDNET = 'mmseg::pidnet/pidnet-s_2xb6-120k_1024x1024-cityscapes.py'
RETINANET = 'mmdet::retinanet/retinanet_r50_fpn_1x_coco.py'


def test_both_stacks_name_the_same_modules() -> None:
    modules = [set(names) for names in STACKS.values()]
    assert modules[0] == modules[1]
    assert {stack: set(words) for stack, words in INSTALL.items()} == dict.fromkeys(STACKS, modules[0])
    # Neither is left out where it is not known which one somebody has.
    assert all(word in install_words('mmcv') for word in ('mim install', 'onedl-mmcv'))


def test_a_path_stays_as_it_is() -> None:
    assert config_file('configs/mine.py') == 'configs/mine.py'


def test_a_framework_that_is_not_there() -> None:
    with pytest.raises(ModuleNotFoundError) as caught:
        config_file('no_such_framework::a/b.py')
    assert caught.value.name == 'no_such_framework'
    assert folder_of('no_such_framework') is None


@pytest.mark.parametrize('name', [PIDNET, RETINANET])
def test_a_shipped_config_is_found_and_inherited_from(name: str, tmp_path: Path) -> None:
    pytest.importorskip(name[:5])
    from mmengine.config import Config

    file = config_file(name)
    assert eval(base_source(name)) == file
    mine = tmp_path / 'mine.py'
    mine.write_text(f'_base_ = [{base_source(name)}]\n')
    assert Config.fromfile(mine).to_dict() == Config.fromfile(file).to_dict()


def test_the_short_name_gives_the_same_where_it_resolves() -> None:
    pytest.importorskip('mmdet')
    from mmengine.config import Config

    from mmguard.tools.apply.output import without_scopes

    short = Config.fromstring(f'_base_ = [{RETINANET!r}]', '.py').to_dict()
    assert without_scopes(short) == Config.fromfile(config_file(RETINANET)).to_dict()


def test_a_config_that_is_not_shipped() -> None:
    pytest.importorskip('mmseg')
    with pytest.raises(FileNotFoundError, match=r'none\.py'):
        config_file('mmseg::pidnet/none.py')


def test_whether_ignored_labels_weigh_is_what_the_loss_that_is_here_does() -> None:
    pytest.importorskip('mmseg')
    import torch
    from mmseg.models.losses import CrossEntropyLoss

    scores, label = torch.randn(2, 3, generator=torch.Generator().manual_seed(0)), torch.tensor([0, 2])
    weight = [1.0, 1.0, 9.0]
    loss = CrossEntropyLoss(class_weight=weight)(scores, label, ignore_index=2)
    sums = torch.nn.functional.cross_entropy(scores[:1], label[:1], reduction='sum')
    torch.testing.assert_close(loss, sums / (10.0 if ignored_labels_weigh() else 1.0))


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
