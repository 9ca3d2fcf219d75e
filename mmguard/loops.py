"""Log and guard for your own training loop. The guard sanitizes the labels of each batch, and logs invalid ones.

Does not import a framework; :mod:`mmguard.lightning` has the guard as a callback.
"""

from __future__ import annotations

import atexit
import copy
import logging
import os
import warnings
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Set, Tuple

import numpy as np
import torch
import torch.distributed as dist
from torch import Tensor

from mmguard.detection import guard_targets
from mmguard.functional.validate import format_shape
from mmguard.labels.rules import LabelMap, LabelRule, check_int, check_num_classes
from mmguard.labels.tally import LabelGuardError, Tally
from mmguard.log.messages import ConsoleLines, describe_skipped_ratio
from mmguard.log.run_log import ModeStats, RunLog
from mmguard.log.statistics import KINDS, Stats
from mmguard.text import visible

#: Keys of the targets in a batch that is a dict, in the order in which they are looked up.
KEYS = ('targets', 'target', 'labels', 'label', 'masks', 'mask')
#: Iterations between two lines on the console, after the first three with invalid labels.
INTERVAL = 50

_LOGGER = logging.getLogger('mmguard')


class TallyLog:
    """Log of a training: a line in ``label_guard.jsonl`` for each iteration with skipped or remapped labels.

    Each line is passed to the operating system immediately, so that no line is missing after a crash. The sums over
    all iterations are in ``label_guard.json`` in the same folder, updated once a minute, by ``close``, and when Python
    ends. A full disk is reported once, and the training continues. Ranks of ``torch.distributed`` have their own files,
    ``label_guard.rank1.jsonl`` and so on.

    Args:
        folder (str): Folder of the files; created at the first iteration.
        num_classes (int, optional): Labels ``[0, num_classes)`` are valid; if ``None``, no report names a cause.
        ignore_index (int, optional): The label that is excluded from the loss.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder, TallyLog(folder, num_classes=264) as log:
        ...     _ = log.write(1, [Tally(total=4)])  # no line: nothing to report
        ...     _ = log.write(2, [Tally(4, skipped=1, values={600: 1}, source='image_id 42', reasons={'label': 1})])
        ...     print(open(log.path).read()[:42])
        {"mode": "train", "iter": 2, "skipped_pixe
    """

    def __init__(self, folder: str, num_classes: Optional[int] = None, ignore_index: Optional[int] = None) -> None:
        ranks = dist.is_available() and dist.is_initialized()
        for name, value in (('num_classes', num_classes), ('ignore_index', ignore_index)):
            if value is not None:
                check_int(name, value)
        rank, world_size = (dist.get_rank(), dist.get_world_size()) if ranks else (0, 1)
        self._folder = folder
        self._log = RunLog(folder, rank, world_size, framework='pytorch')
        self._num_classes = num_classes
        self._ignore_index = ignore_index
        self._open: Set[str] = set()
        atexit.register(self._close_at_exit)

    @property
    def path(self) -> str:
        """Path of ``label_guard.jsonl``."""
        return self._log.lines

    @property
    def modes(self) -> Dict[str, ModeStats]:
        """Statistics as {mode: statistics}, with the modes ``'train'``, ``'val'`` and ``'test'``."""
        return self._log.modes

    def write(self, iteration: int, tallies: Sequence[Tally], kind: str = 'instances', mode: str = 'train') -> Stats:
        """Add an iteration to the sums, and write a line if a label was skipped or remapped.

        Args:
            iteration (int): Number of the iteration, counted from 1 over the whole training.
            tallies (Sequence[Tally]): One per image, e.g. from ``guard_targets(..., return_tally=True)``.
            kind (str): What the tallies count: ``'instances'`` or ``'pixels'``.
            mode (str): ``'train'``, ``'val'`` or ``'test'``.

        Returns:
            Stats: The sum of the tallies.

        Raises:
            TypeError: ``iteration`` is not an integer.
            ValueError: ``kind`` is unknown.
        """
        if kind not in KINDS:
            raise ValueError(f'kind must be one of {", ".join(map(repr, KINDS))}, got {kind!r}')
        place = {'iter': check_int('iteration', iteration)}
        stats = Stats()
        for tally in tallies:
            stats.add_image({kind: vars(tally)})
        if kind == 'instances':
            stats.empty_images = sum(tally.total == tally.skipped for tally in tallies)
        if mode not in self._open:
            self._open.add(mode)
            guard = {'kind': kind, 'num_classes': self._num_classes, 'ignore_index': self._ignore_index}
            self._log.begin(mode, {} if self._num_classes is None else {'guards': [guard]})
        sources = [str(tally.source) for tally in tallies if tally.source is not None]
        self._log.see(mode, place, stats.end_iteration(), sources)
        self._warn_of_problems()
        return stats

    def close(self) -> None:
        """Write the sums. A later call of :meth:`write` starts a new count in the same file."""
        for mode in self._open:
            self._log.end(mode)
        self._open.clear()
        self._log.close()
        self._warn_of_problems()

    def __enter__(self) -> TallyLog:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def _close_at_exit(self) -> None:
        if os.path.isdir(self._folder):  # a removed temporary folder is not created again
            self.close()

    def _warn_of_problems(self) -> None:
        for problem in self._log.take_problems():
            warnings.warn(f'mmguard: {visible(problem)}', stacklevel=3)


class LabelGuard:
    """Guard for the batches of a training loop: call the guard with each batch, and train on the returned batch.

    It sanitizes label maps (integers (N, H, W) or (N, 1, H, W)) and the targets of detectors (one dict per image, see
    :func:`~mmguard.detection.guard_targets`). Your batch and its tensors are never modified; a batch without invalid
    labels is returned as it is. Call the guard before ``.to(device)``: labels are read on the host. As a context
    manager, the guard completes the log at the end. The counts are those of this process: each rank of
    ``torch.distributed`` has its own files.

    Args:
        num_classes (int): Valid labels are ``[0, num_classes)``.
        folder (str): Folder of ``label_guard.jsonl`` and ``label_guard.json``, which ``mmguard report`` and
            ``mmguard.read_log`` read.
        targets (callable, optional): Returns the targets in a batch. Default: see :func:`find_targets`.
        sources (callable, optional): Returns the names of the label files of a batch, one per image.
        ignore_index (int): The ignored value of label maps.
        on_invalid (str, optional): What to do with invalid labels. Default: ``'ignore'``, or ``'drop'`` for instances.
        label_map (dict[int, int], optional): Raw label -> class, applied first.
        max_skipped_ratio (float, optional): In [0, 1]. Training stops with ``LabelGuardError`` once a larger share of
            all labels seen in training was skipped.
        options: For instances, other arguments of ``guard_targets``: ``min_label``, ``label_key``, ``box_format``,
            ``check_boxes``, ``instance_keys``.

    Attributes:
        totals (dict[str, Stats]): {``'train'``, ``'val'`` or ``'test'``: sums over all batches of this mode}.

    Raises:
        TypeError, ValueError: An argument is invalid, or a batch has an unsupported form.
        LabelGuardError: See ``max_skipped_ratio``; or a label is invalid, and ``on_invalid`` is ``'raise'``.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder, LabelGuard(num_classes=19, folder=folder) as guard:
        ...     images, labels = guard((torch.zeros(1, 3, 1, 3), torch.tensor([[[0, 19, 255]]])))
        >>> labels.tolist(), guard.totals['train'].kinds['pixels'].skipped
        ([[[0, 255, 255]]], 1)
    """

    def __init__(
        self,
        num_classes: int,
        folder: str,
        *,
        targets: Optional[Callable[[Any], Any]] = None,
        sources: Optional[Callable[[Any], Sequence[str]]] = None,
        ignore_index: int = 255,
        on_invalid: Optional[str] = None,
        label_map: Optional[LabelMap] = None,
        max_skipped_ratio: Optional[float] = None,
        **options: Any,
    ) -> None:
        if max_skipped_ratio is not None and not 0 <= max_skipped_ratio <= 1:
            raise ValueError(f'max_skipped_ratio must be a number in [0, 1], got {max_skipped_ratio!r}')
        self.folder = folder
        self.totals: Dict[str, Stats] = {}
        self._num_classes = check_num_classes(num_classes)
        self._ignore_index = check_int('ignore_index', ignore_index)
        self._on_invalid = on_invalid
        self._label_map = label_map
        self._limit = max_skipped_ratio
        self._options = options
        self._find = find_targets if targets is None else targets
        self._list_sources = sources
        self._rule: Optional[LabelRule] = None
        self._log: Optional[TallyLog] = None
        self._console = ConsoleLines()

    def __call__(self, batch: Any, mode: str = 'train') -> Any:
        """Count the labels of a batch, which may be the targets alone, and return the batch with sanitized labels."""
        guarded, kind, tallies = self.sanitize(batch)
        self._count(mode, kind, tallies)
        return guarded

    def sanitize(self, batch: Any) -> Tuple[Any, str, List[Tally]]:
        """Return the batch with sanitized labels, the kind of labels, and a tally per image, without logging."""
        targets = self._find(batch)
        sources = None if self._list_sources is None else self._list_sources(batch)
        if _is_label_map(targets):
            kind, (guarded, tallies) = 'pixels', self._sanitize_maps(targets, sources)
        elif _is_targets(targets):
            kind, listed = 'instances', targets if isinstance(targets, (list, tuple)) else list(targets)
            guarded, tallies = guard_targets(
                listed,
                self._num_classes,
                self._on_invalid or 'drop',
                label_map=self._label_map,
                sources=sources,
                return_tally=True,
                **self._options,
            )
        else:
            raise TypeError(
                'expected label maps (integers (N, H, W) or (N, 1, H, W)) or a list of dicts (one per image), got '
                f'{_describe(targets)}: pass targets=, a function that returns the targets in a batch'
            )
        unchanged = guarded is (targets if kind == 'pixels' else listed)
        return (batch if unchanged else _replace(batch, targets, guarded)), kind, tallies

    def _sanitize_maps(self, labels: Tensor, sources: Optional[Sequence[str]]) -> Tuple[Tensor, List[Tally]]:
        if self._rule is None:
            self._rule = LabelRule(self._num_classes, self._ignore_index, self._on_invalid or 'ignore', self._label_map)
        if sources is not None and len(sources) != len(labels):
            raise ValueError(f'expected one source per label map, got {len(sources)} sources for {len(labels)} maps')
        maps = labels.detach().cpu().numpy()
        names: Sequence[Optional[str]] = [None] * len(maps) if sources is None else sources
        pairs = [self._rule.sanitize(one, name) for one, name in zip(maps, names)]
        tallies = [tally for _, tally in pairs]
        if not any(tally.changed for tally in tallies):
            return labels, tallies
        return torch.from_numpy(np.stack([new for new, _ in pairs])).to(labels.device), tallies

    def _count(self, mode: str, kind: str, tallies: List[Tally]) -> None:
        if self._log is None:
            self._log = TallyLog(self.folder, self._num_classes, self._ignore_index if kind == 'pixels' else None)
        total = self.totals.setdefault(mode, Stats())
        place = {'iter': total.iterations + 1}
        stats = self._log.write(place['iter'], tallies, kind, mode)
        total.add_sums(stats)
        line = self._console.add(mode, place, stats)
        if not line and place['iter'] % INTERVAL == 0:
            line = self._console.end_window(mode)
        _print(line)
        seen = total.kinds[kind]
        if mode == 'train' and self._limit is not None and seen.skipped > self._limit * seen.total:
            worst = self._log.modes[mode].find_worst(kind, 5)
            raise LabelGuardError(describe_skipped_ratio(seen.skipped / seen.total, self._limit, worst), worst)

    def close(self) -> None:
        """Write the sums, and print a table of the worst files; a later batch continues the log."""
        log, self._log = self._log, None
        if log is not None:
            log.close()
            for mode, loop in log.modes.items():
                _print(self._console.end_loop(mode, loop, log.path), bool(loop.sums))

    def __enter__(self) -> LabelGuard:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()


def find_targets(batch: Any) -> Any:
    """Return the targets in a batch: label maps, or a list with a dict per image; ``None`` if it has no targets.

    The batch itself may be the targets. In a tuple or list, targets follow the images; in a dict, they have one of the
    keys in :data:`KEYS`. The first match is returned.

    Example:
        >>> find_targets({'image': torch.zeros(1, 3, 2, 2), 'mask': torch.ones(1, 2, 2, dtype=torch.int64)})
        tensor([[[1, 1],
                 [1, 1]]])
    """
    if _is_label_map(batch) or _is_targets(batch):
        return batch
    parts: Sequence[Any] = ()
    if isinstance(batch, Mapping):
        parts = [batch[key] for key in KEYS if key in batch]
    elif isinstance(batch, (list, tuple)):
        parts = batch[1:]
    return next((part for part in parts if _is_label_map(part) or _is_targets(part)), None)


def _is_label_map(value: Any) -> bool:
    if not isinstance(value, Tensor) or value.is_floating_point() or value.is_complex():
        return False
    return value.dim() == 3 or (value.dim() == 4 and value.shape[1] == 1)


def _is_targets(value: Any) -> bool:
    """Return True if the value is a sequence of dicts: a list, a tuple, or another sequence, as some loaders return."""
    if isinstance(value, (Tensor, Mapping, str)) or not (hasattr(value, '__len__') and hasattr(value, '__getitem__')):
        return False
    return len(value) > 0 and isinstance(value[0], Mapping)


def _replace(batch: Any, targets: Any, guarded: Any) -> Any:
    """Return a copy of the batch with other targets; raise if the batch does not contain the object ``targets``."""
    replaced = _replace_in(batch, targets, guarded)
    if replaced is batch:
        raise ValueError(
            'the function targets= must return an object that the batch contains, not a copy or a new list'
        )
    return replaced


def _replace_in(batch: Any, targets: Any, guarded: Any) -> Any:
    """Copy the batch with ``guarded`` in place of ``targets``; return the batch itself if it does not contain them."""
    if batch is targets:
        return guarded
    if isinstance(batch, Tensor):
        return batch
    if isinstance(batch, (list, tuple)):
        parts = [_replace_in(part, targets, guarded) for part in batch]
        if all(new is old for new, old in zip(parts, batch)):
            return batch
        return type(batch)(*parts) if hasattr(batch, '_fields') else type(batch)(parts)
    fields = batch if isinstance(batch, Mapping) else getattr(batch, '__dict__', {})
    for name, part in fields.items():
        new = _replace_in(part, targets, guarded)
        if new is not part:
            changed = copy.copy(batch)
            if isinstance(batch, Mapping):
                changed[name] = new
            else:
                setattr(changed, name, new)
            return changed
    return batch


def _describe(value: Any) -> str:
    if isinstance(value, Tensor):
        return f'{value.dtype} {format_shape(value)}'
    return 'nothing' if value is None else type(value).__name__


def _print(line: str, has_invalid: bool = True) -> None:
    if line:
        _LOGGER.log(logging.WARNING if has_invalid else logging.INFO, line)
