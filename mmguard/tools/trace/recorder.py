"""Watches a pipeline while it runs as it always does."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, List, Optional, Tuple

from mmguard.labels.samples import file_of
from mmguard.tools.trace.snapshot import Snapshot, of_annotations, take

#: Transforms that run others on the same sample: their parts are steps of their own. (KeyMapper and
#: TransformBroadcaster hand their parts another sample, so they stay one step.)
_OPEN = ('Compose', 'RandomApply', 'RandomChoice')


@dataclass
class Step:
    """A transform, the sample after it, and the images that it mixed in (Mosaic, MixUp)."""

    transform: Any
    after: Snapshot
    mixed: List[Run] = field(default_factory=list)


@dataclass
class Run:
    """One image on its way through the pipeline.

    Args:
        image (str): Where it comes from.
        start (Snapshot): Before any transform.
        steps (list[Step]): In their order.
    """

    image: str
    start: Snapshot
    steps: List[Step] = field(default_factory=list)


class Recorder:
    """Puts itself between the transforms of a data set, and collects what they leave."""

    def __init__(self) -> None:
        self.runs: List[Run] = []
        self._open: Optional[Run] = None

    def watch(self, pipeline: Any) -> None:
        """Watches a data set's own pipeline (an mmengine ``Compose``)."""
        pipeline.transforms = [_Start(self), *self._watched(pipeline.transforms, '')]

    def watch_mixing(self, transforms: List[Any]) -> List[Any]:
        """The transforms of a ``MultiImageMixDataset``, watched: they work on the first image."""
        return [_Watched(transform, self, type(transform).__name__, outer=True) for transform in transforms]

    def _watched(self, transforms: List[Any], path: str) -> List[Any]:
        watched = []
        for transform in transforms:
            name = type(transform).__name__
            here = path if name == 'Compose' else f'{path}{name}'
            if name in _OPEN:
                inside = '' if not here else f'{here} > ' if not here.endswith(' > ') else here
                self._open_up(transform, inside)
                watched.append(transform)
            else:
                beside = getattr(transform, 'pre_transform', None)
                if hasattr(beside, 'transforms'):  # mmyolo's Mosaic and MixUp load further images with it
                    self.watch(beside)
                watched.append(_Watched(transform, self, here))
        return watched

    def _open_up(self, transform: Any, path: str) -> None:
        parts = transform.transforms
        if isinstance(parts, (list, tuple)):
            transform.transforms = self._watched(list(parts), path)
        else:
            self._open_up(parts, path)

    # ---- what the watched transforms report

    def begin(self, results: Any) -> None:
        self._open = Run(str(results.get('img_path') or file_of(results) or '<unknown>'), of_annotations(results))
        self.runs.append(self._open)

    def place(self) -> Tuple[Optional[Run], int]:
        """The image that a step is about to work on, and how many were begun."""
        return self._open, len(self.runs)

    def step(self, name: str, transform: Any, results: Any, outer: bool, place: Tuple[Optional[Run], int]) -> None:
        self._open, begun = place
        run = self.runs[0] if outer else self._open
        if run is None:
            return
        step = Step(transform, take(name, results))
        first = 1 if outer else begun  # what was loaded since the last one was loaded for this one
        step.mixed = self.runs[first:]
        del self.runs[first:]
        run.steps.append(step)


class _Start:
    """Stands before the first transform."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder

    def __call__(self, results: Any) -> Any:
        self._recorder.begin(results)
        return results


class _Watched:
    """A transform that reports what it left; in all else it is the transform."""

    def __init__(self, transform: Any, recorder: Recorder, name: str, outer: bool = False) -> None:
        self._transform = transform
        self._recorder = recorder
        self._name = name
        self._outer = outer

    def __call__(self, results: Any) -> Any:
        place = self._recorder.place()
        results = self._transform(results)
        self._recorder.step(self._name, self._transform, results, self._outer, place)
        return results

    def __getattr__(self, name: str) -> Any:
        if name.startswith('__'):
            raise AttributeError(name)
        return getattr(self._transform, name)
