"""Checkpoints of tensors are read by every torch, and nothing in a file is run."""

from __future__ import annotations

import os
import pickle
import re
from pathlib import Path
from typing import Any, Tuple

import pytest
import torch
from mmengine.logging import MessageHub
from torch import nn

from mmguard.errors import CannotRun
from mmguard.tools.replay.network import read_checkpoint


class Calling:
    """Pickled as the call of a function, as an attacker writes it."""

    def __init__(self, function: Any, *args: Any) -> None:
        self.call = function, args

    def __reduce__(self) -> Tuple[Any, Tuple[Any, ...]]:
        return self.call


@pytest.fixture
def file(tmp_path: Path) -> str:
    return str(tmp_path / 'weights.pth')


@pytest.mark.parametrize('in_zip', [True, False])
def test_tensors_are_read(file: str, in_zip: bool) -> None:
    layer = nn.Linear(2, 3)
    written = dict(state_dict=layer.state_dict(), epoch=3, others=[torch.zeros(2, dtype=torch.bfloat16), 'text'])
    torch.save(written, file, _use_new_zipfile_serialization=in_zip)
    read = read_checkpoint(file)
    assert list(read['state_dict']) == list(written['state_dict'])
    assert all(torch.equal(read['state_dict'][name], value) for name, value in layer.state_dict().items())
    assert read['others'][0].dtype == torch.bfloat16
    assert (read['epoch'], read['others'][1]) == (3, 'text')


def test_a_checkpoint_of_mmengine_is_refused_with_the_line_that_keeps_its_tensors(file: str) -> None:
    hub = MessageHub.get_instance('test_checkpoint')
    hub.update_scalar('loss', 0.5)
    torch.save(dict(state_dict=nn.Linear(2, 3).state_dict(), message_hub=hub.state_dict()), file)
    with pytest.raises(CannotRun, match=r"torch\.save\(torch\.load\(FILE, weights_only=False\)\['state_dict'\], NEW\)"):
        read_checkpoint(file)
    tensors = torch.load(file, weights_only=False)['state_dict']
    torch.save(tensors, file)
    assert list(read_checkpoint(file)) == ['weight', 'bias']


HARMFUL = {
    'posix.system': lambda proof: Calling(os.system, f'touch {proof}'),
    'pathlib.Path': lambda proof: Calling(Path, proof),
    'torch.nn.modules.linear.Linear': lambda proof: nn.Linear(1, 1),
}


@pytest.mark.parametrize('in_zip', [True, False])
@pytest.mark.parametrize('name', HARMFUL)
def test_what_calls_anything_is_refused(file: str, tmp_path: Path, name: str, in_zip: bool) -> None:
    proof = str(tmp_path / 'proof')
    torch.save({'state_dict': {}, 'meta': [HARMFUL[name](proof)]}, file, _use_new_zipfile_serialization=in_zip)
    with pytest.raises(CannotRun, match=re.escape(file)):
        read_checkpoint(file)
    assert not os.path.exists(proof)


def test_a_bare_pickle_that_calls_is_refused(file: str, tmp_path: Path) -> None:
    """No file of torch at all."""
    Path(file).write_bytes(pickle.dumps(Calling(os.system, f'touch {tmp_path}/proof')))
    with pytest.raises(CannotRun, match=re.escape(file)):
        read_checkpoint(file)
    assert not (tmp_path / 'proof').exists()


def test_torchscript_is_a_program_and_refused(file: str) -> None:
    torch.jit.script(nn.Linear(2, 2)).save(file)
    with pytest.raises(CannotRun, match='TorchScript'):
        read_checkpoint(file)


def test_a_tar_archive_is_not_unpacked(file: str, tmp_path: Path) -> None:
    import tarfile

    (tmp_path / 'storages').write_bytes(b'')
    with tarfile.open(file, 'w') as archive:
        archive.add(str(tmp_path / 'storages'), 'storages')
    with pytest.raises(CannotRun, match=re.escape(file)):
        read_checkpoint(file)


@pytest.mark.parametrize('in_zip', [True, False])
def test_a_damaged_file_says_so(file: str, in_zip: bool) -> None:
    torch.save({'state_dict': {'a': torch.ones(100)}}, file, _use_new_zipfile_serialization=in_zip)
    whole = Path(file).read_bytes()
    for data in (whole[: len(whole) // 2], whole[:40], b'', b'no checkpoint at all'):
        Path(file).write_bytes(data)
        with pytest.raises(CannotRun, match=re.escape(file)):
            read_checkpoint(file)
