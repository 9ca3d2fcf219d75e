"""Checkpoints: ordinary ones are read beside every torch, and nothing in a file is run."""

from __future__ import annotations

import os
import pickle
import zipfile
from collections import OrderedDict
from pathlib import Path
from typing import Any, Tuple

import numpy as np
import pytest
import torch
from mmengine.logging import HistoryBuffer, MessageHub
from torch import nn

from mmguard.errors import CannotRun
from mmguard.tools.replay.checkpoint import read_checkpoint


class Calling:
    """Pickled as the call of a function, as an attacker writes it."""

    def __init__(self, function: Any, *args: Any) -> None:
        self.call = function, args

    def __reduce__(self) -> Tuple[Any, Tuple[Any, ...]]:
        return self.call


@pytest.fixture
def file(tmp_path: Path) -> str:
    return str(tmp_path / 'weights.pth')


def everything() -> dict:
    """What mmengine and torch write into one."""
    hub = MessageHub.get_instance('test_checkpoint')
    hub.update_scalar('loss', 0.5)
    hub.update_scalar('lr', np.float32(0.1))
    hub.update_info('best', np.int64(3))
    hub.update_info('classes', ('road', 'sky'))
    layer = nn.Linear(2, 3)
    layer.weight.mark = 'attribute'  # type: ignore[assignment]
    optimizer = torch.optim.AdamW(layer.parameters())
    layer(torch.ones(1, 2)).sum().backward()
    optimizer.step()
    return dict(
        meta=dict(seed=np.int64(1), when=np.datetime64('2024-01-01'), device=torch.device('cpu'), kinds={'a', 'b'}),
        state_dict=layer.state_dict(),
        parameters=dict(layer.named_parameters()),
        optimizer=optimizer.state_dict(),
        message_hub=hub.state_dict(),
        others=[torch.zeros(2, dtype=torch.bfloat16), torch.float16, torch.zeros(2, 3).shape, np.zeros((2, 2))],
    )


@pytest.mark.parametrize('in_zip', [True, False])
def test_what_mmengine_writes_is_read(file: str, in_zip: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    written = everything()
    torch.save(written, file, _use_new_zipfile_serialization=in_zip)
    before = dict(HistoryBuffer._statistics_methods)
    monkeypatch.setenv('TORCH_FORCE_WEIGHTS_ONLY_LOAD', '1')
    read = read_checkpoint(file)
    assert isinstance(read['state_dict'], OrderedDict)
    for part in ('state_dict', 'parameters'):
        assert list(read[part]) == list(written[part])
        assert all(torch.equal(read[part][name], written[part][name]) for name in written[part])
    assert torch.equal(read['optimizer']['state'][0]['exp_avg'], written['optimizer']['state'][0]['exp_avg'])
    assert read['others'][0].dtype == torch.bfloat16
    assert read['others'][1] == torch.float16
    assert read['message_hub']['runtime_info']['classes'] == ('road', 'sky')
    assert HistoryBuffer._statistics_methods == before
    assert os.environ['TORCH_FORCE_WEIGHTS_ONLY_LOAD'] == '1'


def test_what_numpy_of_another_version_wrote_is_not_asked_for(file: str) -> None:
    """numpy 2 names numpy._core, which numpy 1.20 does not have; here: a version of the future."""
    torch.save({'state_dict': {'a': torch.ones(1)}, 'meta': np.float64(1)}, file, _use_new_zipfile_serialization=False)
    data = Path(file).read_bytes()
    name = np.float64(1).__reduce__()[0].__module__.encode()
    assert name in data
    Path(file).write_bytes(data.replace(name, name[:-1] + b'X'))
    assert torch.equal(read_checkpoint(file)['state_dict']['a'], torch.ones(1))


HARMFUL = {
    'posix.system': lambda proof: Calling(os.system, f'touch {proof}'),
    'pathlib.Path': lambda proof: Calling(Path, proof),
    '.eval': lambda proof: Calling(eval, f'open({proof!r}, "w")'),
    '.exec': lambda proof: Calling(exec, f'open({proof!r}, "w")'),
    'io.open': lambda proof: Calling(open, proof, 'w'),
    'torch.serialization.save': lambda proof: Calling(torch.save, {}, proof),
    'torch.serialization.load': lambda proof: Calling(torch.load, proof),
    'torch.hub.load': lambda proof: Calling(torch.hub.load, 'a/b', 'c'),
    'torch.nn.modules.linear.Linear': lambda proof: nn.Linear(1, 1),
    'codecs.open': lambda proof: Calling(__import__('codecs').open, proof, 'w'),
}


@pytest.mark.parametrize('in_zip', [True, False])
@pytest.mark.parametrize('name', HARMFUL)
def test_what_calls_anything_is_refused_and_named(file: str, tmp_path: Path, name: str, in_zip: bool) -> None:
    proof = str(tmp_path / 'proof')
    torch.save({'state_dict': {}, 'meta': [HARMFUL[name](proof)]}, file, _use_new_zipfile_serialization=in_zip)
    with pytest.raises(CannotRun) as caught:
        read_checkpoint(file)
    assert f'{name}, which is no plain data' in str(caught.value)
    assert 'refused' in str(caught.value)
    assert 'damaged' not in str(caught.value)
    assert not os.path.exists(proof)


def test_what_is_not_read_is_not_called_either(file: str, tmp_path: Path) -> None:
    """getattr, and the functions of numpy and mmengine, some of which run or load what they are given."""
    proof = tmp_path / 'proof'
    harmful = [
        Calling(getattr, 'text', 'upper'),
        Calling(np.save, str(proof), np.zeros(1)),
        Calling(np.load, str(tmp_path)),
        Calling(HistoryBuffer.register_statistics, np.zeros),
    ]
    before = dict(HistoryBuffer._statistics_methods)
    torch.save({'state_dict': {'a': torch.ones(1)}, 'meta': harmful}, file)
    assert torch.equal(read_checkpoint(file)['state_dict']['a'], torch.ones(1))
    assert sorted(path.name for path in tmp_path.iterdir()) == ['weights.pth']
    assert HistoryBuffer._statistics_methods == before


def test_a_bare_pickle_that_calls_is_refused(file: str, tmp_path: Path) -> None:
    """No file of torch at all."""
    Path(file).write_bytes(pickle.dumps(Calling(os.system, f'touch {tmp_path}/proof')))
    with pytest.raises(CannotRun, match=r'refused, it names posix\.system'):
        read_checkpoint(file)
    assert not (tmp_path / 'proof').exists()


def test_torchscript_is_a_program_and_refused(file: str) -> None:
    torch.jit.script(nn.Linear(2, 2)).save(file)
    with pytest.raises(CannotRun, match=r'refused, it is a TorchScript archive'):
        read_checkpoint(file)


def test_a_tar_archive_is_not_unpacked(file: str, tmp_path: Path) -> None:
    import tarfile

    (tmp_path / 'storages').write_bytes(b'')
    with tarfile.open(file, 'w') as archive:
        archive.add(str(tmp_path / 'storages'), 'storages')
    with pytest.raises(CannotRun, match=r'refused, it is a tar archive'):
        read_checkpoint(file)


@pytest.mark.parametrize('in_zip', [True, False])
def test_a_damaged_file_says_so(file: str, in_zip: bool) -> None:
    torch.save({'state_dict': {'a': torch.ones(100)}}, file, _use_new_zipfile_serialization=in_zip)
    whole = Path(file).read_bytes()
    for data in (whole[: len(whole) // 2], whole[:40], b'', b'no checkpoint at all'):
        Path(file).write_bytes(data)
        with pytest.raises(CannotRun, match='damaged, or no checkpoint'):
            read_checkpoint(file)


def test_a_number_beyond_all_reason_makes_no_table(file: str) -> None:
    # protocol 2, the name of a function, kept under the number 2**31 - 1, the end
    Path(file).write_bytes(b'\x80\x02cposix\nsystem\n' + b'r\xff\xff\xff\x7f' + b'.')
    with pytest.raises(CannotRun, match='damaged: 2,147,483,647 objects in 16 bytes'):
        read_checkpoint(file)


#: A name of each kind that torch writes, and what the pickle then does to it: state of slots, state of a dict.
STATES = {'slots': b'N}U\x0c__defaults__U\x03abcs\x86b', 'dict': b'}U\x04markU\x03abcsb'}


@pytest.mark.parametrize('state', STATES.values(), ids=STATES)
@pytest.mark.parametrize('in_zip', [True, False])
@pytest.mark.parametrize('name', ['_rebuild_tensor_v2', '_rebuild_parameter', '_rebuild_parameter_with_state'])
def test_no_attribute_of_a_function_is_set(file: str, name: str, in_zip: bool, state: bytes) -> None:
    function = getattr(torch._utils, name)
    before = function.__defaults__, dict(vars(function))
    # Beside a name that torch itself does not read.
    data = b'\x80\x02(cnumpy\nndarray\nctorch._utils\n' + name.encode() + b'\n' + state + b't.'
    if in_zip:
        with zipfile.ZipFile(file, 'w') as archive:
            archive.writestr('archive/data.pkl', data)
            archive.writestr('archive/version', '3\n')
    else:
        torch.save({}, file, _use_new_zipfile_serialization=False)
        whole = Path(file).read_bytes()
        Path(file).write_bytes(whole.replace(b'\x80\x02}q\x00.', data, 1))
    with pytest.raises(CannotRun, match='refused, it sets attributes of a function'):
        read_checkpoint(file)
    assert (function.__defaults__, dict(vars(function))) == before
