"""Samples of a config's data set, run through their pipeline under watch."""

from __future__ import annotations

import warnings
from typing import Any, Iterator, Set

from mmguard.errors import CannotRun
from mmguard.text.failures import words_of
from mmguard.tools.samples import Sample, Samples, build_dataset, in_scope, innermost, seed_all
from mmguard.tools.trace.recorder import Recorder, Run, Step
from mmguard.tools.trace.snapshot import take
from mmguard.tools.trace.story import Story, story_of


class Tracer:
    """A data set whose samples can be traced.

    Args:
        config (mmengine.Config): It, loaded.
        split (str): ``'train'``, ``'val'`` or ``'test'``.
        seed (int): Sample ``i`` is drawn with ``seed + i``, so that each can be had again.

    Raises:
        CannotRun: There is no such data set, or it cannot be built.
    """

    def __init__(self, config: Any, split: str = 'train', seed: int = 0) -> None:
        self._config = config
        self._seed = seed
        self._training = split == 'train'
        self._samples = Samples(build_dataset(config, split))
        self._preprocessor = _preprocessor_of(config)
        self._recorder = Recorder()
        self._watched: Set[int] = set()

    def __len__(self) -> int:
        return len(self._samples)

    def find(self, sample: str) -> int:
        """The number of a sample.

        Args:
            sample (str): A number, or the path of its image or label file, or the end of one.

        Raises:
            CannotRun: There is none, or several that end so.
        """
        if not sample.lstrip('-').isdigit():
            return self._samples.find(sample)[1][0].number
        if not 0 <= int(sample) < len(self):
            raise CannotRun(f'--sample {sample}: the data set holds samples 0 to {len(self) - 1}')
        return int(sample)

    def trace(self, number: int) -> Story:
        """Runs the pipeline on one sample. What it raises ends the story, and is reported there."""
        sample, recorder = self._samples[number], self._recorder
        recorder.runs.clear()
        seed_all(self._seed + number)
        error, results = '', None
        with in_scope(self._config), warnings.catch_warnings():
            warnings.simplefilter('ignore')
            self._watch(sample)
            try:
                results = sample.load()
            except Exception as raised:
                error = words_of(raised)
            if not recorder.runs:
                raise CannotRun(f'sample {number}: {error or "its pipeline was not run"}')
            run = recorder.runs[0]
            if results is None and not error:
                error = 'the pipeline left no sample (nothing to train on in it?); training draws another one'
            if results is not None:
                self._preprocess(run, results)
        return story_of(number, run, error)

    def _watch(self, sample: Sample) -> None:
        for dataset in innermost(sample.dataset):
            if id(dataset) not in self._watched:
                if not hasattr(getattr(dataset, 'pipeline', None), 'transforms'):
                    raise CannotRun(f'{type(dataset).__name__} has no pipeline that can be watched')
                self._watched.add(id(dataset))
                self._recorder.watch(dataset.pipeline)
        if sample.mixes and id(sample.dataset) not in self._watched:
            self._watched.add(id(sample.dataset))
            sample.dataset.pipeline = self._recorder.watch_mixing(sample.dataset.pipeline)

    def _preprocess(self, run: Run, results: Any) -> None:
        """What the model's data_preprocessor does to a batch of this one sample: it may pad the label map."""
        if self._preprocessor is None or not isinstance(results, dict) or 'inputs' not in results:
            return
        from mmengine.dataset import pseudo_collate

        try:
            batch = self._preprocessor(pseudo_collate([results]), self._training)
            after = take(type(self._preprocessor).__name__, {'data_samples': batch['data_samples'][0]})
        except Exception:  # it may need what a whole model has
            return
        run.steps.append(Step(self._preprocessor, after))

    def stories(self) -> Iterator[Story]:
        for number in range(len(self)):
            yield self.trace(number)


def _preprocessor_of(config: Any) -> Any:
    from mmengine.registry import MODELS

    preprocessor = (config.get('model') or {}).get('data_preprocessor') or config.get('data_preprocessor')
    with in_scope(config):
        try:
            return MODELS.build(preprocessor) if preprocessor else None
        except Exception:  # the model's affair; the data can be traced without
            return None
