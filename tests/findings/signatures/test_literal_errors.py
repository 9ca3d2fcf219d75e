"""Errors that no CPU makes, by their literal text: kernels' asserts, NCCL, the system, packages that are not here."""

# ruff: noqa: E501  quoted lines are not broken
from __future__ import annotations

import pytest
from explained_logs import explain_log, find_code, format_traceback

from mmguard.commands.explain.explanation import SUPPORTED

LOSS = '/pytorch/aten/src/ATen/native/cuda/Loss.cu'
THREAD = 'block: [0,0,0], thread: [3,0,0]'
CRITERION = ('/home/me/train.py', 'loss = criterion(output, target)')

KERNELS = [
    ('MG402', f'{LOSS}:250: nll_loss_forward_reduce_cuda_kernel_2d: {THREAD} Assertion `t >= 0 && t < n_classes` failed.'),
    ('MG402', f'{LOSS}:118: operator(): {THREAD} Assertion `cur_target >= 0 && cur_target < n_classes` failed.'),
    ('MG403', '/pytorch/aten/src/ATen/native/cuda/IndexKernel.cu:92: operator(): block: [1,0,0], thread: [32,0,0] Assertion '
     '`-sizes[i] <= index && index < sizes[i] && "index out of bounds"` failed.'),
    ('MG404', '/pytorch/aten/src/ATen/native/cuda/ScatterGatherKernel.cu:145: operator(): block: [22,0,0], thread: [64,0,0] '
     'Assertion `idx_dim >= 0 && idx_dim < index_size && "index out of bounds"` failed.'),
    ('MG405', f'{LOSS}:94: operator(): {THREAD} Assertion `input_val >= zero && input_val <= one` failed.'),
    ('MG405', f'{LOSS}:95: operator(): {THREAD} Assertion `target_val >= zero && target_val <= one` failed.'),
    ('MG406', '/pytorch/aten/src/ATen/native/cuda/Indexing.cu:1290: indexSelectLargeIndex: block: [54,0,0], thread: [0,0,0] '
     'Assertion `srcIndex < srcSelectDimSize` failed.'),
    ('MG409', '/pytorch/aten/src/ATen/native/cuda/TensorCompare.cu:112: _assert_async_cuda_kernel: block: [0,0,0], thread: '
     '[0,0,0] Assertion `probability tensor contains either `inf`, `nan` or element < 0` failed.'),
]  # fmt: skip

RAISED_ON_DEVICES = [
    ('MG401', 'RuntimeError: CUDA error: device-side assert triggered\nCUDA kernel errors might be asynchronously reported'),
    ('MG401', 'RuntimeError: cuda runtime error (59) : device-side assert triggered at /pytorch/aten/src/THC/generic'),
    ('MG401', 'torch.AcceleratorError: CUDA error: device-side assert triggered\nSearch for `cudaErrorAssert\' in https://x'),
    ('MG407', 'RuntimeError: Class values must be smaller than num_classes.'),
    ('MG407', 'RuntimeError: target.max().item<int64_t>() <= (int64_t)num_classes INTERNAL ASSERT FAILED at "mmcv/ops/csrc/pytorch/'
     'cuda/focal_loss_cuda.cu":12, please report a bug to PyTorch. target label should smaller or equal than num classes'),
    ('MG407', 'RuntimeError: target.max().item<long>() <= (long)num_classes INTERNAL ASSERT FAILED at "/tmp/pip-req-build/mmcv/ops/'
     'csrc/pytorch/cuda/focal_loss_cuda.cu":59, please report a bug to PyTorch. target label should smaller or equal than num classes'),
    ('MG408', 'RuntimeError: CUDA error: an illegal memory access was encountered'),
    ('MG408', 'OSError: (External) CUDA error(719), unspecified launch failure.'),
    ('MG411', 'RuntimeError: CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`'),
    ('MG411', 'RuntimeError: cuDNN error: CUDNN_STATUS_MAPPING_ERROR'),
    ('MG422', 'RuntimeError: Detected the following values in `target`: tensor([0, 1, 255]) but expected only [0, 1].'),
    ('MG422', 'RuntimeError: Detected more unique values in `target` than expected. Expected only 8 but found 9 in `target`.'),
    ('MG443', 'FloatingPointError: Loss became infinite or NaN at iteration=17!'),
    ('MG452', "AssertionError: loss log variables are different across GPUs!\nrank 0 len(log_vars): 5 keys: loss"),
    ('MG453', 'RuntimeError: Detected mismatch between collectives on ranks. Rank 0 is running collective: CollectiveFingerPrint'
     '(SequenceNumber=7, OpType=ALLREDUCE, TensorShape=[21]), but Rank 1 is running collective: ... TensorShape=[39]'),
    ('MG456', 'torch.distributed.DistBackendError: NCCL error in: x.cpp:1, remote process exited or there was a network error'),
    ('MG457', 'torch.distributed.DistBackendError: NCCL error in: ProcessGroupNCCL.cpp:1275, unhandled cuda error'),
    ('MG464', 'torch.distributed.elastic.multiprocessing.errors.ChildFailedError: \n====\ntrain.py FAILED'),
    ('MG465', 'RuntimeError: DataLoader worker (pid 1234) is killed by signal: Killed. '),
    ('MG480', 'ValueError: x_max is less than or equal to x_min for bbox [tensor(0.3), tensor(0.2), tensor(0.3), tensor(0.4)].'),
    ('MG480', 'ValueError: Expected x_max for bbox (0.5, 0.2, 1.002, 0.4, 1) to be in the range [0.0, 1.0], got 1.002.'),
    ('MG483', 'RuntimeError: Some images have errors. Please check text output above to see which one(s) and what\'s going on.'),
    ('MG484', 'AssertionError: Labels must be in consecutive order (consecutive integers, starting with 0)'),
    ('MG484', 'RuntimeError: Background label not declared (remember that this should be label 0!)'),
    ('MG484', 'RuntimeError: Background label not declared (remeber that this should be label 0!)'),
    ('MG479', 'xml.etree.ElementTree.ParseError: not well-formed (invalid token): line 1, column 0'),
    ('MG479', 'xml.etree.ElementTree.ParseError: junk after document element: line 27, column 0'),
    ('MG479', 'xml.parsers.expat.ExpatError: no element found: line 1, column 0'),
    ('MG499', '_pickle.UnpicklingError: Weights only load failed. This file can still be loaded, to do so you have two options'),
    ('MG499', "ModuleNotFoundError: No module named 'mmcv._ext'"),
    ('MG499', 'ImportError: /opt/mmcv/_ext.cpython-310-x86_64-linux-gnu.so: undefined symbol: _ZNK2at10TensorBase8data_ptr'),
    ('MG499', 'AssertionError: MMCV==2.2.0 is used but incompatible. Please install mmcv>=2.0.0rc4, <2.2.0.'),
    ('MG499', "AttributeError: module 'numpy' has no attribute 'bool'."),
    ('MG499', 'ValueError: numpy.dtype size changed, may indicate binary incompatibility. Expected 96 from C header, got 88'),
    ('MG499', "ModuleNotFoundError: No module named 'mmcv.runner'"),
]  # fmt: skip

LINES = [
    ('MG454', '[rank0]:[E1122 10:00:00.123456789 ProcessGroupNCCL.cpp:632] [Rank 0] Watchdog caught collective operation '
     'timeout: WorkNCCL(SeqNum=17, OpType=ALLREDUCE, NumelIn=1, Timeout(ms)=600000) ran for 600022 milliseconds before '
     'timing out.'),
    ('MG458', '/usr/bin/bash: line 1:  4242 Killed                  python train.py'),
    ('MG458', 'torch.distributed.elastic.multiprocessing.api: [ERROR] failed (exitcode: -9) local_rank: 0 (pid: 42) of binary'),
    ('MG458', 'slurmstepd: error: Detected 1 oom_kill event in StepId=1.0. Some of the step tasks have been OOM Killed.'),
    ('MG469', 'free(): invalid pointer'),
    ('MG469', 'Segmentation fault (core dumped)'),
    ('MG443', 'Loss is nan, stopping training'),
    ('MG442', '2026/01/01 12:00:00 - mmengine - INFO - Iter(train) [50/100] lr: 1.0e-02 loss: nan  decode.loss_ce: nan'),
    ('MG483', 'Error: Unexpected labels found in file labelsTr/a.png.\nExpected: [0, 1]\nFound: [0, 255]'),
]  # fmt: skip


@pytest.mark.parametrize(('code', 'line'), KERNELS, ids=lambda value: value[:60])
def test_the_kernel_that_asserted_is_named(code: str, line: str) -> None:
    late = format_traceback('RuntimeError: CUDA error: device-side assert triggered', CRITERION)
    found = explain_log(f'{line}\n' * 40 + late)
    assert found.signature.code == code
    assert found.kernel.startswith(line.rpartition('.cu')[0].rpartition('/')[2] + '.cu')
    assert found.is_asynchronous


def test_what_torch_advises_after_an_assert_is_no_second_error() -> None:
    """Lines that torch 2.11 prints after the exception."""
    late = format_traceback('torch.AcceleratorError: CUDA error: device-side assert triggered', CRITERION)
    advice = (
        "Search for `cudaErrorAssert' in https://docs.nvidia.com/cuda/cuda-runtime-api/group__CUDART__TYPES.html for "
        'more information.\nFor debugging consider passing CUDA_LAUNCH_BLOCKING=1\n'
    )
    found = explain_log(f'{KERNELS[0][1]}\n{late}\n{advice}')
    assert [signature and signature.code for _, _, signature in found.others] == ['MG401']


@pytest.mark.parametrize(('code', 'error'), RAISED_ON_DEVICES, ids=lambda value: value[:60])
def test_the_exception_is_known(code: str, error: str) -> None:
    assert find_code(format_traceback(error, CRITERION)) == code


@pytest.mark.parametrize(('code', 'line'), LINES, ids=lambda value: value[:60])
def test_a_line_without_an_exception_is_known(code: str, line: str) -> None:
    assert find_code(f'{line}\n') == code
    good = '2026/01/01 12:00:00 - mmengine - INFO - Iter(train) [50/100] loss: 1.0\n' * 400
    assert find_code(f'{good}{line}\n') == code


@pytest.mark.parametrize(
    ('key', 'error'),
    [
        ('no-background', 'RuntimeError: Background label not declared (remember that this should be label 0!)'),
        ('damaged-xml', 'xml.etree.ElementTree.ParseError: syntax error: line 1, column 0'),
        (
            'weights-only',
            '_pickle.UnpicklingError: Weights only load failed. Unsupported global: GLOBAL numpy.core.scalar',
        ),
    ],
)
def test_an_error_that_says_its_cause_has_no_other_first(key: str, error: str) -> None:
    first, *others = explain_log(format_traceback(error, CRITERION)).causes
    assert (first.cause.key, first.standing) == (key, SUPPORTED)
    assert all(other.standing != SUPPORTED for other in others)
