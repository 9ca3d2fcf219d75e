"""Builds the parts of a config and calls each once; compares them before and after an edit."""

from __future__ import annotations

import copy
import os
import pickle
import time
from contextlib import contextmanager
from typing import Any, Callable, Dict, Iterator, List, Mapping, NamedTuple, Optional, Tuple

from mmguard.config.load import is_data
from mmguard.config.read import ReadConfig
from mmguard.config.tree import walk
from mmguard.properties.worker import MEMORY, Failure, Worker

#: Seconds that a command may spend on trying its edits.
BUDGET = 20.0
#: Share of the time left that a part may take after an edit: the rest is for the same part before it.
SHARE = 0.6
#: Samples of the training set that are loaded, and those of a batch.
LOADED, BATCH = 4, 2
#: Sides of the images that a model gets; the second one where it fails with the first, whatever the edit.
SIDES = (64, 256)
#: Bytes of an annotation file that takes longer to read than there is time.
LARGE = 64 << 20

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
    'predictions': ('model', 'data_preprocessor'),
    'validation data': ('val_dataloader',),
    'metrics': ('val_evaluator', 'val_dataloader'),
    'test data': ('test_dataloader',),
}
#: Keys that every part depends on.
_EVERYWHERE = ('default_scope', 'custom_imports')
#: Exceptions that a program raises where it is not complete, whatever its config says.
_INCOMPLETE = ('FileNotFoundError', 'ImportError', 'ModuleNotFoundError', 'ConnectionRefusedError')


class Builder:
    """Builds and calls parts of configs in a process of its own, and remembers how that went.

    Args:
        seconds (float): Time for all calls together.
        memory (int): Bytes that the process may hold.
    """

    def __init__(self, seconds: float = BUDGET, memory: int = MEMORY) -> None:
        self._ends: Optional[float] = None
        self._seconds = seconds
        self._worker = Worker(memory, forks=True)
        self._known: Dict[bytes, Outcome] = {}

    def call(self, config: ReadConfig, part: str, side: int = SIDES[0], share: float = 1.0) -> Outcome:
        """Build a part of a config and call it once; what was tried before is not tried again.

        Args:
            config (ReadConfig): It, or it with an edit.
            part (str): A key of ``PARTS``.
            side (int): Of the images that a model gets.
            share (float): Share of the time left that it may take.
        """
        try:
            key = pickle.dumps((part, side, {key: config.written.get(key) for key in (*PARTS[part], *_EVERYWHERE)}))
        except Exception as error:  # functions and objects of the config's own
            return Outcome(part, untried=f'the config holds what cannot be handed to a process ({error})')
        if key not in self._known:
            if self._ends is None:
                self._ends = time.monotonic() + self._seconds
            left = self._ends - time.monotonic()
            if left > 0:
                reply = self._worker.ask(call_part, dict(config.written), part, side, seconds=share * left)
                if reply.failure is None or reply.failure.kind != 'hang':
                    self._known[key] = Outcome(part, reply.failure, reply.value or '')
        return self._known.get(key) or Outcome(part, untried=f'the {self._seconds:.0f} s for trying edits were up')

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
            now, worked = self._compare(before, after, part)
            if now.works:
                tried.append(part)
            elif worked:
                return Verdict(BROKEN, f'{part}: {now.failure}')
            elif now.untried != ABSENT:
                doubts.append(f'{part}: {now.untried or now.failure}')
        if doubts or not tried:
            return Verdict(NOT_VERIFIED, doubts[0] if doubts else 'nothing that it touches is built', tuple(tried))
        return Verdict(VERIFIED, parts=tuple(tried))

    def _compare(self, before: ReadConfig, after: ReadConfig, part: str) -> Tuple[Outcome, bool]:
        """Return how a part goes after an edit, and where it fails whether it worked, or may have worked, before."""
        for side in SIDES if part in ('losses', 'predictions') else SIDES[:1]:
            now = self._builder.call(after, part, side, SHARE)
            if now.failure is None:
                break
            then = self._builder.call(before, part, side)
            if then.works or (then.untried and now.failure.kind not in _INCOMPLETE):
                return now, True
        return now, False


@contextmanager
def verifier_of(config: ReadConfig, run_code: bool = False, verify: bool = True) -> Iterator[Callable[..., Verdict]]:
    """Make the verifier of a command; where nothing is to be built it says why.

    Args:
        config (ReadConfig): As the user named it: YAML and JSON are data, and are not run.
        run_code (bool): Whether they may be, too.
        verify (bool): Whether the user wants it.
    """
    if not verify:
        yield lambda *_: Verdict(NOT_VERIFIED, 'left out by --no-verify')
    elif is_data(config.file) and not run_code:
        yield lambda *_: Verdict(NOT_VERIFIED, 'YAML and JSON are data, and are not run without --run-code')
    else:
        with Builder() as builder:
            yield Verifier(builder)


#: Why a part was not tried that the config does not have.
ABSENT = 'the config has none'


# ---- in the process


def call_part(tree: Mapping[str, Any], part: str, side: int) -> str:
    """Build a part and call it once, with images of this side. Returns why it was not tried; empty: it works.

    Raises:
        Exception: Whatever the program raises.
    """
    from mmguard.properties.result import Unavailable

    if not tree.get(PARTS[part][0]):
        return ABSENT
    try:
        _CALLS[part](_program(tree), side)
    except Unavailable as reason:
        return str(reason)
    return ''


_programs: Dict[bytes, Any] = {}


def _program(tree: Mapping[str, Any]) -> Any:
    """Return the program of a config: the last two are kept, those before and after an edit."""
    import torch

    from mmguard.properties.program import Program

    torch.set_num_threads(1)  # a pool of threads does not survive a fork
    key = pickle.dumps(tree)
    if key not in _programs:
        while len(_programs) > 1:
            _programs.pop(next(iter(_programs)))
        _programs[key] = Program(tree)
    return _programs[key]


def _load(split: str) -> Callable[[Any, int], None]:
    def load(program: Any, _: int) -> None:
        _check_size(program, split)
        program.load(split, BATCH)

    return load


def _check_size(program: Any, split: str) -> None:
    """Raise ``Unavailable`` where an annotation file of a split is too large."""
    from mmguard.properties.result import Unavailable

    for _, node in walk(program.dataset_config(split)):
        path = os.path.join(str(node.get('data_root') or ''), str(node.get('ann_file') or ''))
        if os.path.isfile(path) and os.path.getsize(path) > LARGE:
            raise Unavailable(f'{path} is too large to be read in {BUDGET:.0f} s')


def _train(program: Any, side: int) -> None:
    """Call the model with samples of the data, and with a made one for the labels that these do not show."""
    import torch

    from mmguard.properties.program import total
    from mmguard.properties.samples import labels_of, shrink

    _check_size(program, 'train')
    try:
        samples = [sample for sample in program.load('train', LOADED) if torch.is_tensor((sample or {}).get('inputs'))]
        problem: Exception = ValueError('the pipeline leaves no sample with an image')
    except Exception as raised:  # a package or an image is missing, but the annotations may be here
        samples, problem = [], raised
    labels = program.annotated_labels().union(*(labels_of(sample, program.kind) for sample in samples))
    if not samples and not labels:
        raise problem
    space = program.spaces().of(program.kind)
    outside = [label for label in sorted(labels) if space is not None and not space.is_valid(label)]
    if outside and space is not None and (program.kind == 'instances' or set(outside) != {program.ignore_index}):
        raise ValueError(f'no output of {space.place} for the labels {outside[:8]}')

    batch = [shrink(sample, side) for sample in samples[:BATCH]]
    batches = [(batch * BATCH)[:BATCH]] if batch else []  # BatchNorm needs two
    if labels - set().union(*(labels_of(sample, program.kind) for sample in batch)):
        batches.append(program.samples_of(sorted(labels), side, BATCH))
    for batch in batches:
        with torch.no_grad():
            loss = total(program.losses(batch, side))
        if not torch.isfinite(loss):
            raise ValueError(f'the loss is {float(loss)}')


def _measure(program: Any, _: int) -> None:
    _check_size(program, 'val')
    program.metrics('val')


def _predict(program: Any, side: int) -> None:
    import torch
    from mmengine.dataset import pseudo_collate

    model = program.model().eval()
    try:
        with torch.no_grad(), program.scope():
            model.test_step(pseudo_collate([program.plain_sample(0, side)]))
    finally:
        model.train()


def _hooks(program: Any, _: int) -> None:
    from mmengine.registry import HOOKS

    with program.scope():
        for hook in program.config.custom_hooks:
            if isinstance(hook, dict):
                HOOKS.build(copy.deepcopy(hook))


_CALLS: Dict[str, Callable[[Any, int], Any]] = {
    'data sets': lambda program, _: program.construct_datasets(),
    'training data': _load('train'),
    'validation data': _load('val'),
    'test data': _load('test'),
    'model': lambda program, _: program.model(),
    'losses': _train,
    'predictions': _predict,
    'metrics': _measure,
    'hooks': _hooks,
}
