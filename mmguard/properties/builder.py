"""Builds the parts of a config and calls each once; compares them before and after an edit."""

from __future__ import annotations

import copy
import pickle
import time
from contextlib import contextmanager
from typing import Any, Callable, Dict, Iterator, List, Mapping, NamedTuple, Optional, Set, Tuple

from mmguard.config.load import is_data
from mmguard.config.read import ReadConfig
from mmguard.properties.worker import MEMORY, Failure, Worker

#: Seconds that a command may spend on trying its edits.
BUDGET = 20.0
#: Samples of the training set that are loaded; how many of them train, two by two, and the side that they get.
LOADED, TRAINED, SIDE = 8, 4, 128

VERIFIED, BROKEN, NOT_VERIFIED = ('verified', 'broken', 'not verified')


class Outcome(NamedTuple):
    """Record of a part that was built and called.

    Attributes:
        part (str): Its name, one of ``PARTS``.
        failure (Failure, optional): Why it does not work.
        untried (str): Why it could not be tried: it is missing, or the time was up.
    """

    part: str
    failure: Optional[Failure] = None
    untried: str = ''

    @property
    def works(self) -> bool:
        return self.failure is None and not self.untried


class Verdict(NamedTuple):
    """Answer of a verifier.

    Attributes:
        state (str): ``'verified'``, ``'broken'`` or ``'not verified'``.
        reason (str): What breaks, or why it could not be verified.
        parts (tuple[str]): What was built and called before and after.
    """

    state: str
    reason: str = ''
    parts: Tuple[str, ...] = ()


#: Part -> the keys of the config that it is built of, in the order in which an edit is tried.
PARTS: Dict[str, Tuple[str, ...]] = {
    'data sets': ('train_dataloader', 'val_dataloader', 'test_dataloader'),
    'hooks': ('custom_hooks',),
    'training data': ('train_dataloader',),
    'model': ('model', 'data_preprocessor'),
    'losses': ('model', 'data_preprocessor', 'train_dataloader'),
    'validation data': ('val_dataloader',),
    'metrics': ('val_evaluator', 'val_dataloader'),
    'predictions': ('model', 'data_preprocessor', 'val_dataloader'),
    'test data': ('test_dataloader',),
}
#: Keys that every part depends on.
_EVERYWHERE = ('default_scope', 'custom_imports')


class Builder:
    """Builds and calls parts of configs in a process of its own, and remembers how that went.

    Args:
        seconds (float): Time for all calls together.
        memory (int): Bytes that the process may hold.
    """

    def __init__(self, seconds: float = BUDGET, memory: int = MEMORY) -> None:
        self._ends: Optional[float] = None
        self._seconds = seconds
        self._worker = Worker(memory)
        self._known: Dict[bytes, Outcome] = {}

    def call(self, config: ReadConfig, part: str) -> Outcome:
        """Build a part of a config and call it once; what was tried before is not tried again."""
        tree = {key: config.written.get(key) for key in (*PARTS[part], *_EVERYWHERE)}
        try:
            key = pickle.dumps((part, tree))
        except Exception as error:  # functions and objects of the config's own
            return Outcome(part, untried=f'the config holds what cannot be handed to a process ({error})')
        if key not in self._known:
            if self._ends is None:
                self._ends = time.monotonic() + self._seconds
            left = self._ends - time.monotonic()
            if left <= 0:
                return Outcome(part, untried=f'the time for trying edits ({self._seconds:.0f} s) was up')
            reply = self._worker.ask(call_part, dict(config.written), part, seconds=left)
            if reply.failure is not None and reply.failure.kind == 'hang':
                self._known[key] = Outcome(part, untried=f'it {reply.failure.message}')
            else:
                self._known[key] = Outcome(part, reply.failure, reply.value or '')
        return self._known[key]

    def close(self) -> None:
        """End the process."""
        self._worker.close()

    def __enter__(self) -> Builder:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()


class Verifier:
    """Compares the parts that an edit touches before and after it.

    Args:
        builder (Builder): Builds them.
    """

    def __init__(self, builder: Builder) -> None:
        self._builder = builder

    def __call__(self, before: ReadConfig, after: ReadConfig) -> Verdict:
        """Return ``broken`` where anything fails that is not known to have failed before."""
        if before.is_old or after.is_old or not (before.part('train_dataloader') or before.part('model')):
            return Verdict(NOT_VERIFIED, 'MMEngine cannot build this config')
        keys = {key for key in {*before.written, *after.written} if before.written.get(key) != after.written.get(key)}
        touched = [part for part, of in PARTS.items() if keys & {*of, *_EVERYWHERE}]
        tried: List[str] = []
        doubts: List[str] = []
        for part in touched:
            now = self._builder.call(after, part)
            if now.works:
                tried.append(part)
            elif now.failure is not None and self._builder.call(before, part).failure is None:
                return Verdict(BROKEN, f'the {part} worked before, or there was no time to see it; now: {now.failure}')
            elif now.untried != ABSENT:
                doubts.append(f'{part}: {now.untried or now.failure}')
        if doubts or not tried:
            return Verdict(NOT_VERIFIED, doubts[0] if doubts else 'nothing that it touches is built', tuple(tried))
        return Verdict(VERIFIED, parts=tuple(tried))


@contextmanager
def verifier_of(config: ReadConfig, run_code: bool = False, verify: bool = True) -> Iterator[Tuple[Any, str]]:
    """Make the verifier of a command.

    Args:
        config (ReadConfig): As the user named it: YAML and JSON are data, and are not run.
        run_code (bool): Whether they may be, too.
        verify (bool): Whether the user wants it.

    Yields:
        tuple: the verifier, or ``None`` and the reason.
    """
    if not verify:
        yield None, 'left out by --no-verify'
    elif is_data(config.file) and not run_code:
        yield None, 'YAML and JSON are data, and are not run without --run-code'
    else:
        with Builder() as builder:
            yield Verifier(builder), ''


#: Why a part was not tried that the config does not have.
ABSENT = 'the config has none'


# ---- in the process


def call_part(tree: Mapping[str, Any], part: str) -> str:
    """Build a part and call it once. Returns why it was not tried; empty: it works.

    Raises:
        Exception: Whatever the program raises.
    """
    if not tree.get(PARTS[part][0]):
        return ABSENT
    _CALLS[part](_program(tree))
    return ''


_programs: Dict[bytes, Any] = {}


def _program(tree: Mapping[str, Any]) -> Any:
    """Return the program of a config: the last two are kept, those before and after an edit."""
    from mmguard.properties.program import Program

    key = pickle.dumps(tree)
    if key not in _programs:
        while len(_programs) > 1:
            _programs.pop(next(iter(_programs)))
        _programs[key] = Program(tree)
    return _programs[key]


def _load(split: str) -> Callable[[Any], None]:
    def load(program: Any) -> None:
        program.load(split, 2)

    return load


def _train(program: Any) -> None:
    import torch

    from mmguard.properties.program import total
    from mmguard.properties.samples import labels_of, shrink

    samples = [sample for sample in program.load('train', LOADED) if sample is not None]
    samples = [sample for sample in samples if torch.is_tensor(sample.get('inputs'))]
    if not samples:
        raise ValueError('the pipeline leaves no sample with an image')
    labelled = [(labels_of(sample['data_samples']), sample) for sample in samples]
    chosen = [shrink(sample, SIDE) for sample in _choose_samples(labelled, TRAINED)]
    chosen += chosen[:1] * (len(chosen) % 2)  # BatchNorm needs two
    for first in range(0, len(chosen), 2):
        with torch.no_grad():
            loss = total(program.losses(chosen[first : first + 2], SIDE))
        if not torch.isfinite(loss):
            raise ValueError(f'the loss is {float(loss)}')


def _choose_samples(left: List[Tuple[Set[int], Any]], most: int) -> List[Any]:
    """Choose samples that hold, together, as many labels as possible: large ones before small ones."""
    chosen: List[Any] = []
    seen: Set[int] = set()
    while left and len(chosen) < most:
        best = max(left, key=lambda one: sum(1 + label for label in one[0] - seen))
        left = [one for one in left if one is not best]
        seen |= best[0]
        chosen.append(best[1])
    return chosen


def _predict(program: Any) -> None:
    import torch
    from mmengine.dataset import pseudo_collate

    from mmguard.properties.samples import shrink

    sample = next(filter(None, program.load('val', 1)))
    model = program.model().eval()
    try:
        with torch.no_grad(), program.scope():
            model.test_step(pseudo_collate([shrink(sample, SIDE)]))
    finally:
        model.train()


def _hooks(program: Any) -> None:
    from mmengine.registry import HOOKS

    with program.scope():
        for hook in program.config.custom_hooks:
            if isinstance(hook, dict):
                HOOKS.build(copy.deepcopy(hook))


_CALLS: Dict[str, Callable[[Any], Any]] = {
    'data sets': lambda program: program.construct_datasets(),
    'training data': _load('train'),
    'validation data': _load('val'),
    'test data': _load('test'),
    'model': lambda program: program.model(),
    'losses': _train,
    'predictions': _predict,
    'metrics': lambda program: program.metrics('val'),
    'hooks': _hooks,
}
