"""Tracer that runs samples of a config's data set through their pipeline and records each step."""

from __future__ import annotations

import warnings
from collections import Counter
from dataclasses import dataclass, field, replace
from typing import Any, Callable, Dict, List, Optional

from mmguard.commands.samples import Sample, Samples, build_dataset, get_random_state, open_program
from mmguard.commands.trace.snapshot import (
    Change,
    Fault,
    Snapshot,
    find_changes,
    find_map_faults,
    read_annotations,
    take,
)
from mmguard.errors import CannotRun
from mmguard.properties.datasets import find_innermost, seed_all, walk_datasets, watch_steps
from mmguard.properties.pipelines import preprocess
from mmguard.text import describe_error

#: Function that takes a sample's info, its stored annotations and its pipeline's result, and returns pictures.
Draw = Callable[[Dict[str, Any], Snapshot, Any], List[Any]]


@dataclass
class StepTrace:
    """Step of a trace: its name, the sample after it, its changes and the new mistakes."""

    name: str
    after: Snapshot
    changes: List[Change] = field(default_factory=list)
    faults: List[Fault] = field(default_factory=list)


@dataclass
class SampleTrace:
    """Traced sample, with the ``error`` if its pipeline ended early.

    ``is_random`` is True if another seed may give another result. ``panels`` are pictures, if they were requested.
    """

    index: int
    image: str
    seed: int = 0
    legs: List[StepTrace] = field(default_factory=list)
    error: str = ''
    is_random: bool = False
    panels: List[Any] = field(default_factory=list)
    _last: Snapshot = field(default_factory=lambda: Snapshot('nothing'))

    def holds(self, value: int) -> bool:
        return any(leg.after.holds(value) for leg in self.legs)

    def run_step(self, transform: Any, results: Any) -> Any:
        """Run a transform on the sample, record its changes, and return its result."""
        others = results.get('mix_results') if isinstance(results, dict) else None
        mixed = {str(one.get('img_path')): take('', one) for one in others or ()}
        results = transform(results)
        self.add(transform, take(type(transform).__name__, results), mixed)
        return results

    def add(self, transform: Any, after: Snapshot, mixed: Dict[str, Snapshot]) -> None:
        """Record the changes and new faults that a transform made."""
        before, stored = self._last, self.legs[0].after
        if before.label is None and after.label is not None:
            before = replace(before, label=stored.label, label_map=stored.label_map)
        if before.instances is None and after.instances is not None:
            before = replace(before, instances=stored.instances)
        new = Counter(fault.what for fault in after.faults) - Counter(fault.what for fault in before.faults)
        faults = [
            fault for what, more in new.items() for fault in [one for one in after.faults if one.what == what][-more:]
        ]
        faults += find_map_faults(before, after, transform)
        changes = [] if after.note else find_changes(before, after, transform, mixed)
        self.legs.append(StepTrace(after.step, after, changes, faults))
        self._last = before if after.note else after


class Tracer:
    """Runner that sends samples through their pipeline and records each step; sample ``i`` has seed ``seed + i``."""

    def __init__(self, config: Any, split: str = 'train', seed: int = 0, draw: Optional[Draw] = None) -> None:
        self._program = open_program(config)
        self._seed, self._draw = seed, draw
        self._training = split == 'train'
        self._samples = Samples(build_dataset(self._program, split))

    def __len__(self) -> int:
        return len(self._samples)

    def find(self, sample: str) -> int:
        """Return the index of a sample that is given as an index, or as a path (or its end) of its image or label."""
        if not sample.lstrip('-').isdigit():
            return self._samples.find(sample)[1][0].number
        if not 0 <= int(sample) < len(self):
            raise CannotRun(f'--sample {sample}: the data set holds samples 0 to {len(self) - 1}')
        return int(sample)

    def trace(self, number: int, turn: int = 0) -> SampleTrace:
        """Run the pipeline on one sample; ``turn``, the number of the repetition, is added to the seed.

        An exception ends the trace and becomes the ``error`` of the result.
        """
        sample = self._samples[number]
        for dataset in find_innermost(sample.dataset):
            if not hasattr(getattr(dataset, 'pipeline', None), 'transforms'):
                raise CannotRun(f'{type(dataset).__name__} has no pipeline with a list of transforms to trace')
        with self._program.scope(), warnings.catch_warnings():
            warnings.simplefilter('ignore')
            try:
                info = sample.info
            except Exception as error:
                raise CannotRun(f'sample {number}: {describe_error(error)}') from error
            stored = read_annotations(info)
            begun = StepTrace(stored.step, stored, find_changes(Snapshot('nothing'), stored, None, {}), stored.faults)
            story = SampleTrace(number, str(info.get('img_path') or '<unknown>'), self._seed + turn, [begun])
            results = None
            try:
                results = self._run(sample, story)
                batch = None if results is None else preprocess(self._program, results, self._training)
                if batch is not None:  # it may pad the label map
                    story.add(self._program.build_preprocessor(), take(*batch), {})
            except Exception as error:
                story.error = describe_error(error)
            if self._draw is not None:
                story.panels = self._draw(info, stored, results)
        return story

    def _run(self, sample: Sample, story: SampleTrace) -> Any:
        """Load the sample from each of its nested data sets, always with the same seed, so that it stays the same."""
        results: Any = None
        for dataset in sample.stages:
            seed_all(story.seed + story.index)
            drawn = get_random_state()
            with watch_steps(walk_datasets(dataset) if dataset is sample.stages[0] else [dataset], story.run_step):
                results = getattr(dataset, 'prepare_data', dataset.__getitem__)(sample.index)
            story.is_random |= drawn != get_random_state()
            if results is None:
                story.error = 'the pipeline dropped the sample (perhaps no target was left); training draws another one'
                break
        return results

    def repeat(self, samples: int, number: Optional[int] = None) -> List[SampleTrace]:
        """Return ``samples`` traces: of evenly spread samples or, if given, of sample ``number`` with several seeds."""
        chosen = [turn * len(self) // samples for turn in range(samples)]
        return [self.trace(one if number is None else number, turn) for turn, one in enumerate(chosen)]
