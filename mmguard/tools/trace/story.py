"""The whole way of a sample, step by step."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from typing import List

from mmguard.tools.trace.changes import Change, changes
from mmguard.tools.trace.recorder import Run
from mmguard.tools.trace.snapshot import Snapshot


@dataclass
class Leg:
    """One step of the way.

    Args:
        name (str): The transform; ``'disk'`` or ``'annotation file'`` of the first.
        after (Snapshot): The sample after it.
        changes (list[Change]): What it changed; of the first step none.
        masks (list[str]): What is wrong with masks behind it, and was not before.
    """

    name: str
    after: Snapshot
    changes: List[Change] = field(default_factory=list)
    masks: List[str] = field(default_factory=list)


@dataclass
class Story:
    """A traced sample.

    Args:
        index (int): Its number in the data set.
        image (str): Its file.
        legs (list[Leg]): In order.
        mixed (list[str]): Images that were mixed in.
        error (str): What ended the pipeline early.
    """

    index: int
    image: str
    legs: List[Leg] = field(default_factory=list)
    mixed: List[str] = field(default_factory=list)
    error: str = ''

    def holds(self, value: int) -> bool:
        return any(leg.after.holds(value) for leg in self.legs)


def story_of(index: int, run: Run, error: str = '') -> Story:
    """What each step of a recorded run changed."""
    story = Story(index, run.image, [Leg(run.start.step, run.start)], error=error)
    story.mixed = list(dict.fromkeys(mixed.image for step in run.steps for mixed in step.mixed))
    known, label_loaded, instances_loaded = run.start, False, False
    for step in run.steps:
        after = step.after
        # What is in files stays there until a loader puts it into the sample.
        label_loaded = label_loaded or after.label is not None
        instances_loaded = instances_loaded or after.instances is not None
        before = replace(
            known,
            label=known.label if label_loaded else None,
            instances=known.instances if instances_loaded else None,
        )
        found = changes(before, after, step.transform, step.mixed)
        new = Counter(after.masks) - Counter(known.masks)
        story.legs.append(Leg(after.step, after, found, list(new.elements())))
        if after.note:
            continue
        known = Snapshot(
            after.step,
            label=after.label if label_loaded else known.label,
            instances=after.instances if instances_loaded else known.instances,
            size=after.size or known.size,
            homography=after.homography if after.homography is not None else known.homography,
            label_map=known.label_map if not label_loaded else {},
            masks=after.masks,
        )
    return story
