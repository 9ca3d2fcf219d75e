"""Logs as programs write them: ranks, colors, progress bars, loggers, notebooks."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Optional

import pytest
from explained_logs import explain_log, find_code
from put_file import put

from mmguard.cli import main
from mmguard.commands.explain.command import describe_no_error
from mmguard.commands.explain.explanation import explain_text
from mmguard.commands.explain.reader import Reader

CROSS_ENTROPY = """\
Traceback (most recent call last):
  File "/home/me/train.py", line 12, in <module>
    main()
  File "/opt/lib/python3.11/site-packages/torch/nn/functional.py", line 3029, in cross_entropy
    return torch._C._nn.cross_entropy_loss(
           ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
IndexError: Target 255 is out of bounds.
"""
GONE = """\
Traceback (most recent call last):
  File "/home/me/train.py", line 14, in <module>
    dist.all_reduce(loss)
RuntimeError: [../third_party/gloo/gloo/transport/tcp/pair.cc:534] Connection closed by peer [127.0.0.1]:31337
"""
ITERATION = '2026/01/01 12:00:{:02d} - mmengine - INFO - Iter(train) [{:6d}/19950]  lr: 9.9e-03  loss: 1.2345\n'
LOG = ''.join(ITERATION.format(number % 60, 50 * number) for number in range(400))


def marked(text: str, mark: str) -> list:
    return [f'{mark}{line}\n' for line in text.splitlines()]


def woven(*texts: list) -> str:
    """Lines in turn, as processes write them at the same time."""
    longest = max(map(len, texts))
    return ''.join(lines[place] for place in range(longest) for lines in texts if place < len(lines))


@pytest.mark.parametrize('mark', ['[rank1]: ', '[default1]:', '[1]:'])
def test_the_first_cause_of_interleaved_ranks_is_found(mark: str) -> None:
    found = explain_log(woven(marked(GONE, mark.replace('1', '0')), marked(CROSS_ENTROPY, mark)))
    assert found.signature.code == 'MG413'
    assert found.trouble.rank == '1'
    assert found.raised.message == 'Target 255 is out of bounds.'
    assert [(signature.code if signature else '') for _, _, signature in found.others] == ['MG456']


def test_the_line_of_the_user_is_named_beside_the_innermost_one() -> None:
    found = explain_log(LOG + CROSS_ENTROPY)
    assert str(found.place) == '/opt/lib/python3.11/site-packages/torch/nn/functional.py:3029 in cross_entropy'
    assert str(found.own_place) == '/home/me/train.py:12 in <module>'
    assert found.trouble.line == 401


COLORED = CROSS_ENTROPY.replace('IndexError', '\x1b[31mIndexError\x1b[39m').replace('File', '\x1b[34mFile\x1b[0m')
#: Without a logger, what print() has not yet written comes after the error.
PRINTED = ''.join(f'epoch 1 step {number} loss 0.5\n' for number in range(100))


@pytest.mark.parametrize(
    ('text', 'code'),
    [
        ('Epoch 1:  42%|####  | 420/1000 [00:01<00:02]\r' * 4000 + COLORED, 'MG413'),
        (''.join(marked(CROSS_ENTROPY, '2026-01-01 12:00:00.123456: ')), 'MG413'),
        (f'{LOG}2026/01/01 12:00:00 - mmengine - ERROR - {CROSS_ENTROPY}', 'MG413'),
        (PRINTED + CROSS_ENTROPY + PRINTED, 'MG413'),
        ('CUDA error: device-side assert triggered', 'MG401'),
        ('weight tensor should be defined either for all or no classes', 'MG424'),
        # A validation has no loss, so it does not show that the loss is finite again.
        *[
            (LOG + ITERATION.format(0, 50).replace('1.2345', 'nan') + lines, 'MG442')
            for lines in (
                ''.join(
                    f'2026/01/01 12:00:0{n} - mmengine - INFO - Epoch(val) [1][{n}/9]  time: 0.02\n' for n in range(9)
                ),
                ''.join(
                    f'2026/01/01 12:00:0{n} - mmengine - INFO - Iter(val) [{n}/9]  eta: 0:00:01\n' for n in range(9)
                ),
                ''.join(f'val step {n}: dice 0.5, 3.1 it/s, {"x" * 2000}\n' for n in range(20)),
            )
        ],
        # What goes on training has survived, and what Python ignores ends nothing.
        (LOG + CROSS_ENTROPY + LOG, None),
        (LOG + ITERATION.format(0, 50).replace('1.2345', 'nan') + LOG, None),
        (PRINTED + CROSS_ENTROPY + 20 * PRINTED, None),
        (f'{LOG}Exception ignored in: <function Pool.__del__ at 0x7f>\n{CROSS_ENTROPY}', None),
        *[(text, None) for text in ('', '\x00' * 100_000, 'x' * 3_000_000, '\r' * 100_000)],
    ],
    ids=lambda value: str(value)[:20],
)
def test_the_error_is_found_in_any_form_and_only_where_it_ended_a_training(text: str, code: Optional[str]) -> None:
    assert find_code(text) == code if code else explain_text([text]) is None


@pytest.mark.parametrize(
    'link',
    [
        'During handling of the above exception, another exception occurred:',
        'The above exception was the direct cause of the following exception:',
    ],
)
def test_the_root_of_a_chain_is_the_error(link: str) -> None:
    outer = 'Traceback (most recent call last):\n  File "a.py", line 1, in run\n    go()\nValueError: training failed\n'
    found = explain_log(f'{CROSS_ENTROPY}\n{link}\n\n{outer}')
    assert found.raised.kind == 'IndexError'
    assert len(found.trouble.chain) == 2


@pytest.mark.parametrize('last', ["KeyError: 'mask'", 'FlubberError: no flubber', 'mmcv.FlubberError: 7 of 8'])
def test_the_last_of_several_unknown_lines_is_the_error(last: str) -> None:
    """Lines pasted without `Traceback` and `Original Traceback`."""
    kind = last.split(':')[0]
    found = explain_text([f'{kind}: Caught {kind} in DataLoader worker process 0.\n{last}\n'])
    assert f'{found.raised.kind}: {found.raised.message}' == last


def test_an_assert_of_a_kernel_is_the_error_and_the_exception_only_reports_it() -> None:
    kernel = (
        '../aten/src/ATen/native/cuda/Loss.cu:250: nll_loss_forward_reduce_cuda_kernel_2d: block: [0,0,0], thread: '
        '[{},0,0] Assertion `t >= 0 && t < n_classes` failed.\n'
    )
    late = CROSS_ENTROPY.replace(
        'IndexError: Target 255 is out of bounds.', 'RuntimeError: CUDA error: device-side assert triggered'
    )
    found = explain_log(LOG + ''.join(kernel.format(number) for number in range(32)) + late)
    assert found.signature.code == 'MG402'
    assert found.kernel == 'Loss.cu:250, nll_loss_forward_reduce_cuda_kernel_2d: t >= 0 && t < n_classes'
    assert found.trouble.times == 32
    assert found.is_asynchronous
    assert found.late is not None
    assert str(found.own_place) == '/home/me/train.py:12 in <module>'


def test_the_rank_that_torchrun_names_is_believed() -> None:
    other = CROSS_ENTROPY.replace('Target 255', 'Target 7')
    summary = 'Root Cause (first observed failure):\n[0]:\n  time : 2026\n  host : a\n  rank : 1 (local_rank: 1)\n'
    text = ''.join(marked(other, '[rank0]: ')) + ''.join(marked(CROSS_ENTROPY, '[rank1]: ')) + summary
    assert explain_log(text).raised.message == 'Target 255 is out of bounds.'


def test_the_output_of_a_notebook_is_read(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    traceback = [
        '\x1b[31m---------------------------------------------------------------------------\x1b[39m',
        '\x1b[31mIndexError\x1b[39m                                Traceback (most recent call last)',
        '\x1b[36mCell\x1b[39m\x1b[36m \x1b[39m\x1b[32mIn[3]\x1b[39m\x1b[32m, line 5\x1b[39m\n'
        '\x1b[32m      3\x1b[39m a\n'
        '\x1b[32m----> 5\x1b[39m loss = F.cross_entropy(x, y)\n',
        '\x1b[36mFile \x1b[39m\x1b[32m/opt/lib/python3.11/site-packages/torch/nn/functional.py:3029\x1b[39m, in '
        '\x1b[36mcross_entropy\x1b[39m\x1b[34m(input, target)\x1b[39m\n'
        '\x1b[32m-> 3029\x1b[39m     \x1b[38;5;28;01mreturn\x1b[39;00m x\n',
        '\x1b[31mIndexError\x1b[39m: Target 7 is out of bounds.',
    ]
    path = put(tmp_path / 'pasted.txt', '\n'.join(traceback))
    assert main(['explain', str(path)]) == 1
    out = capsys.readouterr().out
    assert out.startswith('MG413  ')
    assert 'functional.py:3029 in cross_entropy' in out
    assert 'your line: Cell In[3]:5' in out


def test_an_error_that_nobody_knows_is_said_to_be_not_known(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    path = tmp_path / 'train.log'
    path.write_text(LOG + CROSS_ENTROPY.replace('IndexError: Target 255 is out of bounds.', 'FlubberError: no flubber'))
    assert main(['explain', str(path)]) == 1
    out = capsys.readouterr().out
    assert out.startswith('unknown error')
    assert 'tracker' not in out
    assert re.search(r'^next: mmguard (?:scan|dry-run) ', out, re.M)


def test_a_log_without_an_error_has_none(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    path = put(tmp_path / 'train.log', LOG)
    assert main(['explain', str(path)]) == 0
    assert '400 lines without an error that ended a training' in capsys.readouterr().out


@pytest.mark.parametrize(('log', 'lines'), [(b'Epoch 1\n', 3), (b'Epoch 1\nmIoU: 0.41\n', 2)])
def test_a_log_without_a_known_score_says_so(log: bytes, lines: int) -> None:
    reader = Reader()
    reader.read([log])
    said = describe_no_error(reader, 'train.log')
    assert len(said.splitlines()) == lines
    assert '1 line without an error that ended a training\n' in said or b'mIoU' in log


def test_no_log_is_an_error_in_words(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    notebook = put(tmp_path / 'run' / 'a.ipynb', '{"cells": []}')
    for target in (tmp_path / 'train.log', tmp_path, notebook):
        assert main(['explain', str(target)]) == 2
        assert str(target) in capsys.readouterr().err


@pytest.mark.parametrize('newest', ['new', 'my run', "it's {new}"])
def test_the_newest_run_of_a_folder_is_read_and_its_config_named_but_not_run(
    newest: str, tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    for number, (name, text) in enumerate([('old', 'ValueError: old\n'), (newest, CROSS_ENTROPY)]):
        log = put(tmp_path / name / f'{name}.log', LOG + text)
        os.utime(log, (number, number))
    config = put(tmp_path / newest / 'vis_data' / 'config.py', 'raise SystemExit("was run")\n')
    assert main(['explain', str(tmp_path)]) == 1
    out = capsys.readouterr().out
    assert out.startswith('MG413  ')
    (option,) = re.findall('`(--config .*?)`', out)
    assert shlex.split(option) == ['--config', str(config)]


def test_standard_input_and_json(tmp_path: Path) -> None:
    command = [sys.executable, '-m', 'mmguard.cli', 'explain', '-', '--json', '-']
    done = subprocess.run(command, input=LOG + CROSS_ENTROPY, capture_output=True, text=True)
    assert done.returncode == 1, done.stderr
    record = json.loads(done.stdout)
    assert record['error']['code'] == 'MG413'
    assert record['causes'][0]['codes'][0] == 'MG103'
    assert record['causes'][0]['standing'] == 'possible'


def test_what_a_log_holds_moves_no_cursor(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    path = put(tmp_path / 'train.log', CROSS_ENTROPY.replace('255', '255\x1b]0;title\x07\u202e'))
    assert main(['explain', str(path)]) == 1
    out = capsys.readouterr().out
    assert '\x1b' not in out
    assert '\u202e' not in out


def test_memory_and_time_do_not_grow_with_the_log() -> None:
    reader = Reader().read([LOG.encode()] * 200 + [CROSS_ENTROPY.encode()] * 3000)
    assert len(reader.troubles) <= 200
    assert reader.lines == 200 * 400 + 3000 * CROSS_ENTROPY.count('\n')


@pytest.mark.parametrize(
    ('message', 'code'),
    [
        ('_pickle.UnpicklingError: Weights only load failed. This file can still be loaded', 'MG499'),
        ('IndexError: Target 19 is out of bounds.', 'MG413'),
        ('CUDA error: device-side assert triggered', 'MG401'),
    ],
)
def test_a_message_can_be_typed(message: str, code: str, capsys: pytest.CaptureFixture) -> None:
    assert main(['explain', message, '--json', '-']) == 1
    assert json.loads(capsys.readouterr().out)['error']['code'] == code


@pytest.mark.parametrize('what', ['no such log.txt', 'nothing.log', 'work dirs/run 1'])
def test_what_is_neither_a_file_nor_a_known_message_cannot_be_explained(
    what: str, capsys: pytest.CaptureFixture
) -> None:
    assert main(['explain', what]) == 2
    assert what in capsys.readouterr().err
