"""Builder of the parts of a config: calls each part once, and compares the parts before and after an edit."""

from __future__ import annotations

import copy
import os
import pickle
import time
from contextlib import contextmanager
from typing import Any, Callable, Dict, Iterator, Mapping, NamedTuple, Optional, Tuple

from mmguard.config.read import ReadConfig, is_data
from mmguard.config.tree import walk
from mmguard.properties.result import NoSamples, Result, Unavailable
from mmguard.properties.worker import MEMORY, Reply, Worker

#: Seconds that a command may spend on trying its edits.
BUDGET = 20.0
#: Share of the remaining time that a part may take after an edit: the rest is for the same part before the edit.
SHARE_AFTER_EDIT = 0.6
#: Number of training samples that are loaded, and of samples in a batch.
LOADED, BATCH = 4, 2
#: Size in bytes above which an annotation file takes too long to read.
LARGE = 64 << 20

VERIFIED, BROKEN, NOT_VERIFIED = ('verified', 'broken', 'not verified')
#: Reply for a part that the config does not have.
NO_PART_REASON = 'the config has no such part'
#: Keys of a config that every part depends on.
_EVERYWHERE = {'default_scope', 'custom_imports'}
#: Exceptions about files, packages, network or permissions, which do not show that the config is wrong.
_INCOMPLETE = ('FileNotFoundError', 'ImportError', 'ModuleNotFoundError', 'ConnectionRefusedError', 'PermissionError')


class Verification(NamedTuple):
    """Result of building and calling the parts that an edit changes: state, reason, and parts that worked."""

    state: str
    reason: str = ''
    parts: Tuple[str, ...] = ()


class Builder(Worker):
    """Worker process that builds and calls parts of configs within ``seconds``, and caches the results."""

    def __init__(self, seconds: float = BUDGET, memory: int = MEMORY) -> None:
        super().__init__(memory, forks=True)
        self._ends: Optional[float] = None
        self._seconds = seconds
        self._known: Dict[bytes, Reply] = {}

    def compare(self, before: ReadConfig, after: ReadConfig) -> Verification:
        """Verify the parts that an edit changes; the state is ``'broken'`` if a part fails only after the edit."""
        if before.is_old or after.is_old or not (before.part('train_dataloader') or before.part('model')):
            return Verification(NOT_VERIFIED, 'MMEngine cannot build this config')
        one, other = before.written, after.written
        keys = {key for key in {*one, *other} if _differ(one.get(key), other.get(key))}
        tried: Tuple[str, ...] = ()
        doubts = []
        for name, part in PARTS.items():
            if not keys & {*part.keys, *_EVERYWHERE}:
                continue
            now = self.call(after, name, SHARE_AFTER_EDIT)
            if now.failure is not None:
                then = self.call(before, name)
                if then.works or (then.value == NO_PART_REASON and now.failure.kind not in _INCOMPLETE):
                    return Verification(BROKEN, f'{name}: {now.failure}')
            if now.works:
                tried += (name,)
            elif now.value != NO_PART_REASON:
                doubts.append(f'{name}: {now.value or now.failure}')
        if doubts or not tried:
            return Verification(NOT_VERIFIED, doubts[0] if doubts else 'mmguard does not build the edited part', tried)
        return Verification(VERIFIED, '', tried)

    def call(self, config: ReadConfig, part: str, share: float = 1.0) -> Reply:
        """Build and call a part of a config in a ``share`` of the time left, or reply why the part is not tried."""
        try:
            key = pickle.dumps((part, config.written))
        except Exception as error:  # functions and objects in the config
            return Reply(f'the config has an object that cannot be sent to a process ({error})')
        if key not in self._known:
            if self._ends is None:
                self._ends = time.monotonic() + self._seconds
            left = self._ends - time.monotonic()
            if left > 0:
                reply = self.ask(call_part, dict(config.written), part, seconds=share * left)
                if reply.failure is None or reply.failure.kind != 'hang':
                    self._known[key] = reply
        return self._known.get(key) or Reply(f'the time limit of {self._seconds:.0f} s was reached')


def _differ(one: Any, other: Any) -> bool:
    try:
        return bool(one != other)
    except Exception:  # arrays have no such attribute
        return True


@contextmanager
def open_verifier(
    config: ReadConfig, run_code: bool = False, verify: bool = True
) -> Iterator[Callable[[ReadConfig, ReadConfig], Verification]]:
    """Yield a function (config before, config after) that verifies an edit, or returns why edits are not verified."""
    if not verify:
        yield lambda *_: Verification(NOT_VERIFIED, 'skipped because of --no-verify')
    elif is_data(config.file) and not run_code:
        yield lambda *_: Verification(NOT_VERIFIED, 'code that a YAML or JSON config names is run only with --run-code')
    else:
        with Builder() as builder:
            yield builder.compare


# ---- in the process


def call_part(tree: Mapping[str, Any], part: str) -> str:
    """Build a part and call it once; return '' if the part works, or the reason why the part was not tried."""
    from mmguard.properties.program import get_program

    if not tree.get(PARTS[part].keys[0]):
        return NO_PART_REASON
    try:
        program = get_program(tree)
        for _, node in (one for split in PARTS[part].splits for one in walk(program.get_dataset_config(split))):
            path = os.path.join(str(node.get('data_root') or ''), str(node.get('ann_file') or ''))
            if os.path.isfile(path) and os.path.getsize(path) > LARGE:
                return f'{path} is too large to be read in {BUDGET:.0f} s'
        PARTS[part].call(program)
    except NoSamples:  # an edit must not remove all samples
        raise
    except Unavailable as reason:
        return str(reason)
    return ''


def _train(program: Any) -> None:
    """Compute the loss of made-up samples with the user's labels; raise if it is infinite or a label has no output."""
    import torch

    from mmguard.properties.readings import count_labels
    from mmguard.properties.samples import read_parts
    from mmguard.properties.scores import sum_losses

    problem: Exception = ValueError('no sample has labels after the pipeline')
    samples = []
    try:
        samples = [sample for sample in program.load('train', LOADED) if torch.is_tensor((sample or {}).get('inputs'))]
    except Exception as raised:  # a package or an image is missing, but the annotations may be available
        problem = raised
    labels = program.collect_labels().union(*(count_labels(read_parts(one), program.kind, None) for one in samples))
    if not samples and not labels:
        raise problem
    outside = program.find_invalid_labels(labels)
    if outside:
        raise ValueError(f'{program.find_spaces().get(program.kind).place} has no output for the labels {outside[:8]}')
    side = program.find_side()
    if labels:
        with torch.no_grad():
            loss = sum_losses(program.compute_losses(program.build_samples(side, sorted(labels))))
        if not torch.isfinite(loss):
            raise ValueError(f'the loss is {float(loss)}')


def _predict(program: Any) -> None:
    import torch
    from mmengine.dataset import pseudo_collate

    samples, model = program.build_samples(program.find_side()), program.build_model().eval()
    try:
        with torch.no_grad(), program.scope():
            model.test_step(pseudo_collate(samples[:1]))
    finally:
        model.train()


def _measure(program: Any) -> None:
    """Pass the true labels to the metrics as predictions, and raise if a metric is broken."""
    from mmguard.properties.validation import check_marks

    for result in sorted(check_marks(program), key=Result.rank):
        if result.outcome in ('broken', 'not run') or not result.data.get('tested', True):
            raise (ValueError if result.outcome == 'broken' else Unavailable)(str(result))


def _make_hooks(program: Any) -> None:
    from mmengine.registry import HOOKS

    with program.scope():
        for hook in program.config.custom_hooks:
            if isinstance(hook, dict):
                HOOKS.build(copy.deepcopy(hook))


def _check_shared_labels(program: Any) -> None:
    """Raise ValueError if a label means different classes in two training data sets."""
    from mmguard.properties.datasets import find_conflict

    conflict = find_conflict(program.read, program.build_leaves('train'))
    if conflict:
        raise ValueError(conflict)


class ProgramPart(NamedTuple):
    """Part of a program: its config keys, the function that calls it, and the splits whose files it reads."""

    keys: Tuple[str, ...]
    call: Callable[[Any], Any]
    splits: Tuple[str, ...] = ()


#: Parts in the order in which they are tried: slower parts come later.
PARTS: Dict[str, ProgramPart] = {
    'data sets': ProgramPart(
        ('train_dataloader', 'val_dataloader', 'test_dataloader'), lambda p: p.construct_datasets()
    ),
    'hooks': ProgramPart(('custom_hooks',), _make_hooks),
    'training data': ProgramPart(('train_dataloader',), lambda p: p.load('train', BATCH), ('train',)),
    'labels of all data sets': ProgramPart(('train_dataloader',), _check_shared_labels, ('train',)),
    'model': ProgramPart(('model', 'data_preprocessor'), lambda p: p.build_model()),
    'losses': ProgramPart(('model', 'data_preprocessor', 'train_dataloader'), _train, ('train',)),
    'predictions': ProgramPart(('model', 'data_preprocessor'), _predict),
    'validation data': ProgramPart(('val_dataloader',), lambda p: p.load('val', BATCH), ('val',)),
    'metrics': ProgramPart(('val_evaluator', 'val_dataloader'), _measure, ('val',)),
    'test data': ProgramPart(('test_dataloader',), lambda p: p.load('test', BATCH), ('test',)),
}
