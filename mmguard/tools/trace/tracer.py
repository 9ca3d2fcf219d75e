"""Tracer that runs samples of a config's data set through their pipeline and records each step."""

from __future__ import annotations

import warnings
from collections import Counter
from dataclasses import dataclass, field, replace
from typing import Any, List, Optional, Set

from mmguard.errors import CannotRun
from mmguard.properties.datasets import find_innermost, seed_all
from mmguard.text import describe_error
from mmguard.tools.samples import Sample, Samples, build_dataset, get_random_state, open_program
from mmguard.tools.trace.changes import Change, find_changes, map_faults
from mmguard.tools.trace.snapshot import Fault, Recorder, Run, Snapshot, Step, take


class Tracer:
    """Runner of single samples through their pipeline that records each step; sample ``i`` has seed ``seed + i``."""

    def __init__(self, config: Any, split: str = 'train', seed: int = 0) -> None:
        self._program = open_program(config)
        self._seed = seed
        self._training = split == 'train'
        self._samples = Samples(build_dataset(self._program, split))
        self._recorder = Recorder()
        self._watched: Set[int] = set()

    def __len__(self) -> int:
        return len(self._samples)

    def find(self, sample: str) -> int:
        """Return the index of a sample, given as an index or as the (end of the) path of its image or label file."""
        if not sample.lstrip('-').isdigit():
            return self._samples.find(sample)[1][0].number
        if not 0 <= int(sample) < len(self):
            raise CannotRun(f'--sample {sample}: the data set holds samples 0 to {len(self) - 1}')
        return int(sample)

    def trace(self, number: int, turn: int = 0) -> SampleTrace:
        """Run the pipeline on one sample; each repetition uses another seed.

        An exception ends the trace, and is reported in it.
        """
        sample, recorder = self._samples[number], self._recorder
        recorder.runs.clear()
        seed_all(self._seed + turn + number)
        drawn = get_random_state()
        error, results = '', None
        with self._program.scope(), warnings.catch_warnings():
            warnings.simplefilter('ignore')
            self._watch(sample)
            try:
                results = sample.load()
            except Exception as raised:
                error = describe_error(raised)
            if not recorder.runs:
                raise CannotRun(f'sample {number}: {error or "its pipeline was not run"}')
            is_random = drawn != get_random_state()
            run = recorder.runs[0]
            if results is None and not error:
                error = 'the pipeline dropped the sample (no target?); training draws another one instead'
            if results is not None:
                self._preprocess(run, results)
        return replace(build_trace(number, run, error), seed=self._seed + turn, is_random=is_random)

    def _watch(self, sample: Sample) -> None:
        for dataset in find_innermost(sample.dataset):
            if id(dataset) not in self._watched:
                if not hasattr(getattr(dataset, 'pipeline', None), 'transforms'):
                    raise CannotRun(f'{type(dataset).__name__} has no pipeline that can be watched')
                self._watched.add(id(dataset))
                self._recorder.watch(dataset.pipeline)
        if sample.mixes and id(sample.dataset) not in self._watched:
            self._watched.add(id(sample.dataset))
            sample.dataset.pipeline = self._recorder.watch_mixing(sample.dataset.pipeline)

    def _preprocess(self, run: Run, results: Any) -> None:
        """Apply the model's data_preprocessor to this sample, as it may pad the label map."""
        if not isinstance(results, dict) or 'inputs' not in results:
            return
        from mmengine.dataset import pseudo_collate

        try:
            preprocessor = self._program.build_preprocessor()
            batch = preprocessor(pseudo_collate([results]), self._training)
            after = take(type(preprocessor).__name__, {'data_samples': batch['data_samples'][0]})
        except Exception:  # it is missing, or needs parts of the whole model
            return
        run.steps.append(Step(preprocessor, after))

    def repeat(self, samples: int, number: Optional[int] = None) -> List[SampleTrace]:
        """Repeat the trace for evenly chosen samples, or several times for one sample, each time with another seed."""
        chosen = [turn * len(self) // samples for turn in range(samples)]
        return [self.trace(one if number is None else number, turn) for turn, one in enumerate(chosen)]


@dataclass
class StepTrace:
    """One step of a trace: its changes, and new mistakes."""

    name: str
    after: Snapshot
    changes: List[Change] = field(default_factory=list)
    faults: List[Fault] = field(default_factory=list)


@dataclass
class SampleTrace:
    """A traced sample, with the images mixed in, and the error that ended the pipeline early.

    ``is_random``: another seed may give another sample.
    """

    index: int
    image: str
    legs: List[StepTrace] = field(default_factory=list)
    mixed: List[str] = field(default_factory=list)
    error: str = ''
    seed: int = 0
    is_random: bool = False

    def holds(self, value: int) -> bool:
        return any(leg.after.holds(value) for leg in self.legs)


def build_trace(index: int, run: Run, error: str = '') -> SampleTrace:
    """Return the trace of a recorded run, with the changes of each step."""
    story = SampleTrace(index, run.image, [StepTrace(run.start.step, run.start, faults=run.start.faults)], error=error)
    story.mixed = list(dict.fromkeys(mixed.image for step in run.steps for mixed in step.mixed))
    known, label_loaded, instances_loaded = run.start, False, False
    for step in run.steps:
        after = step.after
        # Files keep their contents until a loader puts them into the sample.
        label_loaded = label_loaded or after.label is not None
        instances_loaded = instances_loaded or after.instances is not None
        before = replace(
            known, label=known.label if label_loaded else None, instances=known.instances if instances_loaded else None
        )
        found = find_changes(before, after, step.transform, step.mixed)
        new = Counter(fault.what for fault in after.faults) - Counter(fault.what for fault in known.faults)
        faults = [
            fault for what, more in new.items() for fault in [one for one in after.faults if one.what == what][-more:]
        ]
        if label_loaded:
            faults += map_faults(before, after, step.transform)
        story.legs.append(StepTrace(after.step, after, found, faults))
        if after.note:
            continue
        known = Snapshot(
            after.step,
            label=after.label if label_loaded else known.label,
            instances=after.instances if instances_loaded else known.instances,
            size=after.size or known.size,
            homography=after.homography if after.homography is not None else known.homography,
            label_map=known.label_map if not label_loaded else {},
            faults=after.faults,
        )
    return story
