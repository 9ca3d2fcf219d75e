"""Count the files and functions of mmguard that three flows enter: the figures of docs/architecture.md.

    PYTHONPATH=. python tools/flows.py [coco|train|apply]    also lists the files of one flow

``coco`` scans a COCO file up to the printed edit. ``train`` trains two iterations on valid labels, with both guards
written in a config that has a base. ``apply`` writes a guarded config for a stock one.
"""

from __future__ import annotations

import contextlib
import io
import json
import subprocess
import sys
import tempfile
from inspect import CO_OPTIMIZED
from pathlib import Path
from typing import Any, Dict, Set

import mmguard
from mmguard.cli import main

HOME = Path(mmguard.__file__).parent
sys.path.append(str(HOME.parent / 'tests'))
entered: Dict[str, Set[Any]] = {}


def note(frame: Any, event: str, _: Any) -> None:
    """Note the function that is entered, unless a module that is being imported enters it."""
    code = frame.f_code
    if event == 'call' and code.co_flags & CO_OPTIMIZED and code.co_filename.startswith(str(HOME)):
        while frame is not None and frame.f_code.co_name != '_find_and_load':
            frame = frame.f_back
        if frame is None:
            entered.setdefault(str(Path(code.co_filename).relative_to(HOME)), set()).add(code)


def coco(folder: str) -> None:
    from coco_cases import ann, coco, write

    boxes = [ann(0), ann(1, box=(10, 10, 0, 20)), ann(2, 1, category=2), ann(3, 2, category=3)]
    path = write(Path(folder), coco(boxes))
    sys.setprofile(note)
    main(['scan', path])


def train(folder: str) -> None:
    from mmengine.config import Config
    from small_runs import make_cityscapes, runner_of, tiny_config

    base = tiny_config(make_cityscapes(f'{folder}/data', {}), folder, iters=2)
    object.__setattr__(base, '_format_python_code', False)
    base.dump(f'{folder}/base.py')
    Path(folder, 'own.py').write_text("_base_ = 'base.py'\n")
    config = Config.fromfile(f'{folder}/own.py')
    sys.setprofile(note)
    runner_of(config).train()


def apply(folder: str) -> None:
    from small_runs import LOAD, PACK, tiny_config

    config = tiny_config(folder, folder, pipeline=[*LOAD, PACK])
    config.custom_hooks, config.model.decode_head.loss_decode.type = [], 'CrossEntropyLoss'
    config.dump(f'{folder}/stock.py')
    sys.setprofile(note)
    main(['apply', f'{folder}/stock.py', '-o', f'{folder}/guarded.py'])


FLOWS = {one.__name__: one for one in (coco, train, apply)}

if __name__ == '__main__':
    if len(sys.argv) == 1:
        sys.exit(max(subprocess.run([sys.executable, __file__, name, '--short']).returncode for name in FLOWS))
    said = io.StringIO()
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        FLOWS[sys.argv[1]](folder)
        sys.setprofile(None)
    files = {file: len(codes) for file, codes in sorted(entered.items())}
    if '--short' not in sys.argv:
        print(said.getvalue(), json.dumps(files, indent=1), sep='\n')
    print(f'{sys.argv[1]}: {len(files)} files, {sum(files.values())} functions')
