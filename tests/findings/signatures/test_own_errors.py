"""Errors that mmguard itself raises are known to `mmguard explain`, each by the line that raises it."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any, Callable, Iterator, Tuple

import numpy as np
import pytest
import torch
from explained_logs import catch_traceback, check_known, explain_log, find_code, format_traceback

import mmguard
from mmguard.detection import guard_targets
from mmguard.functional import check_target
from mmguard.labels.rules import LabelRule
from mmguard.nn import CrossEntropyLoss

ROOT = Path(mmguard.__file__).parent
#: Packages in which a training calls mmguard.
PACKAGES = ('functional', 'losses', 'nn', 'transforms', 'labels', 'detection')
SCORES = torch.rand(2, 3, 4, 4)
LABELS = torch.zeros(2, 4, 4, dtype=torch.long)


def read_text(node: ast.AST) -> str:
    """Return the text of a string in the source, with a number for each value in it."""
    if isinstance(node, ast.JoinedStr):
        return ''.join(str(part.value) if isinstance(part, ast.Constant) else '3' for part in node.values)
    return str(node.value) if isinstance(node, ast.Constant) else 'a message'


def list_raised() -> Iterator[Tuple[str, str, int, str]]:
    """Yield file, first line of the statement, its number and error of every ``raise`` of these packages."""
    for path in sorted(path for package in PACKAGES for path in (ROOT / package).rglob('*.py')):
        source = path.read_text(encoding='utf-8')
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
                func = node.exc.func
                name = func.id if isinstance(func, ast.Name) else getattr(func, 'attr', '_')
                if name == 'ImportError':  # caught where it is raised: one line of the log
                    continue
                kind = name if name[0].isupper() else 'mmguard.labels.tally.LabelGuardError'
                text = read_text(node.exc.args[0]) if node.exc.args else ''
                line = source.splitlines()[node.lineno - 1].strip()
                yield str(path.relative_to(ROOT.parent)), line, node.lineno, f'{kind}: {text}'


@pytest.mark.parametrize(
    ('file', 'line', 'error'),
    [pytest.param(file, line, error, id=f'{file}:{number}') for file, line, number, error in list_raised()],
)
def test_every_error_of_the_runtime_is_known(file: str, line: str, error: str) -> None:
    frames = (('/home/me/train.py', 'loss = criterion(x, y)'), (f'/usr/lib/python3/site-packages/{file}', line))
    assert find_code(format_traceback(error, *frames)) == ('MG372' if 'LabelGuardError' in error else 'MG373')


def build(registry: str, **config: Any) -> Any:
    pytest.importorskip('mmengine')
    import mmengine.registry

    from mmguard.registration import register_all

    register_all()

    return getattr(mmengine.registry, registry).build(config)


@pytest.mark.parametrize(
    ('code', 'first', 'call'),
    [
        ('MG372', '', lambda: LabelRule(11, on_invalid='raise').sanitize(np.full((4, 4), 11, np.uint8))),
        ('MG372', '', lambda: check_target(SCORES, LABELS + 7)),
        ('MG373', 'target-form', lambda: CrossEntropyLoss()(SCORES, LABELS.float())),
        ('MG373', 'target-form', lambda: check_target(SCORES, LABELS[:, None])),
        ('MG373', 'target-form', lambda: CrossEntropyLoss()(LABELS, SCORES)),
        ('MG373', 'argument', lambda: LabelRule(11, on_invalid='true')),
        ('MG373', 'argument', lambda: build('TRANSFORMS', type='GuardSegLabels', num_classes='11')),
        ('MG373', 'argument', lambda: build('HOOKS', type='LabelGuardHook', max_skipped_ratio=3)),
        ('MG373', '', lambda: guard_targets([LABELS], 3)),
    ],
)
def test_an_error_of_mmguard_is_explained(code: str, first: str, call: Callable[[], Any]) -> None:
    check_known(code, first, call)


def test_an_error_of_torch_below_mmguard_is_not_one_of_mmguard() -> None:
    lines = (('/usr/lib/site-packages/mmguard/functional/softmax.py', 'return F.cross_entropy(logits, target)'),)
    found = explain_log(format_traceback('TypeError: cross_entropy_loss(): argument must be Tensor, not list', *lines))
    assert found.signature is None or found.signature.code != 'MG373'


def test_the_message_of_a_data_worker_is_known() -> None:
    class Broken(torch.utils.data.Dataset):
        def __len__(self) -> int:
            return 1

        def __getitem__(self, index: int) -> Any:
            return LabelRule(3, on_invalid='raise').sanitize(np.full((4, 4), 7, np.uint8))

    loader = torch.utils.data.DataLoader(Broken(), num_workers=1)  # type: ignore[var-annotated]
    assert find_code(catch_traceback(lambda: next(iter(loader)))) == 'MG372'
