"""nan in nnU-Net's pseudo Dice: said of it is whether it comes and goes, or stands in every epoch."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Callable, List

import pytest
from explained_logs import explain_log, format_traceback
from volume_facts import voxels

from mmguard.cli import main
from mmguard.commands.explain.explanation import CONFIRMED, POSSIBLE, OutsideFacts, explain_text
from mmguard.commands.explain.reader import Reader
from mmguard.findings import diagnose

pytest.importorskip('rich')

Written = Callable[[int, str], str]


def v2(epoch: int, values: str) -> str:
    stamp = f'2026-01-01 12:{epoch // 60 % 60:02d}:{epoch % 60:02d}.123456: '
    return (
        f'{stamp}\n{stamp}Epoch {epoch}\n{stamp}train_loss -0.5\n{stamp}val_loss -0.6\n{stamp}Pseudo dice [{values}]\n'
    )


def numpy_2(epoch: int, values: str) -> str:
    return v2(epoch, ', '.join(f'np.float32({value})' for value in values.split(', ')))


def v1(epoch: int, values: str) -> str:
    said = f'2021-05-01 10:00:00.0: Average global foreground Dice: [{values}]\n'
    return f'\nepoch:  {epoch}\n{said}(interpret this as an estimate for the Dice of the different classes.)\n'


def log(epochs: int, nan_in: Callable[[int], List[int]], classes: int = 3, form: Written = v2) -> str:
    """A log in which some classes (from 1) have nan in an epoch."""
    return ''.join(
        form(epoch, ', '.join('nan' if k in nan_in(epoch) else f'0.{k}{epoch % 10}' for k in range(1, classes + 1)))
        for epoch in range(epochs)
    )


ALWAYS = [
    (log(25, lambda epoch: [2]), 'class 2 is nan in 25 of 25 epochs'),
    (log(3, lambda epoch: [1]), 'class 1 is nan in 3 of 3 epochs'),
    (log(1000, lambda epoch: [1, 3] if epoch % 2 else [3]), 'class 3 is nan in 1,000 of 1,000 epochs'),
    (log(40, lambda epoch: [1], 1, numpy_2), 'class 1 is nan in 40 of 40 epochs'),
    (log(60, lambda epoch: [7], 8, v1), 'class 7 is nan in 60 of 60 epochs'),
]
NOW_AND_THEN = [
    (log(25, lambda epoch: [2] if epoch % 5 == 0 else []), 'class 2 is nan in 5 of 25 epochs'),
    (log(6, lambda epoch: [1] if epoch else []), 'class 1 is nan in 5 of 6 epochs'),
    (log(200, lambda epoch: [3] if epoch == 17 else [], 3, numpy_2), 'class 3 is nan in 1 of 200 epochs'),
    (log(30, lambda epoch: [1] if epoch % 2 else [2], 2, v1), 'class 1 is nan in 15 of 30 epochs; the Dice of class 2'),
]


@pytest.mark.parametrize(('text', 'words'), ALWAYS)
def test_in_every_epoch_it_is_a_fault_of_the_labels(text: str, words: str) -> None:
    found = explain_log(text)
    assert found.signature.code == 'MG400'
    assert words in found.raised.text
    # A fold without the class shows the same.
    assert (found.causes[0].cause.key, found.causes[0].standing) == ('no-file-has-it', POSSIBLE)
    assert 'rare-class' not in [one.cause.key for one in found.causes]


@pytest.mark.parametrize(('text', 'words'), NOW_AND_THEN)
def test_now_and_then_it_is_harmless(text: str, words: str) -> None:
    assert explain_text([text]) is None
    assert words in Reader().read([text.encode()]).classes.summary


@pytest.mark.parametrize('pasted', ['Pseudo dice [nan, 0.91]', v1(3, '0.8, nan')])
def test_of_one_line_alone_both_are_said_the_harmless_one_first(pasted: str) -> None:
    found = explain_log(pasted)
    assert found.signature.code == 'MG400'
    assert 'rare' in found.causes[0].cause.text
    assert found.causes[1].standing == POSSIBLE


def test_of_a_few_pasted_lines_the_one_with_nan_is_the_error() -> None:
    found = explain_log(log(2, lambda epoch: [2]))
    assert found.raised.text.split('\n')[0] == 'Pseudo dice [0.10, nan, 0.30]'
    assert found.trouble.line == 5


def test_an_error_that_ended_the_training_comes_first() -> None:
    error = format_traceback('IndexError: Target 3 is out of bounds.', ('a.py', 'x'))
    assert explain_log(ALWAYS[0][0] + error).raised.kind == 'IndexError'


def test_labels_that_have_the_class_nowhere_confirm_it() -> None:
    known = OutsideFacts(tuple(diagnose(voxels({0: 40_000_000, 1: 900_000}))), read=frozenset({'files'}))
    found = explain_log(ALWAYS[0][0], known)
    assert found.causes[0].standing == CONFIRMED


@pytest.mark.parametrize(
    ('text', 'code', 'note'),
    [(ALWAYS[0][0], 1, False), (NOW_AND_THEN[0][0], 0, True), (log(4, lambda epoch: []), 0, False)],
)
def test_the_command_says_which(text: str, code: int, note: bool, tmp_path: Path, capsys: Any) -> None:
    (tmp_path / 'training_log_2026_1_1_12_00_00.txt').write_text(text)
    assert main(['explain', str(tmp_path)]) == code
    assert ('note: ' in capsys.readouterr().out) is note
