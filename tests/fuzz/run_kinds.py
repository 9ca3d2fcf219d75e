"""What a training leaves: logs, records of the run, flight records, crash files of old."""

from __future__ import annotations

import json
from typing import Any, Dict

from config_kinds import python_text, replayable, segmentation_data
from kinds import Files, Kind
from mutations import damaged_json, damaged_lines, damaged_text

TRACEBACK = (
    'Traceback (most recent call last):\n  File "train.py", line 3, in <module>\n    main()\n'
    '  File "/site/losses/ce.py", line 45, in cross_entropy\n    loss = F.cross_entropy(\nIndexError: Target 77\n'
)


def _line(place: int, mode: str = 'train') -> Dict[str, Any]:
    return dict(
        mode=mode, iter=place, epoch=1, step=place, skipped_pixels=9, remapped_pixels=1, skipped_instances=3,
        remapped_instances=0, mapped_pixels=0, total=180, total_instances=9, empty_images=1,
        reasons={'label': 2, 'box_no_area': 1},
        samples=[
            dict(source='ann/a.png', skipped=9, remapped=1, values={'24': 9, '33': 1}, other_values=0),
            dict(source='img/b.jpg', kind='instances', skipped=3, remapped=0, values={'600': 2}, reasons={'label': 2}),
        ],
        loss_samples=[dict(source='ann/b.png', skipped=5, remapped=0, values={'33': 5})],
        losses={'decode_head.loss_decode': dict(seen=99, skipped=5, remapped=0)},
        filled=[dict(rank=1, losses=['loss_mask'], samples=['img/b.jpg'])],
    )  # fmt: skip


def _record() -> Dict[str, Any]:
    totals = dict(
        iterations=9, offending_iterations=3, files=4, offending_files=2, empty_images=1,
        pixels=dict(total=900, skipped=27, remapped=3, values={'24': 27, '33': 3}, reasons={}),
        instances=dict(total=30, skipped=9, remapped=0, values={'600': 6}, reasons={'label': 6, 'box_no_area': 3}),
        losses={'decode_head.loss_decode': dict(seen=99, skipped=5, remapped=0)},
    )  # fmt: skip
    guard = dict(kind='pixels', num_classes=3, ignore_index=255, on_invalid='ignore', label_map={'7': 0})
    train = dict(
        guards=[guard], losses={'decode_head.loss_decode': [dict(kind='pixels', num_classes=3, ignore_index=255)]},
        classes=['road', 'car', 'sky'], data_roots=['data'], ended=True, iter=9, step=9, totals=totals,
    )  # fmt: skip
    run = dict(
        mmguard='1', framework='openmmlab', config='config.py', started='2026-01-01T00:00:00', rank=0, world_size=2,
        modes=dict(train=train, val=dict(train, ended=False)),
    )  # fmt: skip
    return dict(format=1, runs=[run])


_SAMPLES = [dict(path='data/img/a.jpg'), dict(path='data/img/b.jpg')]
_EXCEPTION = dict(type='IndexError', message='Target 77 is out of bounds.\nsecond line', traceback=TRACEBACK)


def flight_record() -> bytes:
    lines = [
        dict(format=2, rank=0, capacity=20),
        dict(iter=36, samples=_SAMPLES, time='2026-01-01T00:00:00'),
        dict(iter=37, samples=_SAMPLES),
        dict(reason='exception', exception=_EXCEPTION),
    ]
    return _lines(*lines)


def _lines(*lines: Dict[str, Any]) -> bytes:
    return b''.join(json.dumps(line).encode() + b'\n' for line in lines)


def _logs() -> Files:
    return {
        'run/label_guard.jsonl': (_lines(_line(1), _line(2), _line(3, 'val')), (damaged_lines,)),
        'run/label_guard.rank1.jsonl': (_lines(_line(2)), (damaged_lines,)),
        'run/label_guard.json': (json.dumps(_record()).encode(), (damaged_json,)),
        'run/label_guard_flight.jsonl': (flight_record(), (damaged_lines,)),
        'run/vis_data/config.py': (python_text(replayable()), ()),
        'run/vis_data/scalars.json': (_lines(dict(loss=0.5, iter=1, step=1)), (damaged_lines,)),
    }


def _crashes() -> Files:
    return {'label_guard_flight.jsonl': (flight_record(), (damaged_lines,))}


LOG = (
    'Epoch 1 Iter(train) [36/1000]  lr: 1.0e-2  loss: 0.5000\nEpoch 1 Iter(train) [37/1000]  lr: 1.0e-2  loss: nan\n'
    '/pytorch/aten/src/ATen/native/cuda/Loss.cu:250: nll_loss_forward_reduce_cuda_kernel_2d: block: [0,0,0], thread: '
    '[11,0,0] Assertion `t >= 0 && t < n_classes` failed.\n'
    + TRACEBACK
    + '\nDuring handling of the above exception, another exception occurred:\n\n'
    + TRACEBACK.replace('IndexError: Target 77', 'RuntimeError: CUDA error: device-side assert triggered')
    + '[rank1]: '
    + TRACEBACK.strip().replace('\n', '\n[rank1]: ')
    + '\n'
).encode()


def _errors() -> Files:
    return {
        'run/train.log': (LOG, (damaged_text,)),
        'run/label_guard_flight.jsonl': (flight_record(), (damaged_lines,)),
    }


def _replayed() -> Files:
    files = _crashes()
    files['config.py'] = (python_text(replayable()), ())
    files.update({name: (content, ()) for name, content in segmentation_data().items()})
    return files


KINDS = (
    Kind(
        'logs',
        _logs,
        ('report run --json {out}/report.json', 'report run --verbose'),
        needs=('rich',),
    ),
    Kind('crashes', _crashes, ('report {file} --json {out}/report.json',), needs=('rich',)),
    Kind('errors', _errors, ('explain {file}', 'explain {file} --json {out}/explained.json', 'explain run')),
    Kind(
        'replayed',
        _replayed,
        ('replay config.py {file} --json {out}/replay.json',),
        {'replay': ('--last 1', '--seeds 1')},
        needs=('mmseg', 'PIL'),
    ),
)
